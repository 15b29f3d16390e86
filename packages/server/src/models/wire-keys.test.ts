/** A provider's key goes to the provider and nowhere else, also where its server says it back. */
import { describe, expect, it } from "@effect/vitest"
import { Cause, Clock, Effect, Exit, Logger, Stream, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import { makeFakeClock } from "../../testing/fake-clock.ts"
import { type FakeAnswer, serveAnswers, streaming } from "../../testing/fake-model-server.ts"
import { ask, modelsIn } from "../../testing/models.ts"
import { anthropicMessages } from "../../testing/providers/anthropic-messages.ts"
import { bedrock } from "../../testing/providers/bedrock.ts"
import { formats } from "../../testing/providers/formats.ts"
import { gemini, geminiOnVertex } from "../../testing/providers/gemini.ts"
import { mistral } from "../../testing/providers/mistral.ts"
import { openaiChat, openrouterChat } from "../../testing/providers/openai-chat.ts"
import { azureResponses, openaiResponses } from "../../testing/providers/openai-responses.ts"
import { conversation } from "../../testing/providers/wire-format.ts"
import { Models } from "./models.ts"

const key = "secret-key-abcdef-0123456789"

for (const format of formats) {
  const told = `the key ${key} is not known here`
  const answers: ReadonlyArray<readonly [string, FakeAnswer]> = [
    ["a refusal", { kind: "json", status: 503, body: format.refusal(503, told) }],
    ["a stream", streaming(format.streamedError(told))]
  ]

  describe(`${format.title}: a key that the server says back`, () => {
    for (const [where, answer] of answers) {
      it.live(`in ${where} appears in no failure, log or span`, () =>
        Effect.gen(function* () {
          const server = yield* serveAnswers(answer)
          const logged: Array<unknown> = []
          const spans: Array<Tracer.NativeSpan> = []
          const model = { ...format.model, fallback: { ...format.model, name: "another" } }
          const exit = yield* Effect.gen(function* () {
            const resolved = yield* (yield* Models).resolve({ agentName: "tester", model })
            return yield* Stream.runCollect(resolved.request(conversation))
          }).pipe(
            // A key that a file holds may end with a line break.
            Effect.provide(modelsIn(format.env(server.url, `${key}\n`))),
            Effect.provideService(Clock.Clock, makeFakeClock().clock),
            Effect.provide(
              Logger.layer([Logger.make((options) => logged.push(options.message, options.cause))])
            ),
            Effect.provideService(
              Tracer.Tracer,
              Tracer.make({
                span: (options) => {
                  const span = new Tracer.NativeSpan(options)
                  spans.push(span)
                  return span
                }
              })
            ),
            Effect.exit
          )
          expect(server.requests).toHaveLength(8)
          expect(logged.length).toBeGreaterThanOrEqual(7 * 2)
          expect(spans.length).toBeGreaterThan(0)
          const cause = Exit.isFailure(exit) ? exit.cause : Cause.empty
          const shown = [
            Cause.pretty(cause),
            JSON.stringify(cause),
            Bun.inspect(exit, { depth: 20 }),
            Bun.inspect(logged, { depth: 20 }),
            Bun.inspect(spans, { depth: 20 })
          ]
          expect(shown[0]).toContain("the key <redacted> is not known here")
          for (const text of shown) expect(text).not.toContain(key)
        }).pipe(Effect.scoped)
      )
    }
  })
}

it.live("Bedrock is sent a signature of the account's key, and not the key", () =>
  Effect.gen(function* () {
    const server = yield* serveAnswers(streaming(bedrock.answer({ words: ["Hello"] })))
    const env = {
      AWS_ACCESS_KEY_ID: "AKIAIOSFODNN7EXAMPLE",
      AWS_SECRET_ACCESS_KEY: key,
      AWS_SESSION_TOKEN: "a-session-token",
      AWS_REGION: "eu-west-1",
      AWS_ENDPOINT_URL_BEDROCK_RUNTIME: server.url
    }
    yield* Effect.provide(ask(bedrock.model, conversation), modelsIn(env))
    const [asked] = server.requests
    expect(asked?.headers.authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE\/\d{8}\/eu-west-1\/bedrock\/aws4_request, .*Signature=[0-9a-f]{64}$/
    )
    expect(asked?.headers["x-amz-security-token"]).toBe("a-session-token")
    expect(JSON.stringify(asked)).not.toContain(key)
  }).pipe(Effect.scoped)
)

describe("where a provider is found without an address of one's own", () => {
  /** Sends every request to the test's server and notes where it was meant to go. */
  const redirected = (url: string, meant: Array<string>): typeof globalThis.fetch =>
    Object.assign(
      (input: RequestInfo | URL, init?: RequestInit) => {
        const target = new URL(input instanceof Request ? input.url : input)
        meant.push(target.href)
        return fetch(`${url}${target.pathname}`, init)
      },
      { preconnect: fetch.preconnect }
    )

  for (const [format, env, address] of [
    [
      openaiChat,
      { OPENAI_API_KEY: key, TROPISM_OPENAI_API: "chat" },
      "https://api.openai.com/v1/chat/completions"
    ],
    // OpenAI's newer models refuse tools beside reasoning in chat completions.
    [openaiResponses, { OPENAI_API_KEY: key }, "https://api.openai.com/v1/responses"],
    [
      azureResponses,
      { AZURE_API_KEY: key, AZURE_RESOURCE_NAME: "ours" },
      "https://ours.openai.azure.com/openai/v1/responses"
    ],
    [
      bedrock,
      { AWS_BEARER_TOKEN_BEDROCK: key, AWS_REGION: "eu-west-1" },
      `https://bedrock-runtime.eu-west-1.amazonaws.com${bedrock.path}`
    ],
    [mistral, { MISTRAL_API_KEY: key }, "https://api.mistral.ai/v1/chat/completions"],
    [openrouterChat, { OPENROUTER_API_KEY: key }, "https://openrouter.ai/api/v1/chat/completions"],
    [anthropicMessages, { ANTHROPIC_API_KEY: key }, "https://api.anthropic.com/v1/messages"],
    [
      gemini,
      { GOOGLE_GENERATIVE_AI_API_KEY: key },
      "https://generativelanguage.googleapis.com/v1beta/models/gemini-3.5-flash:streamGenerateContent?alt=sse"
    ],
    [
      geminiOnVertex,
      { GOOGLE_VERTEX_API_KEY: key },
      "https://aiplatform.googleapis.com/v1/publishers/google/models/gemini-3.5-flash:streamGenerateContent?alt=sse"
    ]
  ] as const) {
    it.live(`${format.title} is asked at ${new URL(address).host}`, () =>
      Effect.gen(function* () {
        const server = yield* serveAnswers(streaming(format.answer({ words: ["Hello"] })))
        const meant: Array<string> = []
        yield* ask(format.model, conversation).pipe(
          Effect.provide(modelsIn(env)),
          Effect.provideService(FetchHttpClient.Fetch, redirected(server.url, meant))
        )
        expect(meant).toEqual([address])
      }).pipe(Effect.scoped)
    )
  }
})
