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
      expect(error).toMatch(/http:\/\/127\.0\.0\.1:1\b.*"tropism start".* --url\b/)
      expect(exitCode).toBe(1)
    })
  )

  it.live("says where it looked for a token", () =>
    Effect.gen(function* () {
      const { error, exitCode } = yield* invokeWith({ TROPISM_DATA: "/nowhere" }, "tasks")
      expect(error).toMatch(/\bTROPISM_TOKEN\b.* \/nowhere\/token\b/)
      expect(exitCode).toBe(1)
    })
  )

  it.live("says that a token is not accepted", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer()
      const wrong = ["tasks", "--url", server.url, "--token", "wrong"]
      const { error, exitCode } = yield* invokeWith({}, ...wrong)
      expect(error).toMatch(new RegExp(`${server.url}\\b.*\\bTROPISM_TOKEN\\b`))
      expect(exitCode).toBe(1)
      const json = yield* invokeWith({}, ...wrong, "--json")
      expect(JSON.parse(json.error)).toMatchObject({ error: { problem: { status: 401 } } })
    })
  )

  it.live("takes a variable that is set to nothing for one that is not set", () =>
    Effect.gen(function* () {
      const { error } = yield* invokeWith(
        { PORT: "", HOST: " ", TROPISM_TOKEN: "", TROPISM_DATA: "/nowhere" },
        "tasks"
      )
      expect(error).toMatch(/\bTROPISM_TOKEN\b.* \/nowhere\/token\b/)
    })
  )

  it.live("refuses a PORT that is none, and an address that is none", () =>
    Effect.gen(function* () {
      expect((yield* invokeWith({ PORT: "http" }, "tasks")).error).toMatch(/\bPORT\b.*\b65535\b.*"http"/)
      const address = yield* invokeWith({ TROPISM_TOKEN: token }, "tasks", "--url", "ftp://x")
      expect([address.exitCode, address.error]).toEqual([2, expect.stringMatching(/--url\b.*ftp:\/\/x\b/)])
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
      const [head, ...listed] = error.split("\n")
      expect(head).toMatch(/\b2\b.*--project\b/)
      expect(listed).toEqual(projects.map(({ id, name }) => `  ${id}  ${name}`))
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
      const { error, exitCode } = yield* invoke(server, "tasks", "--project", "Wiki")
      expect([exitCode, error.split("\n")]).toEqual([
        1,
        [expect.stringContaining('"Wiki"'), ...projects.map(({ id, name }) => `  ${id}  ${name}`)]
      ])
    })
  )

  it.live("says what to do while there is none", () =>
    Effect.gen(function* () {
      const server = yield* fakeServer({ projects: [] })
      const remedy = expect.stringContaining("tropism projects create")
      const refused = yield* invoke(server, "tasks")
      expect([refused.exitCode, refused.error]).toEqual([1, remedy])
      expect((yield* invoke(server, "projects")).out).toEqual([remedy])
      expect((yield* invoke(server, "projects", "create", "Shop")).out).toEqual([
        expect.stringMatching(`"Shop".*${id("project", 1)}`)
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
      expect(error).toMatch(/^tropism: [^\n]+ "tropism[a-z ]* --help"[^\n]*$/)
      expect(error).not.toMatch(/Schema|Expected[^.]*Expected/)
    })
  )

  it.live("says what was expected", () =>
    Effect.gen(function* () {
      const { error } = yield* invokeWith({}, "tasks", "--limit", "0")
      expect(error).toMatch(/--limit\b.*"0".*\b1\b.*\b10000\b/)
    })
  )
})
