/**
 * Agent definitions from files: what is read, and what each mistake says.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, FileSystem, Path, Result } from "effect"
import { fakeServer } from "../testing/fake-server.ts"
import { invoke, invokeWith } from "../testing/invoke.ts"
import { parseDefinitions } from "./agent-files.ts"

const watch = "name: watch\nprompt: |\n  Look.\ntriggerType: manual\n"

const names = (text: string) =>
  Result.map(parseDefinitions("a.yaml", text), (files) => files.map(({ input }) => input.name))

const mistake = (text: string) =>
  Result.match(parseDefinitions("a.yaml", text), { onSuccess: () => "", onFailure: (error) => error.message })

describe("parseDefinitions", () => {
  it("reads YAML, several documents in a file, and JSON", () => {
    expect(names(watch)).toEqual(Result.succeed(["watch"]))
    expect(names(`# two\n${watch}---\n${watch.replace("watch", "other")}---\n`)).toEqual(
      Result.succeed(["watch", "other"])
    )
    expect(names(JSON.stringify({ name: "json", prompt: "p", triggerType: "manual" }))).toEqual(
      Result.succeed(["json"])
    )
  })

  it("says where a file is no YAML", () => {
    expect(mistake("name: [")).toMatch(/^a\.yaml .* line 1, column \d+/)
  })

  it("refuses a field that does not exist, and a value that is none", () => {
    expect(mistake(`${watch}capabilites: {}\n`)).toContain("capabilites")
    expect(mistake(`${watch}executionMode: yolo\n`)).toContain("executionMode")
    expect(mistake("- 1\n")).toMatch(/^a\.yaml /)
  })

  it("refuses a definition that contradicts itself", () => {
    expect(mistake(watch.replace("manual", "schedule"))).toMatch(/^a\.yaml .*: cronSchedule: [^;]+$/)
  })

  it("says of each field what is wrong, and in which document", () => {
    expect(mistake("name: x\ntriggerType: 5\n")).toMatch(/^a\.yaml .*: prompt: [^;]+; triggerType: [^;]+$/)
    expect(mistake(`${watch}---\n${watch.replace("watch", "other")}capabilites: {}\n`)).toMatch(
      /^a\.yaml\b[^:]*\b2\b[^:]*: capabilites: [^;]+$/
    )
  })

  it("refuses aliases of aliases, which stand for more than a memory holds", () => {
    const levels = ["a", "b", "c", "d"].map(
      (name, index, all) =>
        `${name}: &${name} [${Array(9)
          .fill(index === 0 ? "x" : `*${all[index - 1]}`)
          .join(",")}]`
    )
    // Not even read as far as its fields, which no agent has.
    expect(mistake(`${watch}${levels.join("\n")}\n`)).toMatch(/^a\.yaml (?!.*\b[abcd]: )/)
    expect(mistake(`${watch}${levels.slice(0, 2).join("\n")}\n`)).toMatch(/ a: .* b: /)
  })

  it("puts every mistake in one line", () => {
    expect(mistake("name: 1\nprompt: 2\n")).not.toContain("\n")
  })
})

describe("tropism agents apply", () => {
  const folder = Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const made = yield* files.makeTempDirectoryScoped()
    return {
      path: made,
      write: (name: string, text: string) => files.writeFileString(path.join(made, name), text)
    }
  })

  it.live("creates, updates and leaves alone, and tells which", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer()
      const { path, write } = yield* folder
      yield* write("a.yaml", watch)
      yield* write("b.yml", watch.replace("watch", "digest"))
      yield* write("readme.md", "no agent")
      const outcomes = Effect.map(invoke(server, "agents", "apply", "-f", path, "--json"), ({ out }) =>
        JSON.parse(out.join("\n")).map(
          (one: { name: string; outcome: string; version: number }) =>
            `${one.name} ${one.outcome} ${one.version}`
        )
      )
      expect(yield* outcomes).toEqual(["watch created 1", "digest created 1"])
      expect(yield* outcomes).toEqual(["watch unchanged 1", "digest unchanged 1"])
      yield* write("a.yaml", `${watch}maxSteps: 3\nrole: Guard\n`)
      expect(yield* outcomes).toEqual(["watch updated 2", "digest unchanged 1"])
      yield* write("a.yaml", watch)
      expect(yield* outcomes).toEqual(["watch updated 3", "digest unchanged 1"])
      expect(server.state.agents[0]).toMatchObject({ maxSteps: null, role: null })
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("sends nothing when one of the files is wrong", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer()
      const { path, write } = yield* folder
      yield* write("a.yaml", watch)
      yield* write("b.yaml", "name: x\n")
      const { error, exitCode } = yield* invoke(server, "agents", "apply", "-f", path)
      expect(exitCode).toBe(1)
      expect(error).toContain(`${path}/b.yaml `)
      expect(server.requests).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("refuses two definitions of one name, an empty folder and a place where nothing is", () =>
    Effect.gen(function* () {
      const { path, write } = yield* folder
      const apply = (file: string) => invokeWith({}, "agents", "apply", "-f", file)
      const empty = yield* apply(path)
      expect([empty.exitCode, empty.error]).toEqual([1, expect.stringContaining(`${path} `)])
      for (const ending of [".yaml", ".yml", ".json"]) expect(empty.error).toContain(ending)
      const nothing = yield* apply(`${path}/none`)
      expect([nothing.exitCode, nothing.error]).toEqual([1, expect.stringContaining(`${path}/none`)])
      yield* write("a.yaml", `${watch}---\n${watch}`)
      const twice = yield* apply(path)
      expect([twice.exitCode, twice.error]).toEqual([1, expect.stringContaining('"watch"')])
      expect(twice.error.split(`${path}/a.yaml`)).toHaveLength(3)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
