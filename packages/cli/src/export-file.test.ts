/**
 * The export, of a graph or of agents: a file that is whole or not there.
 */
import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, FileSystem, Path } from "effect"
import { fakeServer } from "../testing/fake-server.ts"
import { heldServer } from "../testing/held-server.ts"
import { invoke, until } from "../testing/invoke.ts"
import { agent, id } from "../testing/records.ts"

const inFolder = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* files.makeTempDirectoryScoped()
  return { file: path.join(folder, "graph.jsonl"), entries: files.readDirectory(folder), files }
})

const text = '{"type":"Person","key":"ada"}\n{"type":"Person","key":"grace"}\n'

describe("tropism export", () => {
  it.live("writes the lines as they come, and says how many", () =>
    Effect.gen(function* () {
      const { file, files, entries } = yield* inFolder
      const server = yield* fakeServer({ exportText: text })
      const { exitCode, out } = yield* invoke(server, "export", "-o", file, "--types", "Person,Note")
      expect([exitCode, out.at(-1)]).toEqual([0, expect.stringMatching(`\\b2\\b.* ${file}\\b`)])
      expect(yield* files.readFileString(file)).toBe(text)
      expect(yield* entries).toEqual(["graph.jsonl"])
      expect(server.requests.at(-1)?.line).toMatch(/\/export\?types=Person%2CNote$/)
      const json = yield* invoke(server, "export", "-o", file, "--json")
      expect(JSON.parse(json.out.join("\n"))).toEqual({ file, lines: 2 })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("writes through a link and into a pipe, and replaces neither", () =>
    Effect.gen(function* () {
      const { file, files, entries } = yield* inFolder
      const server = yield* fakeServer({ exportText: text })
      yield* files.writeFileString(file, "before")
      yield* files.symlink(file, `${file}.link`)
      expect((yield* invoke(server, "export", "-o", `${file}.link`)).exitCode).toBe(0)
      expect([yield* files.readLink(`${file}.link`), yield* files.readFileString(file)]).toEqual([file, text])
      yield* files.symlink("fresh", `${file}.new`)
      expect((yield* invoke(server, "export", "-o", `${file}.new`)).exitCode).toBe(0)
      expect(yield* files.readFileString(`${file.slice(0, file.lastIndexOf("/"))}/fresh`)).toBe(text)
      const pipe = `${file}.pipe`
      spawnSync("mkfifo", [pipe])
      const reader = yield* Effect.forkChild(files.readFileString(pipe))
      expect((yield* invoke(server, "export", "-o", pipe)).exitCode).toBe(0)
      expect(yield* Fiber.join(reader)).toBe(text)
      expect((yield* files.stat(pipe)).type).toBe("FIFO")
      yield* files.symlink("round", `${file}.loop`)
      yield* files.symlink(`${file}.loop`, `${file.slice(0, file.lastIndexOf("/"))}/round`)
      expect((yield* invoke(server, "export", "-o", `${file}.loop`)).exitCode).toBe(2)
      expect((yield* entries).filter((name) => name.endsWith(".part"))).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("asks for nothing where nothing can be written", () =>
    Effect.gen(function* () {
      const { file } = yield* inFolder
      const server = yield* fakeServer({ exportText: text })
      const folder = file.slice(0, file.lastIndexOf("/"))
      const { error, exitCode } = yield* invoke(server, "export", "-o", folder)
      expect([exitCode, error]).toEqual([2, expect.stringContaining(folder)])
      expect((yield* invoke(server, "dump", "-o", folder)).exitCode).toBe(2)
      expect(server.requests.filter(({ line }) => /export|dump/.test(line))).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("leaves what was there when the export is not whole, and says why", () =>
    Effect.gen(function* () {
      const { file, files, entries } = yield* inFolder
      yield* files.writeFileString(file, "before")
      const server = yield* fakeServer({
        exportText: `${text}{"error":"This export is not whole: it took too long."}\n`
      })
      const { error, exitCode } = yield* invoke(server, "export", "-o", file)
      expect([exitCode, error]).toEqual([1, "This export is not whole: it took too long."])
      expect(yield* files.readFileString(file)).toBe("before")
      expect(yield* entries).toEqual(["graph.jsonl"])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("lets those read the file who could read the one before", () =>
    Effect.gen(function* () {
      const { file, files } = yield* inFolder
      const server = yield* fakeServer({ exportText: text })
      for (const mode of [0o600, 0o666]) {
        yield* files.writeFileString(file, "before")
        yield* files.chmod(file, mode)
        expect((yield* invoke(server, "export", "-o", file)).exitCode).toBe(0)
        expect((yield* files.stat(file)).mode & 0o777).toBe(mode)
      }
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("is whole also where two write the same file, and touches no other", () =>
    Effect.gen(function* () {
      const { entries, file, files } = yield* inFolder
      yield* files.writeFileString(`${file}.part`, "mine")
      const server = yield* fakeServer({ exportText: text })
      const [first, rest] = ['{"type":"Person","key":"alan"}\n', '{"type":"Person","key":"kurt"}\n']
      const slow = yield* heldServer(server, {
        path: `/api/projects/${id("project", 1)}/export`,
        first,
        rest
      })
      const writing = yield* Effect.forkChild(invoke({ ...server, url: slow.url }, "export", "-o", file))
      const isHalf = (name: string) => readFileSync(join(dirname(file), name), "utf8") === first
      yield* until(() => readdirSync(dirname(file)).some(isHalf))
      expect((yield* invoke(server, "export", "-o", file)).exitCode).toBe(0)
      expect(yield* files.readFileString(file)).toBe(text)
      yield* slow.letGo
      expect((yield* Fiber.join(writing)).exitCode).toBe(0)
      expect(yield* files.readFileString(file)).toBe(`${first}${rest}`)
      expect(yield* files.readFileString(`${file}.part`)).toBe("mine")
      expect((yield* entries).toSorted()).toEqual(["graph.jsonl", "graph.jsonl.part"])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("says what the server refuses", () =>
    Effect.gen(function* () {
      const { file, entries } = yield* inFolder
      const body = {
        status: 422,
        title: "Wrong",
        errors: [{ pointer: "asOf", message: "This must be a time" }]
      }
      const server = yield* fakeServer({
        failing: new Map([[`/api/projects/${id("project", 1)}/export`, { status: 422, body }]])
      })
      const { error, exitCode } = yield* invoke(
        server,
        "export",
        "-o",
        file,
        "--as-of",
        "2026-11-20T12:00:00Z"
      )
      expect([exitCode, error]).toEqual([1, "asOf: This must be a time."])
      expect(yield* entries).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("says which file cannot be written", () =>
    Effect.gen(function* () {
      const file = `${(yield* inFolder).file}/graph.jsonl`
      const server = yield* fakeServer({ exportText: text })
      const { error, exitCode } = yield* invoke(server, "export", "-o", file)
      expect([exitCode, error]).toEqual([1, expect.stringContaining(dirname(file))])
      expect(server.requests.filter(({ line }) => line.includes("/export"))).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("tropism agents export", () => {
  it.live("replaces a file as a whole, and never writes into it", () =>
    Effect.gen(function* () {
      const { entries, file, files } = yield* inFolder
      const folder = dirname(file)
      const server = yield* fakeServer({ agents: [agent(1, { name: "guard" })] })
      const yaml = join(folder, "guard.yaml")
      yield* files.writeFileString(yaml, "before")
      yield* files.link(yaml, file)
      expect((yield* invoke(server, "agents", "export", "-o", folder)).exitCode).toBe(0)
      expect(yield* files.readFileString(yaml)).toMatch(/^name: guard\n/)
      expect(yield* files.readFileString(file)).toBe("before")
      expect((yield* entries).toSorted()).toEqual(["graph.jsonl", "guard.yaml"])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
