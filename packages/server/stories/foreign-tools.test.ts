/**
 * Tools of foreign MCP servers, over both transports, called by real runs.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { addServer, httpServer, newDiary, program } from "../testing/mcp-words.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { calling, callsOf, type ScriptedCall } from "../testing/story-words.ts"

/** An agent that makes calls when it is told to, and the run in which it did. */
const runOf = (
  story: Story,
  calls: ReadonlyArray<ScriptedCall>,
  overrides: Record<string, unknown> = {}
): Effect.Effect<Json> =>
  Effect.gen(function* () {
    const agent = yield* story.post("/agents", {
      name: "buyer",
      prompt: "Go.",
      triggerType: "manual",
      executionMode: "execute",
      tools: ["shop.*"],
      model: calling(...calls),
      ...overrides
    })
    return yield* story.post(`/agents/${agent.id}/trigger`, {})
  })

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A foreign tool", () => {
    it.effect("over stdio is called once, and recorded as begun and as answered", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const server = yield* addServer(story, program(diary))
        expect(server.lastError).toBe(null)
        expect(server.tools.map((tool: Json) => tool.name)).toContain("charge")
        const run = yield* runOf(story, [{ tool: "shop__charge", arguments: { amount: 3 } }])
        expect(run.status).toBe("completed")
        const [call] = yield* callsOf(story, run)
        expect(call).toMatchObject({ tool: "shop__charge", status: "completed", result: "Charged 3." })
        expect(yield* diary.called).toEqual([{ tool: "charge", arguments: { amount: 3 } }])
        const log = (yield* story.get(`/runs/${run.id}/events`)).items
        expect(
          log.filter((event: Json) => event.type.startsWith("ToolCall")).map((event: Json) => event.type)
        ).toEqual(["ToolCallStartedEvent", "ToolCallCompletedEvent"])
      })
    )

    it.effect("over Streamable HTTP is called once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const diary = yield* newDiary
        const { heard, url } = yield* httpServer(diary)
        yield* addServer(story, { type: "http", url })
        const run = yield* runOf(story, [{ tool: "shop__lookup", arguments: { word: "fig" } }])
        expect(run.status).toBe("completed")
        expect((yield* callsOf(story, run))[0]).toMatchObject({
          status: "completed",
          result: "fig is a word."
        })
        expect(heard.filter(({ body }) => body?.method === "tools/call")).toHaveLength(1)
      })
    )
  })
})
