/**
 * Members and tokens by the command line: who is let in, by what is printed once, and until when.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { newProject, startServer } from "../../server/testing/platform.ts"
import { invokeWith } from "../testing/invoke.ts"

describe("Requirement: tropism members and tropism token", () => {
  it.live("let a program in, show its token once, bound and end it", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const as = (token: string, ...args: ReadonlyArray<string>) =>
        invokeWith({ TROPISM_TOKEN: token }, ...args, "--url", story.url)
      const tropism = (...args: ReadonlyArray<string>) => as(story.token, ...args)
      /** How the command ends where the server refuses it, and with which status. */
      const refused = (token: string, ...args: ReadonlyArray<string>) =>
        Effect.map(as(token, ...args, "--json"), ({ error, exitCode }) => [
          exitCode,
          JSON.parse(error).error.problem.status
        ])
      const json = (...args: ReadonlyArray<string>) =>
        Effect.map(tropism(...args, "--json"), ({ error, exitCode, out }) => {
          expect(error).toBe("")
          expect(exitCode).toBe(0)
          return JSON.parse(out.join("\n"))
        })

      // Who has the token of the data folder gets a link for a browser at any time, and nobody else does.
      const link = yield* json("link")
      expect(link.url).toContain(`${story.url}/login?code=`)
      const entered = yield* Effect.promise(() => fetch(link.url, { redirect: "manual" }))
      expect([entered.status, entered.headers.has("set-cookie")]).toEqual([303, true])
      expect((yield* tropism("link")).out.join(" ")).toContain(`${story.url}/login?code=`)

      // Somebody new has to be given a role, and nothing is made before that is said.
      const roleless = yield* tropism("token", "create", "pipeline", "--user", "ci")
      expect(roleless.exitCode).toBe(2)
      expect(roleless.error).toMatch(/\bci\b.*--role\b/)
      expect(yield* json("members")).toEqual([])
      expect((yield* tropism("token", "create", "x", "--expires", "soon")).error).toContain("90d")
      expect((yield* tropism("token", "create", "x", "--expires", "soon")).exitCode).toBe(2)

      const before = Date.now()
      const said = yield* tropism(
        "token",
        "create",
        "pipeline",
        "--user",
        "ci",
        "--role",
        "editor",
        "--expires",
        "90d"
      )
      const text = said.out.join("\n")
      expect(text).toMatch(/\bci\b/)
      const secret = /tropism_[0-9a-f]{64}/.exec(text)?.[0] ?? ""
      expect(yield* refused(secret, "link")).toEqual([1, 403])
      expect((yield* as(secret, "members", "add", "eve", "--role", "admin")).exitCode).toBe(1)
      expect(yield* json("members")).toMatchObject([{ userId: "ci", role: "editor", addedBy: "admin" }])
      const [listed] = yield* json("token")
      expect(listed).toMatchObject({ name: "pipeline", userId: "ci", role: "editor" })
      const days = (Date.parse(listed.expiresAt) - before) / 86_400_000
      expect(Math.round(days)).toBe(90)

      // Who is a member already is not let in again, and their token may do what they may.
      const second = yield* json("token", "create", "--user", "ci")
      expect(second).toMatchObject({
        addedMember: false,
        role: "editor",
        name: "command line",
        expiresAt: null
      })
      yield* json("token", "revoke", second.id)
      expect(yield* refused(second.token, "members")).toEqual([1, 401])

      expect(yield* json("members", "change", "ci", "--role", "viewer")).toMatchObject({ role: "viewer" })
      expect((yield* tropism("members", "change", "ci", "--role", "king")).exitCode).toBe(2)
      expect((yield* json("members", "invite", "ci")).url).toContain("/login?code=")
      expect(yield* refused(story.token, "members", "add", "ci", "--role", "viewer")).toEqual([1, 409])
      yield* json("members", "remove", "ci")
      expect((yield* as(secret, "members")).exitCode).toBe(1)
      expect(yield* refused(story.token, "members", "remove", "ci")).toEqual([1, 404])

      // A token of one's own may do less than oneself, and oneself stays what one is.
      const reading = yield* json("token", "create", "reading", "--role", "viewer")
      expect(reading).toMatchObject({ userId: "admin", role: "viewer", addedMember: true })
      expect(yield* json("members")).toMatchObject([{ userId: "admin", role: "admin" }])
      expect((yield* as(reading.token, "members", "add", "eve", "--role", "viewer")).exitCode).toBe(1)
      yield* json("members", "add", "ed", "--role", "viewer")
      const capped = yield* tropism("token", "create", "more", "--user", "ed", "--role", "editor")
      expect(capped.out.join(" ")).toMatch(/\bed\b.*\bviewer\b.*"A story"/)

      const watcher = yield* json("token", "create", "prometheus", "--server")
      const ops = yield* json("token", "create", "ops", "--user", "ops", "--role", "admin", "--server")
      expect(yield* refused(ops.token, "link")).toEqual([1, 403])
      yield* json("token", "revoke", ops.id, "--server")
      expect(watcher).toMatchObject({ userId: "prometheus", role: "viewer", projectIds: [] })
      expect(yield* json("token", "--server")).toMatchObject([{ id: watcher.id }])
      yield* json("token", "revoke", watcher.id, "--server")
      expect(yield* json("token", "--server")).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
