/**
 * What of an answer's tokens came from the provider's cache and what was thought, as OpenAI's clients are told it.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { chatChunk } from "../testing/fake-model-server.ts"
import { ModelsOnTheWire, type WireAnswer } from "../testing/model-on-the-wire.ts"
import { newModel, responseEvents, sendCompletion, sendResponse } from "../testing/openai-words.ts"
import type { Json } from "../testing/platform.ts"
import { claudeSays } from "../testing/provider-answers.ts"

const usage = {
  prompt_tokens: 100,
  completion_tokens: 20,
  total_tokens: 120,
  prompt_tokens_details: { cached_tokens: 80 },
  completion_tokens_details: { reasoning_tokens: 15 }
}

/** An answer that ends so and used as many tokens. */
const answer = (delta: Json, finish: string): WireAnswer => ({
  raw: [chatChunk(delta), chatChunk({}, finish), { ...Object(chatChunk({})), choices: [], usage }]
})

const call = {
  index: 0,
  id: "c",
  type: "function",
  function: { name: "search_objects", arguments: '{"query":"tea"}' }
}

/** Two steps of a turn: 200 tokens read, 160 of them from the cache, 40 written, 30 of them thought. */
const turn: readonly [WireAnswer, WireAnswer] = [
  answer({ tool_calls: [call] }, "tool_calls"),
  answer({ content: "Done." }, "stop")
]

const responseUsage = {
  input_tokens: 200,
  input_tokens_details: { cached_tokens: 160, cache_write_tokens: 0 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 30 },
  total_tokens: 240
}

layer(ModelsOnTheWire.ofEveryProvider, { excludeTestServices: true })((it) => {
  /** An agent whose model answers two turns so. */
  const clerk = Effect.gen(function* () {
    const models = yield* ModelsOnTheWire
    const story = yield* models.newStory
    const model = yield* models.model([...turn, ...turn])
    const agent = yield* newModel(story, "clerk", model.config)
    return { agent, story }
  })

  describe("The usage of an answer", () => {
    it.effect("of the Responses API says what was cached and what was thought, whole and streamed", () =>
      Effect.gen(function* () {
        const { story } = yield* clerk
        const whole = yield* sendResponse(story, { model: "clerk", input: "Hello" })
        expect(whole.body.usage).toEqual(responseUsage)
        const streamed = yield* sendResponse(story, { model: "clerk", input: "Again", stream: true })
        expect(responseEvents(streamed).at(-1)?.response.usage).toEqual(responseUsage)
      })
    )

    it.effect("of chat completions says both, whole and streamed", () =>
      Effect.gen(function* () {
        const { story } = yield* clerk
        const messages = [{ role: "user", content: "Hello" }]
        const told = {
          prompt_tokens: 200,
          prompt_tokens_details: { cached_tokens: 160 },
          completion_tokens: 40,
          completion_tokens_details: { reasoning_tokens: 30 },
          total_tokens: 240
        }
        const whole = yield* sendCompletion(story, { model: "clerk", messages })
        expect(whole.body.usage).toEqual(told)
        const streamed = yield* sendCompletion(story, {
          model: "clerk",
          messages: [{ role: "user", content: "Again" }],
          stream: true,
          stream_options: { include_usage: true }
        })
        expect(streamed.body).toContain(`"usage":${JSON.stringify(told)}`)
      })
    )

    it.effect("is that of the run, of its model calls and of the agent's day", () =>
      Effect.gen(function* () {
        const { agent, story } = yield* clerk
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
        const total = { inputTokens: 200, outputTokens: 40, cachedInputTokens: 160, reasoningTokens: 30 }
        expect(run).toMatchObject({ status: "completed", usage: total, total: { usage: total } })
        const calls = (yield* story.get(`/runs/${run.id}/model-calls`)).items
        expect(calls.map((each: Json) => each.usage.reasoningTokens)).toEqual([15, 15])
        expect((yield* story.get(`/agents/${agent.id}/usage`)).items).toMatchObject([{ usage: total }])
        expect((yield* story.get("/verify")).differences).toEqual([])
      })
    )

    it.effect("has what Claude's API wrote to its cache", () =>
      Effect.gen(function* () {
        const models = yield* ModelsOnTheWire
        const story = yield* models.newStory
        const written = { cache_creation_input_tokens: 900, cache_read_input_tokens: 300 }
        const raw = claudeSays("Done.", "end_turn", undefined, written)
        const model = yield* models.model([{ raw }], { provider: "anthropic" })
        const agent = yield* newModel(story, "clerk", model.config)
        const { body } = yield* sendResponse(story, { model: "clerk", input: "Hello" })
        expect(body.usage).toMatchObject({
          input_tokens: 1_210,
          input_tokens_details: { cached_tokens: 300, cache_write_tokens: 900 }
        })
        const [day] = (yield* story.get(`/agents/${agent.id}/usage`)).items
        expect(day.usage).toMatchObject({ cachedInputTokens: 300, cacheWriteTokens: 900 })
      })
    )
  })
})
