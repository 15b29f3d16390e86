/** What a person reads when a model's server cannot be understood: our own words, who it was and where. */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, Stream } from "effect"
import { makeFakeClock } from "../../testing/fake-clock.ts"
import {
  chatChunk,
  type FakeAnswer,
  type FakeModelServer,
  serveAnswers,
  streaming
} from "../../testing/fake-model-server.ts"
import { ask, modelsIn, textOf } from "../../testing/models.ts"
import { naming } from "../../testing/naming.ts"
import { anthropicMessages } from "../../testing/providers/anthropic-messages.ts"
import { gemini } from "../../testing/providers/gemini.ts"
import { mistral } from "../../testing/providers/mistral.ts"
import { openaiChat, openaiCompatible } from "../../testing/providers/openai-chat.ts"
import { openaiResponses } from "../../testing/providers/openai-responses.ts"
import { conversation, dataEvents, type WireFormat } from "../../testing/providers/wire-format.ts"
import { Models } from "./models.ts"

const key = "secret-key-abcdef-0123456789"

/** The failure of asking a server, and where that server lies. */
const failureFrom = (
  format: WireFormat,
  answer: FakeAnswer,
  during: (server: FakeModelServer) => Effect.Effect<void> = () => Effect.void
) =>
  Effect.gen(function* () {
    const server = yield* serveAnswers(answer)
    const failure = yield* Effect.gen(function* () {
      const resolved = yield* (yield* Models).resolve({ agentName: "tester", model: format.model })
      return yield* Stream.runForEach(resolved.request(conversation), () => during(server))
    }).pipe(
      Effect.flip,
      Effect.provide(modelsIn(format.env(server.url, key))),
      Effect.provideService(Clock.Clock, makeFakeClock(1_000).clock)
    )
    return { failure, message: failure.message, where: `${format.model.provider} at ${server.url}` }
  }).pipe(Effect.scoped)

for (const format of [openaiChat, openaiResponses, anthropicMessages, gemini, openaiCompatible]) {
  describe(`${format.title}, when its server cannot be understood`, () => {
    it.live("a connection that is torn", () =>
      Effect.gen(function* () {
        const torn: FakeAnswer = { kind: "stream", chunks: format.begin("Hel"), ending: "hang" }
        const { failure, message, where } = yield* failureFrom(format, torn, (server) => server.breakOff)
        expect(failure).toMatchObject({ reason: "cut", outputBegan: true })
        expect(message).toContain(where)
      })
    )

    it.live("an answer that is a web page, or nothing", () =>
      Effect.gen(function* () {
        for (const chunks of [["<html><body>Welcome</body></html>"], []]) {
          const { failure, message, where } = yield* failureFrom(format, streaming(chunks))
          expect(failure).toMatchObject({ reason: "cut", outputBegan: false })
          expect(message).toContain(where)
        }
      })
    )
  })
}

describe("A server that speaks another language than it should", () => {
  it.live("is told in one sentence, without what the format should have been", () =>
    Effect.gen(function* () {
      for (const chunk of [
        { ...Object(chatChunk({ content: "Hello" })), usage: "many" },
        { ...Object(chatChunk({})), choices: "many" }
      ])
        for (const format of [openaiChat, openaiCompatible]) {
          const { failure, message, where } = yield* failureFrom(
            format,
            streaming(dataEvents(chunk, "[DONE]"))
          )
          expect(failure).toMatchObject({ reason: "invalidResponse" })
          expect(message).toContain(`${where}/v1`)
          expect(message).not.toMatch(/\n|usage|choices|expected/i)
        }
    })
  )

  it.live("is no outage where a package stumbles over what came, and its own words are told", () =>
    Effect.gen(function* () {
      const chunk = (delta: unknown) => ({
        id: "b9",
        object: "chat.completion.chunk",
        created: 1,
        model: "m",
        choices: [{ index: 0, delta, finish_reason: null }]
      })
      for (const [answer, words] of [
        [{ ...chunk({}), choices: [null] }, "not understood"],
        [chunk({ content: [{ type: "audio", audio: "x" }] }), "not understood"],
        [chunk({ content: [{ type: "text" }] }), "not understood"],
        [{ ...chunk({ content: 7 }), message: "The gateway is confused" }, "The gateway is confused"]
      ] as const) {
        const { failure, message } = yield* failureFrom(mistral, streaming(dataEvents(answer, "[DONE]")))
        expect(failure).toMatchObject({ reason: "invalidResponse", isRetryable: false })
        expect(message).toContain(words)
      }
    })
  )

  it.live("a chunk of usage without choices is understood by Mistral's package, too", () =>
    Effect.gen(function* () {
      const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }
      const server = yield* serveAnswers(
        streaming([
          ...mistral.answer({ words: ["Hello"] }).slice(0, -1),
          ...dataEvents({ choices: [], usage }, "[DONE]")
        ])
      )
      const parts = yield* Effect.provide(
        ask(mistral.model, conversation),
        modelsIn(mistral.env(server.url, key))
      )
      expect([textOf(parts), parts.at(-1)]).toMatchObject(["Hello", { usage: { inputTokens: 3 } }])
    }).pipe(Effect.scoped)
  )

  it.live("Gemini's list of errors is shown in its words", () =>
    Effect.gen(function* () {
      const error = { code: 400, message: "Why it is so", status: "INVALID_ARGUMENT" }
      const { message } = yield* failureFrom(gemini, { kind: "json", status: 400, body: [{ error }] })
      expect(message).toBe("HTTP 400: Why it is so")
    })
  )

  it.live("where nobody listens, says so with the address", () =>
    Effect.gen(function* () {
      const url = "http://127.0.0.1:1"
      const failure = yield* Effect.gen(function* () {
        const resolved = yield* (yield* Models).resolve({
          agentName: "tester",
          model: openaiCompatible.model
        })
        return yield* Stream.runDrain(resolved.request(conversation))
      }).pipe(
        Effect.flip,
        Effect.provide(modelsIn(openaiCompatible.env(url, key))),
        Effect.provideService(Clock.Clock, makeFakeClock(1_000).clock)
      )
      expect(failure).toMatchObject({ reason: "cut", outputBegan: false })
      expect(failure.message).toContain("openai-compatible at http://127.0.0.1:1/v1")
    })
  )
})

describe("A server that wants to be left alone for long", () => {
  it.live("is not waited for, and the failure says how long that would have been", () =>
    Effect.gen(function* () {
      const { message } = yield* failureFrom(openaiChat, {
        kind: "json",
        status: 429,
        body: openaiChat.refusal(429, "not now"),
        headers: { "retry-after": "4000" }
      })
      expect(message).toEqual(naming(429, "not now", 4000, 60))
    })
  )
})
