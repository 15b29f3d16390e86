/**
 * Programs of this machine and addresses of its network as MCP servers: who may name them.
 */
import { hostname } from "node:os"
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { OutsideNetwork } from "../src/agents/outside-network.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { outcomesOf } from "../testing/mcp-runs.ts"
import { addServer, httpServer, newDiary, program } from "../testing/mcp-words.ts"
import { newProject, startServer } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { asUser } from "../testing/token-words.ts"

/** The operator's environment. */
const environment = (values: Record<string, string>) =>
  ConfigProvider.layer(ConfigProvider.fromEnv({ env: { PATH: process.env["PATH"] ?? "", ...values } }))

describe("Where the operator has said nothing and the server is on loopback", () => {
  it.effect("only whoever has the server adds what is local: an admin of a project is none of them", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const story = yield* newProject(yield* startServer(access), access)
      const diary = yield* newDiary
      const { heard, url } = yield* httpServer(diary)
      const boss = yield* asUser(story, "admin", [story.projectId], "boss")
      for (const transport of [program(diary), { type: "http", url }]) {
        const denied = yield* boss.ask("POST", "/mcp-servers", { name: "shop", transport })
        expectProblem(denied, 403)
        expect(denied.body.detail).toContain("TROPISM_LOCAL_MCP_SERVERS")
      }
      const named = `http://${hostname()}:${new URL(url).port}/mcp`
      const outside = yield* boss.post("/mcp-servers", {
        name: "named",
        transport: { type: "http", url: named }
      })
      expect(outside.lastError).toContain("TROPISM_LOCAL_MCP_SERVERS")
      const path = `/mcp-servers/${outside.id}`
      expectProblem(yield* boss.ask("PATCH", path, { transport: program(diary) }), 403)
      expect([heard, yield* diary.started]).toEqual([[], []])
      const own = yield* story.post("/mcp-servers", {
        name: "own",
        transport: program(diary),
        allowedTools: ["*"]
      })
      expect(own.lastError).toBeNull()
      // What is there already an admin of the project may narrow.
      expect(yield* boss.patch(`/mcp-servers/${own.id}`, { allowedTools: [] })).toMatchObject({
        allowedTools: []
      })
    })
  )
})

describe("Where the operator allows no local servers", () => {
  it.effect("neither programs nor local addresses are taken, and the refusal says who may change that", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const doors = yield* Effect.provide(
        startServer(access),
        environment({ TROPISM_LOCAL_MCP_SERVERS: "false" })
      )
      const story = yield* newProject(doors, access)
      const diary = yield* newDiary
      const { heard, url } = yield* httpServer(diary)
      const port = new URL(url).port
      for (const transport of [
        program(diary),
        ...[
          url,
          `http://localhost:${port}/mcp`,
          `http://[::1]:${port}/mcp`,
          `http://2130706433:${port}/mcp`,
          "http://169.254.169.254/latest",
          "http://10.1.2.3/mcp",
          `http://[::ffff:127.0.0.1]:${port}/mcp`
        ].map((address) => ({ type: "http", url: address }))
      ]) {
        const answer = yield* story.ask("POST", "/mcp-servers", { name: "shop", transport })
        expectProblem(answer, 409)
        expect(answer.body.detail).toContain("TROPISM_LOCAL_MCP_SERVERS")
      }
      // A name says nothing of where it leads: it is looked up where each request connects.
      const named = yield* addServer(story, { type: "http", url: `http://${hostname()}:${port}/mcp` })
      expect(named).toMatchObject({
        tools: [],
        lastError: expect.stringContaining("TROPISM_LOCAL_MCP_SERVERS")
      })
      expect(heard).toEqual([])
      expect(yield* diary.started).toEqual([])
    })
  )

  it.effect("a name that leads outside when it is judged and inside when it is called reaches nothing", () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const diary = yield* newDiary
      const { heard, url } = yield* httpServer(diary)
      const { port } = new URL(url)
      // 127.0.0.1 stands for the world, and 127.0.0.2 for what lies inside.
      const state = { isInside: false, looked: 0 }
      const doors = yield* startServer(access).pipe(
        Effect.provide(environment({ TROPISM_LOCAL_MCP_SERVERS: "false" })),
        Effect.provideService(OutsideNetwork, {
          mayReach: (address) => address === "127.0.0.1",
          lookup: (_name, options, callback) => {
            state.looked += 1
            const address = state.isInside ? "127.0.0.2" : "127.0.0.1"
            return options.all ? callback(null, [{ address, family: 4 }]) : callback(null, address, 4)
          }
        })
      )
      const story = yield* newProject(doors, access)
      const server = yield* addServer(story, { type: "http", url: `http://outside.test:${port}/mcp` })
      expect(server).toMatchObject({ lastError: null })
      // One look for each request: there is none of which the connection does not know.
      expect(state.looked).toBe(heard.length)
      const before = heard.length
      state.isInside = true
      const [call] = yield* outcomesOf(story, [{ tool: "shop__lookup", arguments: { word: "fig" } }])
      expect(call).toMatchObject({
        status: "failed",
        result: { reason: "unavailable", error: expect.stringContaining("outside.test") }
      })
      expect(heard).toHaveLength(before)
      expect(yield* diary.called).toEqual([])
    })
  )
})
