/**
 * Agents with more tools than a provider takes in one request.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answering, oddServer, oddTool, said } from "../testing/mcp-odd-server.ts"
import { addServer } from "../testing/mcp-words.ts"
import type { Json } from "../testing/platform.ts"
import { newStoryHere } from "../testing/shared-server.ts"
import { callsOf } from "../testing/story-words.ts"
import { strictRequests, strictServer } from "../testing/strict-models.ts"

const inputSchema = { type: "object", properties: { query: { type: "string" } } }
const tools = [
  ...Array.from({ length: 150 }, (_, index) =>
    oddTool({ name: `tool_${index}`, description: "Does something.", inputSchema })
  ),
  oddTool({ name: "count_steps", description: "Counts.", inputSchema }),
  oddTool({ name: "walk", description: "Makes a step.", inputSchema })
]

/** A project with a server of so many tools, and an agent that may use all of them. */
const crowd = (model: Json) =>
  Effect.gen(function* () {
    const story = yield* newStoryHere
    const odd = yield* oddServer(
      ({ message }) => (message?.method === "tools/call" ? answering(message, said("Two.")) : undefined),
      { tools }
    )
    yield* addServer(story, { type: "http", url: odd.url })
    const agent = yield* story.post("/agents", {
      name: "walker",
      prompt: "Walk.",
      triggerType: "manual",
      executionMode: "execute",
      tools: ["graph.get_object", "shop.*"],
      model
    })
    return { story, odd, agent }
  })

layer(strictServer, { excludeTestServices: true })((it) => {
  describe("An agent with more tools than its provider takes", () => {
    it.effect("is saved with a warning that says so", () =>
      Effect.gen(function* () {
        const { agent } = yield* crowd({ provider: "openai-compatible", name: "crowded" })
        expect(agent.warnings).toEqual([
          { code: "tooManyTools", pointer: "/tools", message: expect.stringContaining("find_tools") }
        ])
        const { agent: other } = yield* crowd({ provider: "anthropic", name: "claude" })
        expect(other.warnings).toEqual([])
      })
    )

    it.effect("finds a tool by words, is offered it from the next step on, and calls it", () =>
      Effect.gen(function* () {
        const { agent, odd, story } = yield* crowd({ provider: "openai-compatible", name: "crowded" })
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
        expect(run).toMatchObject({
          status: "completed",
          errorMessage: null,
          summary: "Done.",
          missingTools: []
        })
        const offered = (strictRequests.get("crowded") ?? []).map((body) =>
          body.tools.map((tool: Json) => tool.function.name)
        )
        const found = ["get_object", "find_tools", "shop__count_steps", "shop__walk"]
        expect(offered).toEqual([["get_object", "find_tools"], found, found])
        const calls = yield* callsOf(story, run)
        expect(calls).toMatchObject([
          { tool: "find_tools", status: "completed", result: { matching: 2 } },
          { tool: "shop__count_steps", status: "completed", result: "Two." }
        ])
        expect(calls[0].result.tools).toMatchObject([
          { name: "shop__count_steps", inputSchema },
          { name: "shop__walk", description: "Makes a step." }
        ])
        expect(odd.of("tools/call")).toHaveLength(1)
        // What a request offered is what its record shows.
        const { request } = yield* story.get(`/runs/${run.id}/model-calls/2`)
        expect(request.tools.map(({ name }: Json) => name)).toEqual(found)
        expect((yield* story.get(`/contexts/${run.contextName}/replay`)).isEqual).toBe(true)
      })
    )

    it.effect("is offered all of them by a provider that takes any number", () =>
      Effect.gen(function* () {
        const { agent, story } = yield* crowd({ provider: "anthropic", name: "claude" })
        yield* story.post(`/agents/${agent.id}/trigger`, {})
        expect(strictRequests.get("claude")?.at(-1).tools).toHaveLength(tools.length + 1)
      })
    )
  })
})
