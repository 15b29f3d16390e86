/** Every format that providers speak, over a real socket: what they send is understood, what they want is sent. */
import { describe, expect, it } from "@effect/vitest"
import type { ModelConfig } from "@tropism/domain/model-config"
import { Effect } from "effect"
import { serveAnswers, streaming } from "../../testing/fake-model-server.ts"
import { ask, modelsIn } from "../../testing/models.ts"
import { anthropicMessages } from "../../testing/providers/anthropic-messages.ts"
import { formats } from "../../testing/providers/formats.ts"
import { openaiChat } from "../../testing/providers/openai-chat.ts"
import { openaiResponses } from "../../testing/providers/openai-responses.ts"
import {
  conversation,
  type Piece,
  type StreamedCall,
  type WireFormat
} from "../../testing/providers/wire-format.ts"
import type { ModelRequest } from "./model-request.ts"

const key = "secret-key-abcdef-0123456789"

/** Asks a server that sends these pieces, and says what came of it and what it was asked. */
const askFor = (
  format: WireFormat,
  chunks: ReadonlyArray<Piece>,
  request: ModelRequest = conversation,
  model: ModelConfig = format.model
) =>
  Effect.gen(function* () {
    const server = yield* serveAnswers(streaming(chunks))
    const parts = yield* Effect.provide(ask(model, request), modelsIn(format.env(server.url, key)))
    return { parts, asked: server.requests[0] }
  }).pipe(Effect.scoped)

/** The providers whose models here have a known price. */
const priced = new Set(["openai", "anthropic", "google", "google-vertex", "mistral"])

const paris: StreamedCall = { id: "call_1", name: "get_weather", pieces: ['{"loc', 'ation": "Pa', 'ris"}'] }
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

const picture: ModelRequest = {
  tools: [],
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "What is it?" },
        { type: "file", mediaType: "image/png", data: pixel }
      ]
    }
  ]
}

const rome: StreamedCall = { id: "call_2", name: "get_weather", pieces: ['{"location"', ': "Rome"}'] }

const call = (location: string) => ({
  type: "toolCall",
  id: expect.any(String),
  name: "get_weather",
  arguments: { location },
  fault: null
})

for (const format of formats) {
  describe(`${format.title}, over the wire`, () => {
    for (const { chunks, parts, what } of format.published) {
      it.live(`understands the published example of ${what}`, () =>
        Effect.gen(function* () {
          const answer = yield* askFor(format, chunks)
          const hasPrice = priced.has(format.model.provider)
          const costMicros = hasPrice ? expect.any(Number) : null
          expect(answer.parts).toMatchObject(
            parts.map((part) => (Object(part).type === "finish" ? { ...Object(part), costMicros } : part))
          )
          // What Gemini signs is kept for the next request.
          const signed = JSON.stringify(chunks).match(/thoughtSignature[^A-Za-z0-9]+([A-Za-z0-9+/]+)/)?.[1]
          const finish = JSON.stringify(answer.parts.at(-1))
          expect(signed === undefined ? finish.includes('"parts"') : !finish.includes(signed)).toBe(false)
        })
      )
    }

    it.live("is sent system prompt, parameters, tools, calls and results as it wants them", () =>
      Effect.gen(function* () {
        const { asked } = yield* askFor(format, format.answer({ words: ["Done."] }))
        expect(asked?.path).toBe(format.path)
        expect(String(asked?.headers[format.keyHeader]).replace("Bearer ", "")).toBe(key)
        expect(asked?.body).toMatchObject(format.request)
      })
    )

    it.live("may make calls side by side, their arguments in pieces, after words", () =>
      Effect.gen(function* () {
        const { parts } = yield* askFor(
          format,
          format.answer({ words: ["Looking", "."], calls: [paris, rome] })
        )
        expect(parts).toEqual([
          { type: "text", delta: "Looking" },
          { type: "text", delta: "." },
          call("Paris"),
          call("Rome"),
          expect.objectContaining({ type: "finish", reason: "tool-calls" })
        ])
        const ids = parts.flatMap((part) => (part.type === "toolCall" ? [part.id] : []))
        expect(new Set(ids).size).toBe(2)
      })
    )

    it.live("may call a tool that it was not shown, and one without arguments", () =>
      Effect.gen(function* () {
        const { parts } = yield* askFor(
          format,
          format.answer({
            calls: [
              { id: "call_1", name: "invented", pieces: ['{"a":', "1}"] },
              { id: "call_2", name: "get_weather", pieces: [] }
            ]
          })
        )
        expect(parts.slice(0, 2)).toMatchObject([
          { type: "toolCall", name: "invented", arguments: { a: 1 }, fault: null },
          { type: "toolCall", name: "get_weather", arguments: {}, fault: null }
        ])
      })
    )

    if (format.hasTextArguments)
      it.live("may send arguments that are no JSON: they are kept as text, with the reason", () =>
        Effect.gen(function* () {
          const { parts } = yield* askFor(
            format,
            format.answer({ calls: [{ ...paris, pieces: ['{"location": ', "Paris}"] }] })
          )
          expect(parts[0]).toMatchObject({
            type: "toolCall",
            arguments: '{"location": Paris}',
            fault: expect.stringContaining("JSON")
          })
        })
      )

    it.live("says why it stopped, and what was used", () =>
      Effect.gen(function* () {
        for (const [stop, reason] of [
          [undefined, "stop"],
          ["length", "length"],
          ...(format.withholds === false ? [] : ([["filter", "content-filter"]] as const))
        ] as const) {
          const { parts } = yield* askFor(
            format,
            format.answer({ words: ["Once"], ...(stop ? { stop } : {}) })
          )
          expect(parts).toMatchObject([
            { type: "text", delta: "Once" },
            { type: "finish", reason, usage: { inputTokens: 11, outputTokens: 7 } }
          ])
        }
      })
    )

    it.live("is sent a picture of the user's", () =>
      Effect.gen(function* () {
        const { asked } = yield* askFor(format, format.answer({ words: ["Done."] }), picture)
        expect(JSON.stringify(asked?.body)).toContain(pixel)
      })
    )

    it.live("may have nothing to say", () =>
      Effect.gen(function* () {
        const { parts } = yield* askFor(format, format.answer({}))
        expect(parts).toMatchObject([{ type: "finish", reason: "stop" }])
      })
    )
  })
}

describe("a model that takes no temperature", () => {
  for (const [format, name, sent] of [
    [openaiChat, "gpt-5.1", { max_completion_tokens: 99 }],
    [openaiResponses, "gpt-5", { max_output_tokens: 99, include: ["reasoning.encrypted_content"] }],
    [anthropicMessages, "claude-sonnet-5", { max_tokens: 99 }]
  ] as const) {
    it.live(`is asked without one: ${name} through ${format.title}`, () =>
      Effect.gen(function* () {
        const { asked } = yield* askFor(format, format.answer({ words: ["Done."] }), conversation, {
          ...format.model,
          name
        })
        expect(asked?.body).toMatchObject({ model: name, ...sent })
        expect(asked?.body).not.toHaveProperty("temperature")
      })
    )
  }
})
