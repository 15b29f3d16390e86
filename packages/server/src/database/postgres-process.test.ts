/**
 * Running a program of PostgreSQL and reading its last words.
 */
import * as nodeFs from "node:fs"
import { tmpdir } from "node:os"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { databaseLimits } from "../limits.ts"
import { saysDiskFull } from "./database-unavailable.ts"
import { cutLog, wordsSince } from "./embedded-cluster.ts"
import { isAlive, runProgram, startProgram } from "./postgres-programs.ts"

const account = { name: "the tester", uid: 0, gid: 0, foreign: false }

const shell = (script: string) => ({ file: "/bin/sh", arguments: ["-c", script], account })

const newFile = Effect.acquireRelease(
  Effect.sync(() => nodeFs.mkdtempSync(`${tmpdir()}/tropism-process-`)),
  (folder) => Effect.sync(() => nodeFs.rmSync(folder, { recursive: true }))
).pipe(Effect.map((folder) => `${folder}/log`))

const run = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(Effect.scoped, Effect.provide(NodeServices.layer))

describe("a program that is run to its end", () => {
  it.live("answers its exit code and the end of what it complained about, line by line", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* runProgram(shell("echo one >&2; echo two >&2; exit 3")), {
        exitCode: 3,
        lastWords: "one\ntwo"
      })
      const long = yield* runProgram(shell("yes complaint | head -c 1000000 >&2; echo last >&2"))
      assert.isAtMost(long.lastWords.length, databaseLimits.lastWordsMaxChars)
      assert.isTrue(long.lastWords.endsWith("last"))
    })
  )

  it.live("sees no variable of this program's environment", () =>
    Effect.gen(function* () {
      assert.include(yield* runProgram(shell('echo "user: $USER$HOME$PGDATA" >&2')), { lastWords: "user:" })
    })
  )

  it.live("fails with a sentence when it is not there", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(runProgram({ file: "/nowhere/initdb", arguments: [], account }))
      assert.strictEqual(error.reason, "startFailed")
      assert.match(error.message, /\/nowhere\/initdb.*the tester/)
    })
  )
})

describe("a program that lives on", () => {
  it.live("writes into the log, and its end is noticed", () =>
    run(
      Effect.gen(function* () {
        const log = yield* newFile
        nodeFs.writeFileSync(log, "from before\n")
        const words = yield* wordsSince(log)
        const { ended, pid } = yield* startProgram(shell("echo hello; read line"), log)
        assert.strictEqual(yield* Deferred.await(ended), 1)
        assert.isFalse(yield* isAlive(pid))
        assert.strictEqual(yield* words, "hello")
      })
    )
  )

  it.live("goes on writing into a log that was cut", () =>
    run(
      Effect.gen(function* () {
        const log = yield* newFile
        const grown = `${log}.grown`
        const fill = `head -c ${databaseLimits.logMaxBytes + 1} /dev/zero; touch ${grown}`
        const wait = `while [ -e ${grown} ]; do :; done; echo after`
        const { ended } = yield* startProgram(shell(`${fill}; ${wait}`), log)
        yield* Effect.sync(() => nodeFs.existsSync(grown)).pipe(Effect.repeat({ until: (there) => there }))
        yield* cutLog(log)
        nodeFs.rmSync(grown)
        yield* Deferred.await(ended)
        assert.strictEqual(nodeFs.readFileSync(log, "utf8"), "after\n")
        assert.strictEqual(nodeFs.statSync(`${log}.1`).size, databaseLimits.logMaxBytes + 1)
        yield* cutLog(log)
        assert.strictEqual(nodeFs.readFileSync(log, "utf8"), "after\n")
      })
    )
  )
})

describe("a full disk", () => {
  it("is recognised in what programs say about it", () => {
    assert.isTrue(saysDiskFull('could not write to file "x": No space left on device'))
    assert.isTrue(
      saysDiskFull("FATAL: wrote only 4096 of 8192 bytes at block 9\nHINT:  Check free disk space.")
    )
    assert.isTrue(saysDiskFull("Error: ENOSPC: no space left on device, write"))
    assert.isFalse(saysDiskFull("could not open file: Permission denied"))
  })
})
