/**
 * Finding the programs of PostgreSQL and mending the links that an install left out.
 */
import * as nodeFs from "node:fs"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, inject, it } from "@effect/vitest"
import { Effect } from "effect"
import { canEnter, copyPrograms, linkLibraries } from "./postgres-programs.ts"

const newFolder = Effect.acquireRelease(
  Effect.sync(() => nodeFs.mkdtempSync(`${inject("postgres").runFolder}/programs-`)),
  (folder) => Effect.sync(() => nodeFs.rmSync(folder, { recursive: true }))
)

/** What npm leaves when install scripts may not run: programs, libraries, and no links. */
const newPackage = Effect.map(newFolder, (folder) => {
  nodeFs.mkdirSync(`${folder}/native/bin`, { recursive: true })
  nodeFs.mkdirSync(`${folder}/native/lib`)
  nodeFs.writeFileSync(`${folder}/native/bin/postgres`, "#!/bin/sh\n", { mode: 0o755 })
  nodeFs.writeFileSync(`${folder}/native/lib/libpq.so.5.18`, "library")
  nodeFs.writeFileSync(
    `${folder}/native/pg-symlinks.json`,
    JSON.stringify([
      { source: "native/lib/libpq.so.5.18", target: "native/lib/libpq.so" },
      { source: "native/lib/libpq.so.5.18", target: "native/lib/libpq.so.5" }
    ])
  )
  return folder
})

const run = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  effect.pipe(Effect.scoped, Effect.provide(NodeServices.layer))

describe("the programs of PostgreSQL", () => {
  it.live("get the links of their libraries, once", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* newPackage
        yield* linkLibraries(folder)
        yield* linkLibraries(folder)
        for (const name of ["libpq.so", "libpq.so.5"]) {
          assert.strictEqual(nodeFs.readlinkSync(`${folder}/native/lib/${name}`), "libpq.so.5.18")
        }
      })
    )
  )

  it.live("are copied whole, by version, also when two starts copy at once", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* newPackage
        const copies = `${yield* newFolder}/programs`
        const places = yield* Effect.all(
          Array.from({ length: 3 }, () => copyPrograms(folder, "18.4.0", copies)),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(new Set(places), new Set([`${copies}/18.4.0`]))
        assert.deepStrictEqual(nodeFs.readdirSync(copies), ["18.4.0"])
        assert.strictEqual(nodeFs.readFileSync(`${copies}/18.4.0/native/lib/libpq.so.5`, "utf8"), "library")
        const { mode } = nodeFs.statSync(`${copies}/18.4.0/native/bin/postgres`)
        assert.strictEqual(mode & 0o111, 0o111)
      })
    )
  )

  it.live("may be copied from where nothing may be written, and the copy is its maker's", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* newPackage
        const places = ["native/bin", "native/lib", "native"]
        for (const place of places) nodeFs.chmodSync(`${folder}/${place}`, 0o555)
        const copy = yield* copyPrograms(folder, "18.4.0", `${yield* newFolder}/programs`)
        const modes = places.map((place) => nodeFs.statSync(`${copy}/${place}`).mode & 0o777)
        for (const place of places) nodeFs.chmodSync(`${folder}/${place}`, 0o755)
        assert.deepStrictEqual(modes, [0o755, 0o755, 0o755])
        assert.strictEqual(nodeFs.statSync(`${copy}/native/bin/postgres`).mode & 0o111, 0o111)
        assert.strictEqual(nodeFs.readlinkSync(`${copy}/native/lib/libpq.so`), "libpq.so.5.18")
      })
    )
  )
})

describe("an account", () => {
  it.live("can enter a folder when every folder above lets it pass", () =>
    run(
      Effect.gen(function* () {
        const folder = yield* newFolder
        nodeFs.mkdirSync(`${folder}/closed/inner`, { recursive: true })
        const { gid, uid } = nodeFs.statSync(folder)
        const stranger = { name: "stranger", uid: uid + 4321, gid: gid + 4321, foreign: true }
        const enters = (account: typeof stranger) => canEnter(`${folder}/closed/inner`, account)
        nodeFs.chmodSync(folder, 0o755)
        nodeFs.chmodSync(`${folder}/closed`, 0o711)
        assert.isTrue(yield* enters(stranger))
        nodeFs.chmodSync(`${folder}/closed`, 0o710)
        assert.isFalse(yield* enters(stranger))
        assert.isTrue(yield* enters({ ...stranger, gid }))
        nodeFs.chmodSync(`${folder}/closed`, 0o700)
        assert.isFalse(yield* enters({ ...stranger, gid }))
        assert.isTrue(yield* enters({ ...stranger, uid }))
      })
    )
  )
})
