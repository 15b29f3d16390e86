/** What a provider package hands on although its server sent something else. */
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { toResponsePart } from "./ai-sdk-model.ts"

const teller = { scrub: (text: string) => text, where: "openai at https://api.example" }

describe("a part without the text that its type promises", () => {
  it.effect.each([
    { type: "text-delta", id: "0", delta: null },
    { type: "reasoning-delta", id: "0", delta: 7 },
    { type: "tool-input-delta", id: "0" },
    { type: "tool-call", toolCallId: null, toolName: "search_objects", input: "{}" },
    { type: "tool-call", toolCallId: "1", toolName: "search_objects", input: { type: "Person" } }
  ])("is an answer that no API allows: %j", (part) =>
    Effect.gen(function* () {
      const { reason } = yield* Effect.flip(toResponsePart(part as LanguageModelV4StreamPart, teller))
      expect(reason._tag).toBe("InvalidResponseError")
    })
  )
})

describe("why an answer ended, where a package does not know what its provider says", () => {
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
  const finish = (unified: string, raw?: string) =>
    toResponsePart(
      { type: "finish", finishReason: { unified, raw }, usage } as LanguageModelV4StreamPart,
      teller
    )

  it.effect.each([
    ["stop", "pause_turn", "pause"],
    ["other", "model_context_window_exceeded", "length"],
    ["other", "context_length_exceeded", "length"],
    ["other", "time_limit", "length"],
    ["other", "repetition_truncation", "length"],
    ["other", "compaction", "other"],
    ["other", "CONTENT_FILTER", "content-filter"],
    ["other", "LANGUAGE", "content-filter"],
    ["other", "end_turn", "stop"],
    ["other", "STOP", "stop"],
    ["other", "FINISH_REASON_UNSPECIFIED", "stop"],
    ["content-filter", "guardrail_intervened", "content-filter"]
  ] as const)("%s, from %s, is %s", ([unified, raw, reason]) =>
    Effect.gen(function* () {
      expect(yield* finish(unified, raw)).toMatchObject([{ type: "finish", reason }])
    })
  )

  it.effect.each([
    ["other", undefined],
    ["other", "error"],
    ["other", "OTHER"],
    ["other", "insufficient_system_resource"],
    ["other", "TOO_MANY_TOOL_CALLS"],
    ["other", "MISSING_THOUGHT_SIGNATURE"],
    ["other", "malformed_tool_use"],
    ["error", "error"]
  ] as const)("%s, from %s, is an answer that broke off", ([unified, raw]) =>
    Effect.gen(function* () {
      const { reason } = yield* Effect.flip(finish(unified, raw))
      expect(reason._tag).toBe("NetworkError")
    })
  )
})
