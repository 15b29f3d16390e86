/**
 * The import: what is sent, what is shown, and each way in which it can end.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem } from "effect"
import { TestClock } from "effect/testing"
import { type FakeServer, fakeServer } from "../testing/fake-server.ts"
import { counts, importId, started } from "../testing/import-words.ts"
import { id } from "../testing/records.ts"
import { invoke, invokeHearing } from "../testing/invoke.ts"
import { formatOf } from "./import-format.ts"
import { limits } from "./limits.ts"

const finished = {
  type: "finished",
  created: 2,
  updated: 1,
  deleted: 0,
  unchanged: 3,
  relationshipsCreated: 4,
  relationshipsUpdated: 0,
  relationshipsDeleted: 0
}
const progress = (done: number) => ({ type: "progress", done, total: 8 })

const lockfile = (text: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const file = yield* files.makeTempFileScoped({ suffix: "package-lock.json" })
    yield* files.writeFileString(file, text)
    return file
  })

/** Runs a command while the clock goes on; what is sent and answered takes real time. */
const whileTimePasses = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect)
    const step = Effect.andThen(TestClock.adjust("5 seconds"), TestClock.withLive(Effect.sleep("2 millis")))
    yield* Effect.repeat(step, { until: () => fiber.pollUnsafe() !== undefined })
    return yield* Fiber.join(fiber)
  })

const badLine = { type: "badLine", line: 2, message: "/type: Missing" }
const linesDone = (done: number) => ({ type: "progress", done, total: null, lines: done / 10, counts })
const finishedLines = { ...finished, ...counts, importId, lines: 3, deleted: 0 }

const fileOf = (suffix: string, text: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const file = yield* files.makeTempFileScoped({ suffix })
    yield* files.writeFileString(file, text)
    return file
  })

const importsOf = (server: FakeServer) =>
  server.requests
    .filter(({ line }) => line.startsWith("POST"))
    .map(({ line }) => Object.fromEntries(new URLSearchParams(line.slice(line.indexOf("?")))))

describe("tropism import of lines", () => {
  it.live("tells each bad line, what was done, and ends with 1", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ importLines: [started, badLine, linesDone(30), finishedLines] })
      const file = yield* fileOf(".jsonl", "a\nb\nc\n".repeat(5))
      const notices: Array<string> = []
      const { error, exitCode, out } = yield* invokeHearing(notices, server, "import", file)
      expect(out).toEqual([
        expect.stringMatching(/\b2\b\D*\/type: Missing$/),
        expect.stringMatching(/^\D*\b1\b\D*$/)
      ])
      expect(notices).toEqual([expect.stringMatching(/\.jsonl\b\D* 30 B \D*30 B$/)])
      expect(error).toMatch(/^\D*\b1\b\D*$/)
      expect(exitCode).toBe(1)
      expect(importsOf(server)).toEqual([
        {
          format: "jsonl",
          id: expect.stringMatching(/^[0-9a-f-]{36}$/),
          name: expect.stringMatching(/\.jsonl$/)
        }
      ])
      const json = yield* invoke(server, "import", file, "--json")
      expect(JSON.parse(json.out.join("\n"))).toEqual({
        ...finishedLines,
        badLines: [{ line: 2, message: "/type: Missing" }]
      })
      expect(json.exitCode).toBe(1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("goes on with its import when the connection breaks", () =>
    Effect.gen(function* () {
      const failed = { type: "failed", message: "The server stops.", resume: importId }
      const server = yield* fakeServer({
        importAnswers: [[started, linesDone(10)], [], [started, failed]],
        importLines: [started, linesDone(30), { ...finishedLines, failed: 0 }]
      })
      const file = yield* fileOf(".jsonl", "x\n".repeat(15))
      const { exitCode } = yield* whileTimePasses(invoke(server, "import", file))
      expect(exitCode).toBe(0)
      const [first, ...others] = importsOf(server)
      expect(others.map(({ resume }) => resume)).toEqual([first?.id, first?.id, first?.id])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("gives up when nothing more is committed, and says how to go on", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ importLines: [started] })
      const file = yield* fileOf(".jsonl", "x\n")
      const { error, exitCode } = yield* whileTimePasses(invoke(server, "import", file))
      const [first] = importsOf(server)
      expect(error).toMatch(new RegExp(`\\.jsonl: .*--resume ${first?.id}\\b`))
      expect(exitCode).toBe(1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect("says each time why it tries again, and gives up soon on what the server says fails", () =>
    Effect.gen(function* () {
      const message = "Out of order."
      const failed = { type: "failed", message, resume: importId }
      const server = yield* fakeServer({ importLines: [started, failed] })
      const file = yield* fileOf(".jsonl", "x\n")
      const notices: Array<string> = []
      const { error, exitCode } = yield* whileTimePasses(invokeHearing(notices, server, "import", file))
      expect(exitCode).toBe(1)
      expect(notices).toEqual(
        [0.25, 0.5, 1].map((seconds) => expect.stringMatching(`^\\S*${message} \\D*\\b${seconds} s\\b`))
      )
      const [first, ...others] = importsOf(server)
      expect(error).toMatch(new RegExp(`${message} .*\\b4\\b.*--resume ${first?.id}\\b`))
      expect(others).toHaveLength(3)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("takes several files, and says of each what it did", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ importLines: [started, { ...finishedLines, failed: 0 }] })
      const first = yield* fileOf(".jsonl", "a\n")
      const second = yield* fileOf(".csv", "type\nPerson\n")
      const { exitCode, out } = yield* invoke(server, "import", first, second)
      expect([exitCode, out]).toEqual([
        0,
        [first, second].map((file) => expect.stringMatching(`^${file}: \\D*\\b1\\b\\D*$`))
      ])
      const json = yield* invoke(server, "import", first, second, "--json")
      expect(JSON.parse(json.out.join("\n"))).toMatchObject([{ file: first }, { file: second }])
      expect(importsOf(server).map(({ format }) => format)).toEqual(["jsonl", "csv", "jsonl", "csv"])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("goes on with the import that it is told", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ importLines: [started, { ...finishedLines, failed: 0 }] })
      const file = yield* fileOf(".txt", "type,key\nPerson,ada\n")
      const { exitCode } = yield* invoke(
        server,
        "import",
        file,
        "--resume",
        importId,
        "--key",
        "name",
        "--untrusted"
      )
      expect(exitCode).toBe(0)
      expect(importsOf(server)).toEqual([
        {
          format: "csv",
          resume: importId,
          key: "name",
          untrusted: "true",
          name: expect.stringMatching(/\.txt$/)
        }
      ])
      const several = yield* invoke(server, "import", file, file, "--resume", importId)
      expect([several.exitCode, several.error]).toEqual([2, expect.stringContaining("--resume")])
      expect(importsOf(server)).toHaveLength(1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live.each([
    ["tab", "\t"],
    ["\\t", "\t"],
    ["Pipe", "|"],
    ["semicolon", ";"],
    ["comma", ","],
    ["^", "^"]
  ])("sends the delimiter that %s names", ([given = "", delimiter]) =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ importLines: [started, { ...finishedLines, failed: 0 }] })
      const file = yield* fileOf(".csv", "type\nPerson\n")
      const { exitCode } = yield* invoke(server, "import", file, "--delimiter", given, "--decimal", "comma")
      expect(exitCode).toBe(0)
      expect(importsOf(server)).toMatchObject([{ delimiter, decimal: "comma" }])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.each([
    ['{"name":"x","lockfileVersion":3}', "package-lock"],
    ['{"type":"Person"}\n{"type":"Person"}', "jsonl"],
    ['\n{"relationship":{}}', "jsonl"],
    ["type,key", "csv"],
    ["{", "package-lock"]
  ])("takes a file that begins with %s for %s", (head, format) => {
    expect(formatOf(head)).toBe(format)
  })
})

describe("tropism import", () => {
  it.live("sends the file as it is, and prints a line for each quarter and what changed", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({
        importLines: [progress(1), progress(2), progress(3), progress(8), finished]
      })
      const file = yield* lockfile('{"lockfileVersion":3}')
      const notices: Array<string> = []
      const { exitCode, out } = yield* invokeHearing(notices, server, "import", file)
      expect(exitCode).toBe(0)
      expect(notices.map((line) => line.match(/\d+/g)?.slice(-2))).toEqual([
        ["2", "8"],
        ["8", "8"]
      ])
      expect(out.map((line) => line.match(/\d+/g))).toEqual([["2", "1", "3", "4"]])
      expect(server.requests.at(-1)).toEqual({
        line: expect.stringMatching(/^POST \/api\/projects\/[^/]+\/import\?format=package-lock&name=[^&]+$/),
        body: '{"lockfileVersion":3}'
      })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("prints nothing but the record with --json", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ importLines: [progress(4), finished] })
      const { out } = yield* invoke(server, "import", yield* lockfile("{}"), "--json")
      expect(JSON.parse(out.join("\n"))).toEqual(finished)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("fails with what the server says when it stops it", () =>
    Effect.gen(function* () {
      const importLines = [progress(1), { type: "failed", message: "The disk is full" }]
      const server = yield* fakeServer({ importLines })
      const { error, exitCode } = yield* invoke(server, "import", yield* lockfile("{}"))
      expect(error).toMatch(/package-lock\.json: .*The disk is full$/)
      expect(exitCode).toBe(1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  const breaks = [
    { name: "ends early", importLines: [progress(1)] },
    { name: "is cut in a line", importLines: [progress(1), '{"type":"prog'] }
  ]
  it.effect.each(breaks)(
    "sends a lockfile again, and gives up at last, when the answer $name",
    ({ importLines }) =>
      Effect.gen(function* () {
        const server = yield* fakeServer({ importLines })
        const { error, exitCode } = yield* whileTimePasses(invoke(server, "import", yield* lockfile("{}")))
        expect(error).toMatch(/package-lock\.json: (?!.*--resume)/)
        expect(exitCode).toBe(1)
        const sent = server.requests.filter(({ line }) => line.startsWith("POST"))
        expect(sent).toHaveLength(limits.brokenImportsInARow + 1)
        expect(new Set(sent.map(({ line }) => line)).size).toBe(1)
      }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("says what the server found wrong in the file", () =>
    Effect.gen(function* () {
      const problem = {
        type: "/problems/invalid-input",
        status: 422,
        title: "…",
        errors: [{ pointer: "", message: "Unreadable" }]
      }
      const server = yield* fakeServer({
        failing: new Map([[`/api/projects/${id("project", 1)}/import`, { status: 422, body: problem }]])
      })
      const { error, exitCode } = yield* invoke(server, "import", yield* lockfile("{"))
      expect(error).toMatch(/^\S+package-lock\.json: Unreadable\.$/)
      expect(exitCode).toBe(1)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("sends nothing for a file that is none", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer()
      for (const file of ["/nowhere/package-lock.json", "/"]) {
        const { error, exitCode } = yield* invoke(server, "import", file)
        expect([exitCode, error.split(" ")]).toEqual([
          1,
          expect.arrayContaining([expect.stringMatching(`^${file}\\.?$`), "JSONL", "CSV"])
        ])
      }
      expect(server.requests.filter(({ line }) => line.startsWith("POST"))).toEqual([])
    })
  )
})
