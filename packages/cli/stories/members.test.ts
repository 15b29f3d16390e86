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
      expect((yield* tropism("link")).out.join(" ")).toContain("once, within")

      // Somebody new has to be given a role, and nothing is made before that is said.
      const roleless = yield* tropism("token", "create", "pipeline", "--user", "ci")
      expect(roleless.exitCode).toBe(2)
      expect(roleless.error).toContain("ci is no member")
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
      expect(text).toContain("ci was let into")
      expect(text).toContain("shown this once")
      const secret = /tropism_[0-9a-f]{64}/.exec(text)?.[0] ?? ""
      expect((yield* as(secret, "link")).error).toContain("This is for the server's admin")
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
      expect((yield* as(second.token, "members")).error).toContain("does not accept this token")

      expect(yield* json("members", "change", "ci", "--role", "viewer")).toMatchObject({ role: "viewer" })
      expect((yield* tropism("members", "change", "ci", "--role", "king")).exitCode).toBe(2)
      expect((yield* json("members", "invite", "ci")).url).toContain("/login?code=")
      expect((yield* tropism("members", "add", "ci", "--role", "viewer")).error).toContain("already")
      yield* json("members", "remove", "ci")
      expect((yield* as(secret, "members")).exitCode).toBe(1)
      expect((yield* tropism("members", "remove", "ci")).error).toContain("no such member")

      // A token of one's own may do less than oneself, and oneself stays what one is.
      const reading = yield* json("token", "create", "reading", "--role", "viewer")
      expect(reading).toMatchObject({ userId: "admin", role: "viewer", addedMember: true })
      expect(yield* json("members")).toMatchObject([{ userId: "admin", role: "admin" }])
      expect((yield* as(reading.token, "members", "add", "eve", "--role", "viewer")).exitCode).toBe(1)
      yield* json("members", "add", "ed", "--role", "viewer")
      const capped = yield* tropism("token", "create", "more", "--user", "ed", "--role", "editor")
      expect(capped.out.join(" ")).toContain('ed is viewer in "A story", and while that is so')

      const watcher = yield* json("token", "create", "prometheus", "--server")
      const ops = yield* json("token", "create", "ops", "--user", "ops", "--role", "admin", "--server")
      expect((yield* as(ops.token, "link")).error).toContain("your token is ops's")
      yield* json("token", "revoke", ops.id, "--server")
      expect(watcher).toMatchObject({ userId: "prometheus", role: "viewer", projectIds: [] })
      expect(yield* json("token", "--server")).toMatchObject([{ id: watcher.id }])
      yield* json("token", "revoke", watcher.id, "--server")
      expect(yield* json("token", "--server")).toEqual([])
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
