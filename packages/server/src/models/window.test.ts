/** A model's window, over a real socket: what is refused as too long is asked again with less, and what was learned holds. */
import { describe, expect, it } from "@effect/vitest"
import type { Message } from "@tropism/domain/message"
import { Effect, Stream } from "effect"
import { type FakeAnswer, serveAnswers, streaming } from "../../testing/fake-model-server.ts"
import { asking, modelsIn } from "../../testing/models.ts"
import { openaiCompatible } from "../../testing/providers/openai-chat.ts"
import type { ModelTry } from "./model-request.ts"
import { Models } from "./models.ts"
import { saysTooLong } from "./window.ts"

/** Refusals as providers and servers word them, with what a body says beside. */
const refusals: ReadonlyArray<readonly [who: string, status: number, body: unknown]> = [
  [
    "OpenAI",
    400,
    {
      error: {
        message:
          "This model's maximum context length is 2048 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.",
        code: "context_length_exceeded"
      }
    }
  ],
  [
    "OpenAI, Responses",
    400,
    {
      error: {
        message:
          "Your input exceeds the context window of this model. Please adjust your input and try again.",
        code: "context_length_exceeded"
      }
    }
  ],
  [
    "OpenAI, tokens per minute",
    429,
    {
      error: {
        message:
          "Request too large for gpt-4o in organization org on tokens per min (TPM): Limit 2048, Requested 9000. The input or output tokens must be reduced in order to run successfully.",
        code: "rate_limit_exceeded"
      }
    }
  ],
  [
    "Anthropic",
    400,
    {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 9000 tokens > 2048 maximum" }
    }
  ],
  [
    "Anthropic, with max_tokens",
    400,
    {
      error: {
        message:
          "input length and `max_tokens` exceed context limit: 9000 + 500 > 2048, decrease input length or `max_tokens` and try again"
      }
    }
  ],
  [
    "Anthropic, by bytes",
    413,
    { error: { type: "request_too_large", message: "Request exceeds the maximum size" } }
  ],
  [
    "Google",
    400,
    {
      error: {
        code: 400,
        message: "The input token count (9000) exceeds the maximum number of tokens allowed (2048).",
        status: "INVALID_ARGUMENT"
      }
    }
  ],
  [
    "Mistral",
    400,
    {
      object: "error",
      message:
        "Prompt contains 9000 tokens and 0 draft tokens, too large for model with 2048 maximum context length",
      type: "invalid_request_prompt"
    }
  ],
  ["Bedrock", 400, { message: "Input is too long for requested model." }],
  ["xAI", 400, { error: "This model's maximum prompt length is 2048 but the request contains 9000 tokens." }],
  [
    "vLLM",
    400,
    {
      object: "error",
      message:
        "This model's maximum context length is 2048 tokens. However, you requested 9000 tokens in the messages, Please reduce the length of the messages.",
      code: 400
    }
  ],
  [
    "llama.cpp",
    400,
    {
      error: {
        code: 400,
        message:
          "the request exceeds the available context size. try increasing the context size or enable context shift",
        type: "exceed_context_size_error"
      }
    }
  ],
  [
    "LM Studio",
    400,
    {
      error:
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length, or provide a shorter input"
    }
  ],
  [
    "TGI",
    422,
    {
      error:
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 9000 `inputs` tokens and 100 `max_new_tokens`",
      error_type: "validation"
    }
  ],
  [
    "OpenRouter",
    400,
    {
      error: {
        message:
          "This endpoint's maximum context length is 2048 tokens. However, you requested about 9000 tokens (9000 of text input).",
        code: 400
      }
    }
  ],
  ["Kimi", 400, { error: { message: "Your request exceeded model token limit: 2048 (requested: 9000)" } }],
  ["DashScope", 400, { message: "Range of input length should be [1, 2048]", code: "InvalidParameter" }],
  [
    "TGI, of its inputs",
    422,
    { error: "Input validation error: `inputs` must have less than 2048 tokens. Given: 9000" }
  ],
  ["ExLlama", 400, { error: { message: "Prompt exceeds max_seq_len 2048" } }],
  ["a proxy, by bytes", 413, { message: "Payload Too Large" }],
  [
    "OpenAI, of one text",
    400,
    {
      error: {
        message:
          "Invalid 'messages[1].content': string too long. Expected a string with maximum length 2048.",
        code: "string_above_max_length"
      }
    }
  ],
  [
    "LiteLLM, as a failure of its own",
    500,
    { error: { message: "litellm.ContextWindowExceededError: context length exceeded", code: "500" } }
  ]
]

const long = (chars: number): string => "word ".repeat(chars / 5)

/** Ten turns of some 500 tokens each, and a question. */
const talk: ReadonlyArray<Message> = [
  { role: "system", content: "Be brief." },
  ...Array.from({ length: 10 }, (_, n): ReadonlyArray<Message> => [
    { role: "user", content: `Question ${n}. ${long(1_800)}` },
    { role: "assistant", content: [{ type: "text", text: `Answer ${n}.` }] }
  ]).flat(),
  { role: "user", content: "And now?" }
]

const good = streaming(openaiCompatible.answer({ words: ["Hello"] }))

const json = (status: number, body: unknown): FakeAnswer => ({ kind: "json", status, body })

const sizesOf = (requests: ReadonlyArray<{ readonly body: unknown }>) =>
  requests.map(({ body }) => JSON.stringify(body).length)

const askTwice = (
  answers: readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>],
  model: Record<string, unknown> = {},
  messages = talk
) =>
  Effect.gen(function* () {
    const server = yield* serveAnswers(...answers)
    const tries: Array<ModelTry> = []
    const outcomes = yield* Effect.gen(function* () {
      const models = yield* Models
      const resolved = yield* models.resolve({
        agentName: "tester",
        model: { ...openaiCompatible.model, ...model }
      })
      const request = asking("", { messages, tried: (each) => tries.push(each) })
      const once = Effect.exit(Stream.runCollect(resolved.request(request)))
      return [yield* once, yield* once]
    }).pipe(Effect.provide(modelsIn(openaiCompatible.env(server.url, "secret-key-abcdef-0123456789"))))
    return { outcomes, tries, requests: server.requests }
  }).pipe(Effect.scoped)

const finishOf = (outcome: unknown) => JSON.parse(JSON.stringify(outcome)).value?.at(-1)

describe("A model whose window is smaller than the prompt", () => {
  for (const [who, status, body] of refusals)
    it.live(`is asked again with less, as ${who} says it, and after that at once`, () =>
      Effect.gen(function* () {
        const { outcomes, requests, tries } = yield* askTwice([json(status, body), good])
        expect(outcomes.map(({ _tag }) => _tag)).toEqual(["Success", "Success"])
        const [first = 0, second = 0, third = 0] = sizesOf(requests)
        expect(requests).toHaveLength(3)
        expect(second).toBeLessThan(first)
        expect(third).toBe(second)
        const kept = JSON.stringify(requests[1]?.body)
        expect(kept).toContain("Be brief.")
        expect(kept).toContain("And now?")
        expect(kept).not.toContain("Question 0.")
        expect(finishOf(outcomes[0]).leftOut).toMatchObject({ messages: expect.any(Number), texts: 0 })
        expect(
          tries.map(({ failure, parameters }) => [failure?.reason, parameters.leftOut === undefined])
        ).toEqual([
          ["tooLong", true],
          [undefined, false],
          [undefined, false]
        ])
      })
    )

  it.live("is asked with less and less, until it takes it", () =>
    Effect.gen(function* () {
      const refusal = json(400, { error: { message: "prompt is too long" } })
      const { outcomes, requests } = yield* askTwice([refusal, refusal, refusal, refusal, good])
      expect(outcomes[0]?._tag).toBe("Success")
      expect(requests).toHaveLength(6)
      const sizes = sizesOf(requests)
      expect(sizes.slice(0, 5)).toEqual(sizes.slice(0, 5).toSorted((one, other) => other - one))
    })
  )

  it.live("fails with what takes the room where nothing more can go, and within a bound", () =>
    Effect.gen(function* () {
      const { outcomes, requests } = yield* askTwice([
        json(400, { error: { message: "prompt is too long: 9000 tokens > 10 maximum" } })
      ])
      expect(JSON.stringify(outcomes[0])).toMatch(
        /"reason":"tooLong".*instructions and 0 tools take some \d+ tokens/
      )
      expect(requests.length).toBeLessThanOrEqual(18)
    })
  )

  it.live("is shown the beginning of one message that is too long by itself", () =>
    Effect.gen(function* () {
      const { outcomes, requests } = yield* askTwice(
        [json(400, { error: { message: "prompt is too long: 30000 tokens > 2048 maximum" } }), good],
        {},
        [{ role: "user", content: `Sum this up: ${long(100_000)}` }]
      )
      expect(finishOf(outcomes[0]).leftOut).toMatchObject({ messages: 0, texts: 1 })
      const sent = JSON.stringify(requests[1]?.body)
      expect(sent).toContain("Sum this up: word word")
      expect(sent).toMatch(/ … \[\d+ more /)
      expect(sent.length).toBeLessThan(10_000)
    })
  )

  it.live("is not asked with too much at first where its window is in the definition", () =>
    Effect.gen(function* () {
      const { outcomes, requests, tries } = yield* askTwice([good], { contextWindow: 4_000 })
      expect(outcomes[0]?._tag).toBe("Success")
      expect(requests).toHaveLength(2)
      expect(tries[0]?.parameters.leftOut).toMatchObject({ maxTokens: 3_510 })
      expect(JSON.stringify(requests[0]?.body).length).toBeLessThan(3_510 * 4.5)
    })
  )

  it("other refusals are none of it", () => {
    for (const other of [
      "HTTP 400: Invalid 'tools': array too long. Expected an array with maximum length 128.",
      "HTTP 400: Conversation roles must alternate",
      "HTTP 429: Rate limit reached for gpt-4o on requests per min. Limit: 3, Used: 3, Requested: 1.",
      "HTTP 400: max_tokens is too large: 100000",
      "HTTP 400: Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64.",
      "HTTP 400: The request was blocked by the content filter"
    ])
      expect([other, saysTooLong(other)]).toEqual([other, false])
  })
})
