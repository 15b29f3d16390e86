/**
 * What becomes of work when the reader of the output goes, or when the work itself is ended.
 *
 * The server holds its answer until the reader has gone or the signal is sent, so nothing here is a matter of time.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Path } from "effect"
import { fakeServer, token } from "../testing/fake-server.ts"
import { type Answer, heldServer } from "../testing/held-server.ts"
import { counts, importId, started } from "../testing/import-words.ts"
import { until } from "../testing/invoke.ts"
import { launch, launcher } from "../testing/launch.ts"
import { id } from "../testing/records.ts"

const root = `/api/projects/${id("project", 1)}`
const lines = (...all: ReadonlyArray<object>) => all.map((line) => `${JSON.stringify(line)}\n`).join("")

const badLines = Array.from({ length: 20 }, (_, line) => ({ type: "badLine", line, message: "This is none" }))
const progress = (done: number) => ({ type: "progress", done, total: 4 })
const finished = {
  ...counts,
  type: "finished",
  importId,
  lines: 21,
  deleted: 0,
  relationshipsDeleted: 0
}

const inFolder = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* files.makeTempDirectoryScoped()
  const file = path.join(folder, "things.jsonl")
  yield* files.writeFileString(file, "x\n".repeat(21))
  return { files, folder, file }
})

/** A command before a server that holds its answer. */
const begun = (answer: Answer, ...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const server = yield* heldServer(yield* fakeServer(), answer)
    const command = yield* launch(launcher, [...args, "--url", server.url], { TROPISM_TOKEN: token })
    yield* until(() => server.asked.length > 0 || command.code() !== undefined)
    return { ...command, ...server }
  })

/** The same, whose reader goes before the rest of the answer comes: how it ends, and what it says of that. */
const withoutReader = (answer: Answer, ...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { code, error, letGo, process } = yield* begun(answer, ...args)
    yield* Effect.callback<void>((resume) => {
      process.stdout?.once("close", () => resume(Effect.void))
      process.stdout?.destroy()
    })
    yield* letGo
    yield* until(() => code() !== undefined)
    return { code: code(), error: error() }
  })

/** The same, ended by a signal instead. */
const signalled = (signal: NodeJS.Signals, answer: Answer, ...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { asked, code, error, process } = yield* begun(answer, ...args)
    process.kill(signal)
    yield* until(() => code() !== undefined)
    return { code: code(), error: error(), id: asked[0]?.searchParams.get("id") }
  })

describe("Requirement: an import that is ended says how to go on", () => {
  const ends = [
    ["SIGINT", 130],
    ["SIGTERM", 143]
  ] as const
  for (const [signal, exitCode] of ends)
    it.live(`by ${signal}`, () =>
      Effect.gen(function* () {
        const { file } = yield* inFolder
        const answer = { path: `${root}/import`, first: lines(started) }
        const { code, error, id } = yield* signalled(signal, answer, "import", file, "--quiet")
        expect([code, error]).toEqual([
          exitCode,
          expect.stringMatching(`^${file}: [^\\n]*--resume ${id}\\b[^\\n]*\\n$`)
        ])
        const json = yield* signalled(signal, answer, "import", file, "--json")
        expect([json.code, JSON.parse(json.error)]).toEqual([
          exitCode,
          { notice: expect.stringMatching(`--resume ${json.id}\\b`) }
        ])
      }).pipe(Effect.provide(NodeServices.layer))
    )

  it.live("also where it came from standard input", () =>
    Effect.gen(function* () {
      const server = yield* heldServer(yield* fakeServer(), {
        path: `${root}/import`,
        first: lines(started)
      })
      const command = yield* launch(launcher, ["import", "-", "--url", server.url], { TROPISM_TOKEN: token })
      command.process.stdin?.end("x\n")
      yield* until(() => server.asked.length > 0)
      yield* server.letGo
      yield* until(() => command.code() !== undefined)
      const remedy = `--resume ${server.asked[0]?.searchParams.get("id")}`
      expect([command.code(), command.error()]).toEqual([1, expect.stringContaining(remedy)])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("Requirement: a reader that goes ends no work", () => {
  it.live("an import goes on to its end, and its exit code is what it came to", () =>
    Effect.gen(function* () {
      const { file } = yield* inFolder
      const rest = lines(...badLines, finished)
      const { code, error } = yield* withoutReader(
        { path: `${root}/import`, first: lines(started), rest },
        "import",
        file
      )
      expect(error.trimEnd().split("\n").at(-1)).toMatch(/^tropism: .*\b1\b/)
      expect(code).toBe(1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("a restore that fails says so", () =>
    Effect.gen(function* () {
      const { file } = yield* inFolder
      const rest = lines(progress(2), progress(3), { type: "failed", message: "The dump is cut." })
      const { code, error } = yield* withoutReader(
        { path: "/api/restore", first: lines(progress(1)), rest },
        "restore",
        file
      )
      expect(error.split("\n")).toEqual([
        expect.stringMatching(/\bthings\.jsonl: 1 \w+ 4$/),
        expect.stringMatching(/\bthings\.jsonl: 2 \w+ 4$/),
        expect.stringMatching(/\bthings\.jsonl: 3 \w+ 4$/),
        "tropism: The dump is cut.",
        ""
      ])
      expect(code).toBe(1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("a file that is written becomes whole", () =>
    Effect.gen(function* () {
      const { file, files, folder } = yield* inFolder
      const [first, rest] = ['{"type":"Person","key":"ada"}\n', '{"type":"Person","key":"grace"}\n']
      const headers = { "tropism-objects": "2", "tropism-relationships": "0" }
      const { code } = yield* withoutReader(
        { path: `${root}/export`, first, rest, headers },
        "export",
        "-o",
        file
      )
      expect(code).toBe(0)
      expect(yield* files.readFileString(file)).toBe(`${first}${rest}`)
      expect(yield* files.readDirectory(folder)).toEqual(["things.jsonl"])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("what only prints ends before what it prints does", () =>
    Effect.gen(function* () {
      const first = '{"type":"Person","key":"ada"}\n'
      const answer = { path: `${root}/export`, first, rest: first, isEndless: true }
      expect(yield* withoutReader(answer, "export")).toEqual({
        code: 0,
        error: ""
      })
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
