/**
 * Foreign MCP servers by the command line: added, looked at, called by an agent, changed and removed.
 */
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { outcomesOf } from "../../server/testing/mcp-runs.ts"
import { answering, oddServer } from "../../server/testing/mcp-odd-server.ts"
import { newDiary } from "../../server/testing/mcp-words.ts"
import { type Json, newProject, startServer } from "../../server/testing/platform.ts"
import { invokeWith } from "../testing/invoke.ts"

const script = join(import.meta.dirname, "../../server/testing/mcp-stdio-server.ts")

describe("Requirement: tropism mcp-servers", () => {
  it.live("adds a program, allows its tools one by one, refreshes and removes it", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const diary = yield* newDiary
      const tropism = (...args: ReadonlyArray<string>) =>
        invokeWith({ TROPISM_TOKEN: story.token }, "mcp-servers", "--url", story.url, ...args)
      expect((yield* tropism("list", "--json")).out).toEqual(["[]"])

      const flags = ["--env", `CALLS=${diary.calls}`, "--env", `OVERLAY=${diary.overlay}`, "--allow", "look*"]
      const made = yield* tropism("add", "shop", ...flags, "--", process.execPath, script)
      expect([made.exitCode, made.error]).toEqual([0, ""])
      expect(made.out.join("\n")).toMatch(/\+ shop__lookup {2}Looks a word up\.\n- shop__charge/)
      expect((yield* tropism("list")).out.join("\n")).toMatch(/shop +1 of 9 +pinned/)
      const [call] = yield* outcomesOf(story, [{ tool: "shop__lookup", arguments: { word: "fig" } }])
      expect(call).toMatchObject({ status: "completed" })

      yield* tropism("set", "shop", "--allow", "charge", "--idempotent", "charge", "--timeout", "900")
      const shown = JSON.parse((yield* tropism("show", "shop", "--json")).out.join("\n"))
      expect(shown).toMatchObject({
        allowedTools: ["charge"],
        idempotentTools: ["charge"],
        callTimeoutMs: 900,
        enabled: true
      })
      yield* diary.say({ gift: { description: "Gives." } })
      expect((yield* tropism("refresh", "shop")).out.join("\n")).toContain("- shop__gift  Gives.")
      const off = yield* tropism("set", "shop", "--no-enabled", "--json")
      expect(JSON.parse(off.out.join("\n"))).toMatchObject({ name: "shop", enabled: false })
      const resting = yield* tropism("refresh", "shop", "--json")
      expect([resting.exitCode, JSON.parse(resting.error).error.problem]).toEqual([
        1,
        expect.objectContaining({ status: 409, reason: "state" })
      ])
      expect((yield* tropism("remove", "shop")).exitCode).toBe(0)
      const gone = yield* tropism("show", "shop")
      expect([gone.exitCode, gone.error]).toEqual([1, expect.stringContaining('"shop"')])
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("tells a server that answered with a bad list from one that was not reached", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const tropism = (...args: ReadonlyArray<string>) =>
        invokeWith({ TROPISM_TOKEN: story.token }, "mcp-servers", "--url", story.url, ...args)
      const lists = {
        refused: ({ id }: Json) =>
          Response.json({ jsonrpc: "2.0", id, error: { code: -32603, message: "The shelf fell down" } }),
        unread: (message: Json) => answering(message, { tools: "none" }),
        failed: () => new Response("The shelf fell down", { status: 500 })
      }
      for (const [name, list] of Object.entries(lists)) {
        const odd = yield* oddServer(({ message }) =>
          message?.method === "tools/list" ? list(message) : undefined
        )
        const added = yield* tropism("add", name, "-a", odd.url)
        expect([added.exitCode, added.error]).toEqual([
          1,
          expect.stringMatching(/answered.*tropism mcp-servers refresh/)
        ])
        expect(added.error).not.toContain("not reached")
      }
      yield* tropism("add", "away", "-a", "http://127.0.0.1:1/mcp")
      const listed = (yield* tropism("list")).out.join("\n")
      for (const name of Object.keys(lists))
        expect(listed).toMatch(new RegExp(`${name} +0 of 0 +bad list of tools`))
      expect(listed).toMatch(/away +0 of 0 +not reached/)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("names secrets and does not take them", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const add = (...args: ReadonlyArray<string>) =>
        invokeWith({ TROPISM_TOKEN: story.token }, "mcp-servers", "add", "crm", "--url", story.url, ...args)
      const address = ["-a", "http://127.0.0.1:9/mcp", "--header"]
      const typed = yield* add(...address, "Authorization=Bearer abc")
      expect([typed.exitCode, typed.error]).toEqual([
        1,
        expect.stringMatching(/Authorization: (?!.*Bearer).*"TROPISM_SECRET_/)
      ])
      const nameless = yield* add(...address, "nonsense")
      expect([nameless.exitCode, nameless.error]).toEqual([2, expect.stringContaining("NAME=value")])
      const nowhere = yield* add()
      expect([nowhere.exitCode, nowhere.error]).toEqual([2, expect.stringContaining("--address")])
      expect((yield* story.get("/mcp-servers")).items).toEqual([])
      const named = yield* add(...address, "Authorization=Bearer secret:TROPISM_SECRET_CRM", "--json")
      expect(JSON.parse(named.out.join("\n"))).toMatchObject({
        transport: { headers: { Authorization: { secret: "TROPISM_SECRET_CRM", prefix: "Bearer " } } },
        lastError: expect.stringContaining("TROPISM_SECRET_CRM")
      })
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
