/** Each provider once over a real socket, in its own format; and where its key goes and does not go. */
import { describe, expect, it } from "@effect/vitest"
import type { ModelConfig } from "@tropism/domain/model-config"
import { Cause, Clock, Effect, Exit, Logger, Stream, Tracer } from "effect"
import { makeFakeClock } from "./fake-clock.ts"
import {
  chatChunk,
  chatEnd,
  events,
  type FakeAnswer,
  type FakeModelServer,
  serveAnswers
} from "./fake-model-server.ts"
import type { ModelRequest } from "./model-request.ts"
import { Models } from "./models.ts"
import { ask, modelsIn } from "./models-for-tests.ts"

const request: ModelRequest = {
  tools: [
    {
      name: "get_object",
      description: "Reads an object",
      inputSchema: { type: "object", properties: { objectId: { type: "string" } }, required: ["objectId"] }
    }
  ],
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", content: "go" },
    {
      role: "assistant",
      content: [
        { type: "text", text: "Looking." },
        { type: "tool-call", id: "call_1", name: "get_object", params: { objectId: "x" } }
      ]
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", id: "call_1", name: "get_object", isFailure: false, result: { version: 2 } }
      ]
    },
    { role: "system", content: "Finish now." }
  ]
}

const anthropicEvents = (
  ...values: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>
): FakeAnswer => ({
  kind: "stream",
  chunks: values.map((value) => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`),
  ending: "end"
})

const anthropicAnswer = anthropicEvents(
  {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "c",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 5, output_tokens: 1 }
    }
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  { type: "ping" },
  { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "One" } },
  { type: "content_block_stop", index: 0 },
  {
    type: "content_block_start",
    index: 1,
    content_block: { type: "tool_use", id: "toolu_1", name: "get_object", input: {} }
  },
  {
    type: "content_block_delta",
    index: 1,
    delta: { type: "input_json_delta", partial_json: '{"objectId":' }
  },
  { type: "content_block_delta", index: 1, delta: { type: "input_json_delta", partial_json: ' "y"}' } },
  { type: "content_block_stop", index: 1 },
  {
    type: "message_delta",
    delta: { stop_reason: "tool_use", stop_sequence: null },
    usage: { output_tokens: 9 }
  },
  { type: "message_stop" }
)

const googleAnswer = events(
  { candidates: [{ content: { role: "model", parts: [{ text: "One" }] } }] },
  {
    candidates: [
      {
        content: {
          role: "model",
          parts: [{ functionCall: { name: "get_object", args: { objectId: "y" } } }]
        },
        finishReason: "STOP"
      }
    ],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 9, totalTokenCount: 14 }
  }
)

const openaiAnswer = events(
  chatChunk({ role: "assistant", content: "One" }),
  chatChunk({
    tool_calls: [
      {
        index: 0,
        id: "call_2",
        type: "function",
        function: { name: "get_object", arguments: '{"objectId": "y"}' }
      }
    ]
  }),
  ...chatEnd("tool_calls")
)

interface Case {
  readonly provider: ModelConfig["provider"]
  readonly answer: FakeAnswer
  readonly env: (server: FakeModelServer, key: string) => Record<string, string>
  readonly path: string
  readonly keyHeader: string
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number }
  readonly body: object
}

const googleBody = {
  systemInstruction: { parts: [{ text: "Be brief." }] },
  contents: [
    { role: "user", parts: [{ text: "go" }] },
    {
      role: "model",
      parts: [{ text: "Looking." }, { functionCall: { name: "get_object", args: { objectId: "x" } } }]
    },
    { role: "user", parts: [{ functionResponse: { name: "get_object" } }] },
    { role: "user", parts: [{ text: "<system>\nFinish now.\n</system>" }] }
  ],
  tools: [{ functionDeclarations: [{ name: "get_object" }] }]
}

const cases: ReadonlyArray<Case> = [
  {
    provider: "openai",
    answer: openaiAnswer,
    env: (server, key) => ({ OPENAI_API_KEY: key, OPENAI_BASE_URL: `${server.url}/v1` }),
    path: "/v1/chat/completions",
    keyHeader: "authorization",
    usage: { inputTokens: 11, outputTokens: 7 },
    body: {
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "go" },
        { role: "assistant" },
        { role: "tool", content: '{"version":2}' },
        { role: "system", content: "Finish now." }
      ]
    }
  },
  {
    provider: "anthropic",
    answer: anthropicAnswer,
    env: (server, key) => ({ ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: `${server.url}/v1` }),
    path: "/v1/messages",
    keyHeader: "x-api-key",
    usage: { inputTokens: 5, outputTokens: 9 },
    body: {
      system: [{ text: "Be brief." }],
      messages: [
        { role: "user", content: [{ text: "go" }] },
        {
          role: "assistant",
          content: [{ text: "Looking." }, { type: "tool_use", id: "call_1", input: { objectId: "x" } }]
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "call_1", content: '{"version":2}' },
            { text: "<system>\nFinish now.\n</system>" }
          ]
        }
      ],
      tools: [{ name: "get_object", input_schema: { required: ["objectId"] } }]
    }
  },
  {
    provider: "google",
    answer: googleAnswer,
    env: (server, key) => ({
      GOOGLE_GENERATIVE_AI_API_KEY: key,
      GOOGLE_GENERATIVE_AI_BASE_URL: `${server.url}/v1beta`
    }),
    path: "/v1beta/models/m:streamGenerateContent?alt=sse",
    keyHeader: "x-goog-api-key",
    usage: { inputTokens: 5, outputTokens: 9 },
    body: googleBody
  },
  {
    provider: "google-vertex",
    answer: googleAnswer,
    env: (server, key) => ({ GOOGLE_VERTEX_API_KEY: key, GOOGLE_VERTEX_BASE_URL: `${server.url}/v1` }),
    path: "/v1/models/m:streamGenerateContent?alt=sse",
    keyHeader: "x-goog-api-key",
    usage: { inputTokens: 5, outputTokens: 9 },
    body: googleBody
  }
]

const key = "secret-key-abcdef-0123456789"

describe("a provider over the wire", () => {
  for (const { answer, body, env, keyHeader, path, provider, usage } of cases) {
    it.live(`${provider} is asked and understood in its own format`, () =>
      Effect.gen(function* () {
        const server = yield* serveAnswers(answer)
        const parts = yield* Effect.provide(
          ask({ provider, name: "m" }, request),
          modelsIn(env(server, `${key}\n`))
        )
        expect(parts).toEqual([
          { type: "text", delta: "One" },
          {
            type: "toolCall",
            id: expect.any(String),
            name: "get_object",
            arguments: { objectId: "y" },
            fault: null
          },
          { type: "finish", reason: "tool-calls", usage, costMicros: null, provider, name: "m" }
        ])
        const asked = server.requests[0]
        expect(asked?.path).toBe(path)
        expect(String(asked?.headers[keyHeader]).replace("Bearer ", "")).toBe(key)
        expect(asked?.body).toMatchObject(body)
      }).pipe(Effect.scoped)
    )

    it.live(`${provider} is not believed to have finished where its answer only stops`, () =>
      Effect.gen(function* () {
        const chunks = answer.kind === "stream" ? answer.chunks : []
        const firstWord = chunks.findIndex((chunk) => chunk.includes("One"))
        const server = yield* serveAnswers({
          kind: "stream",
          chunks: chunks.slice(0, firstWord + 1),
          ending: "end"
        })
        const failure = yield* Effect.flip(
          Effect.provide(ask({ provider, name: "m" }, request), modelsIn(env(server, key)))
        )
        expect(failure).toMatchObject({ reason: "cut", outputBegan: true, isRetryable: false })
        expect(server.requests).toHaveLength(1)
      }).pipe(Effect.scoped)
    )

    it.live(`${provider} lets its key appear in no failure, log or span`, () =>
      Effect.gen(function* () {
        const refusal: FakeAnswer = {
          kind: "json",
          status: 503,
          body: {
            type: "error",
            error: { type: "x", code: 503, status: "x", message: `the key ${key} is not known here` }
          }
        }
        const server = yield* serveAnswers(refusal)
        const { clock } = makeFakeClock()
        const logged: Array<unknown> = []
        const spans: Array<Tracer.NativeSpan> = []
        const exit = yield* Effect.gen(function* () {
          const resolved = yield* (yield* Models).resolve({
            agentName: "tester",
            model: { provider, name: "m", fallback: { provider, name: "n" } }
          })
          return yield* Stream.runCollect(resolved.request(request))
        }).pipe(
          Effect.provide(modelsIn(env(server, key))),
          Effect.provideService(Clock.Clock, clock),
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
