/** What a definition says beside the words reaches the provider in its own form: how much to think, and options. */
import { describe, expect, it } from "@effect/vitest"
import type { ModelConfig } from "@tropism/domain/model-config"
import { Effect } from "effect"
import { anthropicMessages } from "../../testing/providers/anthropic-messages.ts"
import { bedrock } from "../../testing/providers/bedrock.ts"
import { gemini, geminiOnVertex } from "../../testing/providers/gemini.ts"
import { mistral } from "../../testing/providers/mistral.ts"
import {
  azureChat,
  openaiChat,
  openaiCompatible,
  openrouterChat
} from "../../testing/providers/openai-chat.ts"
import { azureResponses, openaiResponses } from "../../testing/providers/openai-responses.ts"
import type { WireFormat } from "../../testing/providers/wire-format.ts"
import { serveAnswers, streaming } from "./fake-model-server.ts"
import { ask, asking, modelsIn } from "./models-for-tests.ts"

const key = "secret-key-abcdef-0123456789"

/** The body that a provider is sent for a model with these fields. */
const bodyFor = (format: WireFormat, more: Partial<ModelConfig>) =>
  Effect.gen(function* () {
    const server = yield* serveAnswers(streaming(format.answer({ words: ["Done."] })))
    const { maxOutputTokens: _most, temperature: _heat, ...model } = format.model
    yield* Effect.provide(ask({ ...model, ...more }, asking("hi")), modelsIn(format.env(server.url, key)))
    return Object(server.requests[0]?.body)
  }).pipe(Effect.scoped)

const budget = { type: "enabled", budget_tokens: expect.any(Number) }

const efforts: ReadonlyArray<readonly [WireFormat, string, NonNullable<ModelConfig["reasoning"]>, object]> = [
  [openaiChat, "gpt-5", "low", { reasoning_effort: "low" }],
  [openaiChat, "gpt-5.4", "none", { reasoning_effort: "none" }],
  [openaiResponses, "gpt-5.4", "high", { reasoning: { effort: "high" }, store: false }],
  [azureChat, "our-deployment", "medium", { reasoning_effort: "medium" }],
  [azureResponses, "our-deployment", "medium", { reasoning: { effort: "medium" }, store: false }],
  [anthropicMessages, "claude-sonnet-4-5", "low", { thinking: budget, cache_control: { type: "ephemeral" } }],
  [
    anthropicMessages,
    "claude-opus-4-6",
    "medium",
    { thinking: { type: "adaptive" }, output_config: { effort: "medium" } }
  ],
  [anthropicMessages, "claude-opus-4-6", "none", { thinking: { type: "disabled" } }],
  [gemini, "gemini-3.5-flash", "low", { generationConfig: { thinkingConfig: { thinkingLevel: "low" } } }],
  [gemini, "gemini-2.5-flash", "none", { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } }],
  [
    geminiOnVertex,
    "gemini-3.5-flash",
    "high",
    { generationConfig: { thinkingConfig: { thinkingLevel: "high" } } }
  ],
  [bedrock, bedrock.model.name, "high", { additionalModelRequestFields: { thinking: budget } }],
  [mistral, "mistral-medium-3-5", "high", { reasoning_effort: "high" }],
  [openrouterChat, "anthropic/claude-sonnet-5", "low", { reasoning: { effort: "low" } }],
  [openaiCompatible, "qwen3:8b", "medium", { reasoning_effort: "medium" }]
]

describe("model.reasoning", () => {
  for (const [format, name, reasoning, sent] of efforts)
    it.live(`is said to ${format.title} in its own form: ${reasoning} of ${name}`, () =>
      Effect.gen(function* () {
        expect(yield* bodyFor(format, { name, reasoning })).toMatchObject(sent)
      })
    )

  it.live("is left out where the definition says nothing, and where a model has none", () =>
    Effect.gen(function* () {
      for (const [format, name] of efforts) {
        const body = JSON.stringify(yield* bodyFor(format, { name }))
        expect([format.title, /effort|thinking|"reasoning"/i.exec(body)?.[0]]).toEqual([
          format.title,
          undefined
        ])
      }
      const body = yield* bodyFor(openaiResponses, { name: "gpt-4o", reasoning: "low" })
      expect(body).not.toHaveProperty("reasoning")
    })
  )

  it.live("goes to the fallback as well", () =>
    Effect.gen(function* () {
      const first = yield* serveAnswers({ kind: "json", status: 400, body: { error: { message: "no" } } })
      const second = yield* serveAnswers(streaming(openaiCompatible.answer({ words: ["Done."] })))
      const env = {
        ...mistral.env(first.url, key),
        ...openaiCompatible.env(second.url, key)
      }
      const model: ModelConfig = {
        ...mistral.model,
        reasoning: "high",
        providerOptions: { safePrompt: true },
        fallback: { provider: "openai-compatible", name: "m" }
      }
      yield* Effect.provide(ask(model, asking("hi")), modelsIn(env))
      expect(first.requests[0]?.body).toMatchObject({ reasoning_effort: "high", safe_prompt: true })
      expect(second.requests[0]?.body).toMatchObject({ reasoning_effort: "high" })
      expect(JSON.stringify(second.requests[0]?.body)).not.toContain("safe")
    }).pipe(Effect.scoped)
  )
})

const options: ReadonlyArray<readonly [WireFormat, NonNullable<ModelConfig["providerOptions"]>, object]> = [
  [
    openaiChat,
    { parallelToolCalls: false, user: "u1" },
    { parallel_tool_calls: false, user: "u1", store: false }
  ],
  [openaiResponses, { user: "u2" }, { user: "u2", store: false }],
  [azureResponses, { user: "u1" }, { user: "u1", store: false }],
  [anthropicMessages, { metadata: { userId: "u1" } }, { metadata: { user_id: "u1" } }],
  [gemini, { serviceTier: "flex" }, { serviceTier: "flex" }],
  [bedrock, { serviceTier: "flex" }, { serviceTier: { type: "flex" } }],
  [mistral, { promptCacheKey: "k" }, { prompt_cache_key: "k" }],
  [openrouterChat, { provider: { order: ["Anthropic"] } }, { provider: { order: ["Anthropic"] } }],
  [openaiCompatible, { top_k: 20 }, { top_k: 20 }]
]

describe("model.providerOptions", () => {
  for (const [format, providerOptions, sent] of options)
    it.live(`reach ${format.title} beside what the server says`, () =>
      Effect.gen(function* () {
        expect(yield* bodyFor(format, { providerOptions })).toMatchObject(sent)
      })
    )
})
