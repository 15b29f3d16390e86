/**
 * Signing in to an MCP server that wants OAuth by the command line: the link is printed, and waited for.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { outcomesOf } from "../../server/testing/mcp-runs.ts"
import { authorizationServer, guardedServer, newBrowser } from "../../server/testing/oauth-words.ts"
import { newProject, startServer } from "../../server/testing/platform.ts"
import { invokeWith, invokeWithInto, until } from "../testing/invoke.ts"

describe("Requirement: tropism tools sign-in", () => {
  it.live("prints the link, waits until somebody has signed in, and signs out", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const guarded = yield* guardedServer(yield* authorizationServer())
      const environment = { TROPISM_TOKEN: story.token }
      const tropism = (...args: ReadonlyArray<string>) =>
        invokeWith(environment, "mcp-servers", "--url", story.url, ...args)
      const added = yield* tropism("add", "shop", "-a", guarded.url, "--allow", "*")
      expect([added.exitCode, added.error]).toEqual([
        1,
        expect.stringMatching(/Signed out: sign in first.*"tropism mcp-servers sign-in shop"/)
      ])
      expect((yield* tropism("list")).out.join("\n")).toMatch(/shop +0 of 0 +signed out: sign in/)
      const only = yield* tropism("sign-in", "shop", "--no-wait")
      expect(only).toMatchObject({ exitCode: 0, out: [expect.stringMatching(/^http.*client_id=/)] })

      const out: Array<string> = []
      const waiting = yield* Effect.forkScoped(
        invokeWithInto(out, environment, "tools", "--url", story.url, "sign-in", "shop")
      )
      yield* until(() => out.join("\n").includes("client_id="))
      const browser = newBrowser()
      const link =
        out
          .join("\n")
          .split("\n")
          .find((line) => line.startsWith("http")) ?? ""
      yield* browser.press(yield* browser.open(link))
      expect((yield* Fiber.join(waiting)).exitCode).toBe(0)
      expect(out.join("\n")).toContain("Signed in to shop.")
      expect((yield* tropism("show", "shop")).out.join("\n")).toMatch(/sign-in +signed in by admin/)
      const [call] = yield* outcomesOf(story, [{ tool: "shop__lookup", arguments: { word: "fig" } }])
      expect(call).toMatchObject({ status: "completed" })

      expect((yield* tropism("sign-out", "shop")).out).toEqual(["Signed out of shop."])
      expect((yield* story.get("/mcp-servers")).items[0].signIn).toMatchObject({ status: "signedOut" })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )

  it.live("adds a server that each member signs in to, as a client that is known", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      yield* invokeWith(
        { TROPISM_TOKEN: story.token },
        "mcp-servers",
        "--url",
        story.url,
        "add",
        "crm",
        "-a",
        "https://crm.invalid/mcp",
        "--per-member",
        "--client-id",
        "known",
        "--client-secret",
        "TROPISM_SECRET_CRM",
        "--scope",
        "a",
        "--scope",
        "b"
      )
      expect((yield* story.get("/mcp-servers")).items[0]).toMatchObject({
        authorization: {
          type: "oauth",
          per: "member",
          clientId: "known",
          clientSecret: { secret: "TROPISM_SECRET_CRM" },
          scopes: ["a", "b"]
        },
        signIn: { per: "member", status: "signedOut" }
      })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})
