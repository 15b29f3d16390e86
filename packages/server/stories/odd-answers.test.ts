/**
 * Answers that no model should give: the agent, or whoever reads its run, is told what was odd.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { chatChunk, chatEnd, events } from "../testing/fake-model-server.ts"
import { answering, newProviderStory } from "../testing/provider-story.ts"
import type { Json } from "../testing/platform.ts"
import { callsOf } from "../testing/story-words.ts"

const callsNameless = events(
  chatChunk({
    tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "", arguments: "{}" } }]
  }),
  ...chatEnd("tool_calls")
)

describe("An answer that no model should give", () => {
  it.live("a call without a name is answered like one of an unknown tool", () =>
    Effect.gen(function* () {
      const { agent, provider, story } = yield* newProviderStory([callsNameless, answering("Sorry.")])
      const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
      expect(run).toMatchObject({ status: "completed", summary: "Sorry." })
      const [told] = Object(provider.requests[1]?.body).messages.filter(({ role }: Json) => role === "tool")
      expect(told).toMatchObject({ content: expect.stringContaining("search_objects") })
      expect(yield* callsOf(story, run)).toMatchObject([{ status: "refused" }])
    }).pipe(Effect.scoped)
  )

  it.live("the tokens of a server that does not count are guessed, and budgets count them", () =>
    Effect.gen(function* () {
      const silent = events(
        chatChunk({
          content: "x".repeat(400),
          tool_calls: [
            {
              index: 0,
              id: "call_1",
              type: "function",
              function: { name: "search_objects", arguments: "{}" }
            }
          ]
        }),
        chatChunk({}, "tool_calls"),
        "[DONE]"
      )
      const budget = { perRun: { maxTokens: 100 } }
      const { agent, story } = yield* newProviderStory([silent], { budget })
      const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
      expect(run).toMatchObject({ status: "paused", pauseReason: "budget", stepCount: 1 })
      const { items } = yield* story.get(`/runs/${run.id}/model-calls`)
      expect(items).toMatchObject([{ isUsageEstimated: true, usage: run.usage }])
      expect(run.usage.outputTokens).toBe(104)
      expect(run.usage.inputTokens).toBeGreaterThan(100)
    }).pipe(Effect.scoped)
  )
})
