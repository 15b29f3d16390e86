/** Where a model's price comes from, and what an answer then cost. */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import type { ModelConfig } from "@tropism/domain/model-config"
import { Effect, FileSystem } from "effect"
import { chatChunk, events, serveAnswers } from "../../testing/fake-model-server.ts"
import { ask, asking, modelsIn } from "../../testing/models.ts"
import { naming } from "../../testing/naming.ts"
import { Models } from "./models.ts"
import { loadPrices } from "./prices.ts"

const env = { OPENAI_API_KEY: "sk-openai-0001", OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:1/v1" }

const priceOf = (model: ModelConfig, more: Record<string, string> = {}) =>
  Effect.gen(function* () {
    return (yield* (yield* Models).resolve({ agentName: "tester", model })).price
  }).pipe(Effect.provide(modelsIn({ ...env, ...more })))

/** A file with this text, until the scope ends. */
const fileWith = (text: string) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    const file = yield* fileSystem.makeTempFileScoped({ suffix: ".json" })
    yield* fileSystem.writeFileString(file, text)
    return file
  }).pipe(Effect.provide(NodeServices.layer))

const own = { inputPerMillion: 1, outputPerMillion: 2 }

describe("a model's window", () => {
  it.effect.each<readonly [string, string, number | undefined]>([
    ["openai", "gpt-4o-2024-08-06", 128_000],
    ["azure", "gpt-4o", 128_000],
    ["azure", "claude-haiku-4-5", 200_000],
    ["azure", "our-deployment", undefined],
    ["amazon-bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0", 200_000],
    ["amazon-bedrock", "global.anthropic.claude-sonnet-5-5", 1_000_000],
    [
      "amazon-bedrock",
      "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-haiku-4-5-20251001-v1:0",
      200_000
    ],
    ["amazon-bedrock", "mistral.magistral-small-2509", 128_000],
    ["amazon-bedrock", "meta.llama3-70b-instruct-v1:0", undefined],
    ["mistral", "mistral-medium-3-5", 256_000],
    ["openrouter", "anthropic/claude-sonnet-4.5:nitro", 200_000],
    ["openrouter", "google/gemini-2.5-pro", 1_048_576],
    ["openrouter", "openai/gpt-5.1", 400_000],
    ["openrouter", "mistralai/mistral-medium-3.5", 256_000],
    ["openrouter", "openai/gpt-4o:free", undefined],
    ["openrouter", "openrouter/auto", undefined],
    ["openai-compatible", "gpt-4o", undefined]
  ])("behind %s, of %s, is %s", ([provider, name, tokens]) =>
    Effect.gen(function* () {
      expect((yield* loadPrices).windowOf(provider, name)).toBe(tokens)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})

describe("a model's price", () => {
  it.effect("is the table's, also for a dated snapshot of a model", () =>
    Effect.gen(function* () {
      const listed = { inputPerMillion: 2.5, outputPerMillion: 10, cachedInputPerMillion: 1.25 }
      expect(yield* priceOf({ provider: "openai", name: "gpt-4o" })).toEqual(listed)
      expect(yield* priceOf({ provider: "openai", name: "gpt-4o-2024-08-06" })).toEqual(listed)
      expect(yield* priceOf({ provider: "openai", name: "gpt-4o-2024-05-13" })).toEqual({
        inputPerMillion: 5,
        outputPerMillion: 15
      })
    })
  )

  it.effect("is unknown for a model that nobody listed, and nothing for a script", () =>
    Effect.gen(function* () {
      expect(yield* priceOf({ provider: "openai", name: "gpt-4o-of-tomorrow" })).toBeNull()
      expect(yield* priceOf({ provider: "openai-compatible", name: "gpt-4o" })).toBeNull()
      const script = { rules: [{ say: "x" }] }
      expect(yield* priceOf({ provider: "scripted", name: "s", script })).toEqual({
        inputPerMillion: 0,
        outputPerMillion: 0
      })
    })
  )

  it.effect("is the operator's before the table's, and the definition's before both", () =>
    Effect.gen(function* () {
      const file = yield* fileWith(
        JSON.stringify({
          "openai:gpt-4o": own,
          "openai-compatible:llama3.1:8b": { ...own, cachedInputPerMillion: 0 }
        })
      )
      const more = { TROPISM_PRICES: file }
      expect(yield* priceOf({ provider: "openai", name: "gpt-4o" }, more)).toEqual(own)
      expect(yield* priceOf({ provider: "openai-compatible", name: "llama3.1:8b" }, more)).toEqual({
        ...own,
        cachedInputPerMillion: 0
      })
      expect(yield* priceOf({ provider: "openai", name: "gpt-4o-mini" }, more)).toMatchObject({
        inputPerMillion: 0.15
      })
      const price = { inputPerMillion: 7, outputPerMillion: 7 }
      expect(yield* priceOf({ provider: "openai", name: "gpt-4o", price }, more)).toEqual(price)
    }).pipe(Effect.scoped)
  )
})

describe("an operator's file that is wrong", () => {
  for (const [what, text, says] of [
    ["is no JSON", "{", "TROPISM_PRICES"],
    ["names no provider", '{"gpt-4o": {"inputPerMillion": 1, "outputPerMillion": 1}}', "provider:name"],
    [
      "names a provider that there is not",
      '{"opnai:gpt-4o": {"inputPerMillion": 1, "outputPerMillion": 1}}',
      "provider:name"
    ],
    ["leaves a price out", '{"openai:gpt-4o": {"inputPerMillion": 1}}', "outputPerMillion"],
    [
      "has a price below zero",
      '{"openai:gpt-4o": {"inputPerMillion": -1, "outputPerMillion": 1}}',
      "inputPerMillion"
    ],
    [
      "misspells a field",
      '{"openai:gpt-4o": {"inputPerMillion": 1, "outputPerMillion": 1, "cachedInput": 1}}',
      "cachedInput"
    ]
  ] as const) {
    it.effect(`because it ${what} is told so at the start`, () =>
      Effect.gen(function* () {
        const file = yield* fileWith(text)
        const error = yield* Effect.flip(
          priceOf({ provider: "openai", name: "gpt-4o" }, { TROPISM_PRICES: file })
        )
        expect(error).toMatchObject({ _tag: "PricesUnusable", message: expect.stringContaining(says) })
        expect(error.message).toContain(file)
      }).pipe(Effect.scoped)
    )
  }

  it.effect("because it is not there is told so at the start", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        priceOf({ provider: "openai", name: "gpt-4o" }, { TROPISM_PRICES: "/nowhere/prices.json" })
      )
      expect(error.message).toEqual(naming("/nowhere/prices.json", "TROPISM_PRICES"))
    })
  )
})

describe("what an answer cost", () => {
  const answer = (promptTokens: number, cachedTokens: number) =>
    events(
      chatChunk({ role: "assistant", content: "One" }, "stop"),
      {
        id: "chatcmpl-1",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [],
        usage: {
          prompt_tokens: promptTokens,
          completion_tokens: 10,
          total_tokens: promptTokens + 10,
          prompt_tokens_details: { cached_tokens: cachedTokens }
        }
      },
      "[DONE]"
    )

  const costOf = (model: ModelConfig, cachedTokens = 0) =>
    Effect.gen(function* () {
      const server = yield* serveAnswers(answer(1_000, cachedTokens))
      const parts = yield* Effect.provide(
        ask(model, asking("hi")),
        modelsIn({ OPENAI_API_KEY: "sk-openai-0001", OPENAI_BASE_URL: `${server.url}/v1` })
      )
      const finish = parts.at(-1)
      return finish?.type === "finish" ? finish.costMicros : undefined
    }).pipe(Effect.scoped)

  it.live("is told with it, cached input at its own price", () =>
    Effect.gen(function* () {
      expect(yield* costOf({ provider: "openai", name: "gpt-4o" })).toBe(2_600)
      expect(yield* costOf({ provider: "openai", name: "gpt-4o" }, 800)).toBe(200 * 2.5 + 800 * 1.25 + 100)
    })
  )

  it.live("is told to be unknown where the price is", () =>
    Effect.gen(function* () {
      expect(yield* costOf({ provider: "openai", name: "gpt-4o-of-tomorrow" })).toBeNull()
    })
  )

  it.live("is the fallback's where that one answered, and not the first model's", () =>
    Effect.gen(function* () {
      // A rule that cannot be followed is refused at once.
      const script = { rules: [{ when: "message" }] }
      const broken: ModelConfig = {
        provider: "scripted",
        name: "broken",
        script,
        price: { inputPerMillion: 1_000, outputPerMillion: 1_000 },
        fallback: { provider: "openai", name: "gpt-4o" }
      }
      expect(yield* costOf(broken)).toBe(2_600)
      expect(yield* costOf({ ...broken, fallback: { provider: "openai", name: "gpt-4o", price: own } })).toBe(
        1_020
      )
    })
  )
})
