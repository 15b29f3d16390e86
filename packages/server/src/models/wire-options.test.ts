/** What a definition says beside the words reaches the provider in its own form: how much to think, and options. */
import { describe, expect, it } from "@effect/vitest"
import type { ModelConfig } from "@tropism/domain/model-config"
import { Effect } from "effect"
import { type FakeAnswer, serveAnswers, streaming } from "../../testing/fake-model-server.ts"
import { ask, asking, modelsIn, textOf } from "../../testing/models.ts"
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
import type { ModelRequest } from "./model-request.ts"

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

describe("Encrypted reasoning", () => {
  it.live.each<readonly [WireFormat, string, boolean]>([
    [azureResponses, "our-deployment", true],
    [azureResponses, "gpt-4o", false],
    [openaiResponses, "ft:o4-mini:acme::x1", true],
    [openaiResponses, "ft:gpt-4.1:acme::x1", false],
    [openaiResponses, "gpt-5", true],
    [openaiResponses, "gpt-4o", false]
  ])("$0.title: of $1 is asked for: $2", ([format, name, isAskedFor]) =>
    Effect.gen(function* () {
      const { include = [] } = yield* bodyFor(format, { name })
      expect(include).toEqual(isAskedFor ? ["reasoning.encrypted_content"] : [])
    })
  )

  it.live("is not asked for again where a deployment has none", () =>
    Effect.gen(function* () {
      const error = {
        message: "Encrypted content is not supported with this model.",
        type: "invalid_request_error"
      }
      const server = yield* serveAnswers(
        { kind: "json", status: 400, body: { error } },
        streaming(azureResponses.answer({ words: ["Done."] }))
      )
      const { maxOutputTokens: _most, temperature: _heat, ...model } = azureResponses.model
      const parts = yield* Effect.forEach([1, 2], () => ask(model, asking("hi"))).pipe(
        Effect.provide(modelsIn(azureResponses.env(server.url, key)))
      )
      expect(parts.map(textOf)).toEqual(["Done.", "Done."])
      expect(server.requests.map(({ body }) => Object(body).include ?? [])).toEqual([
        ["reasoning.encrypted_content"],
        [],
        []
      ])
    }).pipe(Effect.scoped)
  )

  it.live("comes with the effort of a fine-tuned model", () =>
    Effect.gen(function* () {
      const body = yield* bodyFor(openaiResponses, { name: "ft:o4-mini:acme::x1", reasoning: "low" })
      expect(body).toMatchObject({ reasoning: { effort: "low" }, include: ["reasoning.encrypted_content"] })
    })
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

/** A turn in which these models called a tool, one after another; in the turn before, another model did. */
const turnOf = (...models: readonly [string, ...ReadonlyArray<string>]): ModelRequest => {
  const called = (model: string, id: string): ModelRequest["messages"] => [
    {
      role: "assistant",
      content: [{ type: "tool-call", id, name: "look", params: {} }],
      options: {
        tropism: {
          model,
          parts: [
            {
              type: "reasoning",
              text: "I think.",
              metadata: { anthropic: { signature: "c2ln" }, bedrock: { signature: "c2ln" } }
            },
            { type: "toolCall", id }
          ]
        }
      }
    },
    { role: "tool", content: [{ type: "tool-result", id, name: "look", isFailure: false, result: "Tea." }] }
  ]
  return {
    messages: [
      { role: "user", content: "Hello" },
      ...called("openai-compatible:other", "toolu_0"),
      { role: "assistant", content: [{ type: "text", text: "Hello." }] },
      { role: "user", content: "Look." },
      ...models.flatMap((model, index) => called(model, `toolu_${index + 1}`))
    ],
    tools: [{ name: "look", description: "Looks", inputSchema: { type: "object", properties: {} } }]
  }
}

/** The bodies that a provider is sent for these requests; it refuses the first one, if a refusal is given. */
const bodiesFor = (
  format: WireFormat,
  more: Partial<ModelConfig>,
  refusal: string | undefined,
  ...requests: ReadonlyArray<ModelRequest>
) =>
  Effect.gen(function* () {
    const answer = streaming(format.answer({ words: ["Done."] }))
    const first: FakeAnswer =
      refusal === undefined ? answer : { kind: "json", status: 400, body: format.refusal(400, refusal) }
    const server = yield* serveAnswers(first, answer)
    yield* Effect.provide(
      Effect.forEach(requests, (request) => ask({ ...format.model, ...more }, request)),
      modelsIn(format.env(server.url, key))
    )
    return server.requests.map(({ body }) => Object(body))
  }).pipe(Effect.scoped)

describe("A turn that another model began", () => {
  const other = "openai-compatible:other"
  const own = "anthropic:claude-sonnet-4-5"
  const expected =
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block."

  it.live("is finished without thinking by a Claude that would demand the thinking of each call", () =>
    Effect.gen(function* () {
      const { maxOutputTokens: _most, temperature: _heat, ...model } = anthropicMessages.model
      const given: ReadonlyArray<readonly [Partial<ModelConfig>, ModelRequest]> = [
        [{ reasoning: "low" }, turnOf(other)],
        [{ reasoning: "low" }, turnOf(other, own)],
        [{ reasoning: "low" }, turnOf(own)],
        [{ providerOptions: { thinking: { type: "enabled", budgetTokens: 2_000 } } }, turnOf(other)],
        [{ providerOptions: { thinking: { type: "enabled", budgetTokens: 2_000 } } }, turnOf(own)],
        [{ reasoning: "low", name: "claude-opus-4-6" }, turnOf(other)]
      ]
      const sent = yield* Effect.forEach(given, ([more, request]) =>
        bodiesFor({ ...anthropicMessages, model }, more, undefined, request)
      )
      expect(sent.map((bodies) => bodies.map(({ thinking }) => thinking?.type))).toEqual([
        [undefined],
        [undefined],
        ["enabled"],
        [undefined],
        ["enabled"],
        ["adaptive"]
      ])
    })
  )

  it.live("is asked again without thinking where a model demands it, and later ones at once", () =>
    Effect.gen(function* () {
      const name = "our-claude"
      const { maxOutputTokens: _most, temperature: _heat, ...model } = anthropicMessages.model
      const bodies = yield* bodiesFor(
        { ...anthropicMessages, model },
        { name, reasoning: "low" },
        expected,
        turnOf(other),
        turnOf(other),
        turnOf(`anthropic:${name}`)
      )
      expect(bodies.map(({ thinking }) => thinking?.type)).toEqual([
        "enabled",
        undefined,
        undefined,
        "enabled"
      ])
    })
  )

  it.live("is finished without thinking at Bedrock, too", () =>
    Effect.gen(function* () {
      const name = "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
      const bodies = yield* bodiesFor(
        bedrock,
        { name, reasoning: "low" },
        undefined,
        turnOf(other),
        turnOf(`amazon-bedrock:${name}`)
      )
      expect(bodies.map((body) => body.additionalModelRequestFields?.thinking?.type)).toEqual([
        undefined,
        "enabled"
      ])
    })
  )

  it.live("has Google's placeholder for the signatures of its calls where a server demands them", () =>
    Effect.gen(function* () {
      const bodies = yield* bodiesFor(
        openaiCompatible,
        { name: "gemini-3-pro" },
        "Function call is missing a thought_signature in functionCall parts.",
        turnOf(other),
        turnOf(other)
      )
      const placeholder = { google: { thought_signature: "skip_thought_signature_validator" } }
      expect(
        bodies.map(({ messages }) =>
          messages.flatMap(
            (message: { readonly tool_calls?: ReadonlyArray<{ readonly extra_content?: unknown }> }) =>
              (message.tool_calls ?? []).map(({ extra_content }) => extra_content)
          )
        )
      ).toEqual([
        [undefined, undefined],
        [placeholder, placeholder],
        [placeholder, placeholder]
      ])
    })
  )

  it.live(
    "keeps the signature that a model gave to the first of its calls, and adds none to the others",
    () =>
      Effect.gen(function* () {
        const name = "gemini-3-pro"
        const signed: ModelRequest = {
          ...turnOf(other),
          messages: [
            ...turnOf(other).messages,
            {
              role: "assistant",
              content: ["a", "b"].map((id) => ({ type: "tool-call", id, name: "look", params: {} })),
              options: {
                tropism: {
                  model: `openai-compatible:${name}`,
                  parts: [
                    { type: "toolCall", id: "a", metadata: { google: { thoughtSignature: "own" } } },
                    { type: "toolCall", id: "b" }
                  ]
                }
              }
            },
            {
              role: "tool",
              content: ["a", "b"].map((id) => ({
                type: "tool-result",
                id,
                name: "look",
                isFailure: false,
                result: "Tea."
              }))
            }
          ]
        }
        const bodies = yield* bodiesFor(openaiCompatible, { name }, "missing a `thought_signature`", signed)
        const last = bodies.at(-1).messages.findLast((message: object) => "tool_calls" in message)
        expect(last.tool_calls.map(({ extra_content }: Record<string, unknown>) => extra_content)).toEqual([
          { google: { thought_signature: "own" } },
          undefined
        ])
      })
  )
})
