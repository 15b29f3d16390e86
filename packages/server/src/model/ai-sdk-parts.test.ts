/** What a provider package hands on although its server sent something else. */
import { describe, expect, it } from "@effect/vitest"
import type { LanguageModelV4StreamPart } from "@ai-sdk/provider"
import { Effect } from "effect"
import { toResponsePart } from "./ai-sdk-parts.ts"

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
