/**
 * How every command finds its server, its token and its project, and answers a wrong invocation.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { fakeServer, token } from "../../testing/fake-server.ts"
import { invoke, invokeWith } from "../../testing/invoke.ts"
import { at, id } from "../../testing/records.ts"

describe("finding the server", () => {
  it.live("says how to start one when none answers", () =>
    Effect.gen(function* () {
      const { error, exitCode } = yield* invokeWith({ TROPISM_TOKEN: token, PORT: "1" }, "tasks")
      expect(error).toBe(
        'No Tropism server answers at http://127.0.0.1:1. Start one with "tropism start", or name another with --url.'
      )
      expect(exitCode).toBe(1)
    })
  )

  it.live("says where it looked for a token", () =>
    Effect.gen(function* () {
      const { error, exitCode } = yield* invokeWith({ TROPISM_DATA: "/nowhere" }, "tasks")
      expect(error).toContain("TROPISM_TOKEN is not set and /nowhere/token does not exist")
      expect(exitCode).toBe(1)
    })
  )

  it.live("says that a token is not accepted", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer()
      const { error, exitCode } = yield* invokeWith({}, "tasks", "--url", server.url, "--token", "wrong")
      expect(error).toContain("does not accept this token")
      expect(exitCode).toBe(1)
    })
  )

  it.live("takes a variable that is set to nothing for one that is not set", () =>
    Effect.gen(function* () {
      const { error } = yield* invokeWith(
        { PORT: "", HOST: " ", TROPISM_TOKEN: "", TROPISM_DATA: "/nowhere" },
        "tasks"
      )
      expect(error).toContain("TROPISM_TOKEN is not set and /nowhere/token does not exist")
    })
  )

  it.live("refuses a PORT that is none, and an address that is none", () =>
    Effect.gen(function* () {
      expect((yield* invokeWith({ PORT: "http" }, "tasks")).error).toContain(
        'PORT must be a number from 0 to 65535, not "http"'
      )
      expect((yield* invokeWith({}, "tasks", "--url", "ftp://x")).error).toContain("--url must be an address")
    })
  )
})

describe("choosing a project", () => {
  const projects = [
    { id: id("project", 1), name: "Shop", createdAt: at(0) },
    { id: id("project", 2), name: "Blog", createdAt: at(0) }
  ]

  it.live("lists them when there are several and guesses none", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ projects })
      const { error, exitCode } = yield* invoke(server, "tasks")
      expect(error).toBe(
        `There are 2 projects. Name one with --project:\n  ${projects[0]?.id}  Shop\n  ${projects[1]?.id}  Blog`
      )
      expect(exitCode).toBe(1)
    })
  )

  it.live("takes the one that is named, by id or by name", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ projects })
      expect((yield* invoke(server, "tasks", "--project", "Blog")).exitCode).toBe(0)
      expect((yield* invoke(server, "tasks", "--project", id("project", 1))).exitCode).toBe(0)
      expect(
        server.requests.filter(({ line }) => line.includes("/tasks")).map(({ line }) => line.split("/")[3])
      ).toEqual([id("project", 2), id("project", 1)])
      expect((yield* invoke(server, "tasks", "--project", "Wiki")).error).toContain(
        'There is no project "Wiki". There are:'
      )
    })
  )

  it.live("says what to do while there is none", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ projects: [] })
      expect((yield* invoke(server, "tasks")).error).toContain(
        'The server has no project yet. "tropism projects create NAME" makes one.'
      )
      expect((yield* invoke(server, "projects")).out).toEqual([
        'There is no project yet. "tropism projects create NAME" makes one.'
      ])
      expect((yield* invoke(server, "projects", "create", "Shop")).out).toEqual([
        `Created project "Shop": ${id("project", 1)}`
      ])
      expect((yield* invoke(server, "tasks")).exitCode).toBe(0)
      expect((yield* invoke(server, "projects", "create", " ")).exitCode).toBe(2)
    })
  )
})

describe("a wrong invocation", () => {
  const cases = [
    ["task"],
    ["tasks", "approve"],
    ["tasks", "--status", "open"],
    ["tasks", "--limit", "0"],
    ["runs", "show", "x"],
    ["import"],
    ["agents", "apply"],
    ["tail", "--after", "-1"],
    ["--nope"]
  ]
  it.live.each(cases.map((args) => ({ args })))("$args is told in one line and ends with 2", ({ args }) =>
    Effect.gen(function* () {
      const { error, exitCode, out } = yield* invokeWith({}, ...args)
      expect(exitCode).toBe(2)
      expect(out).toEqual([])
      expect(error).toMatch(/^tropism: [^\n]+ Run "tropism[a-z ]* --help" to see how\.$/)
      expect(error).not.toMatch(/Schema|Expected[^.]*Expected/)
    })
  )

  it.live("says what was expected", () =>
    Effect.gen(function* () {
      const { error } = yield* invokeWith({}, "tasks", "--limit", "0")
      expect(error).toContain('flag --limit: "0". Expected a value between 1 and 10000.')
    })
  )
})
