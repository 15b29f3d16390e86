/**
 * What programs that know OpenAI's API are told when something is wrong: in OpenAI's form, and as their own errors.
 */
import { describe, expect, layer } from "@effect/vitest"
import { APICallError, generateText } from "ai"
import { Effect, Fiber } from "effect"
import OpenAI, {
  APIError,
  AuthenticationError,
  BadRequestError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  UnprocessableEntityError
} from "openai"
import { echo } from "../testing/context-words.ts"
import {
  compatibleProvider,
  failureOf,
  newModel,
  openAiClient,
  outcomeOf,
  sendCompletion
} from "../testing/openai-words.ts"
import { type Answer, eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { runsOf } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const hello = { role: "user", content: "Hello" } as const
const nobody = "00000000-0000-7000-8000-000000000000"

const say = (overrides: Record<string, unknown> = {}) => ({ model: "clerk", messages: [hello], ...overrides })

/** Nothing but OpenAI's form, with its status; never a stack trace. */
const expectRefusal = (answer: Answer, status: number, error: Json = {}) => {
  expect([answer.status, answer.body]).toEqual([
    status,
    {
      error: {
        message: expect.stringMatching(/\S/),
        type: expect.any(String),
        param: answer.body.error?.param ?? null,
        code: answer.body.error?.code ?? null
      }
    }
  ])
  expect(answer.body.error).toMatchObject(error)
  expect(answer.headers.get("content-type")).toMatch(/^application\/json/)
  expect(answer.headers.get("x-request-id")).toMatch(/^(story|[0-9a-f-]{36})$/)
  expect(answer.body.error.message).not.toMatch(/\n\s+at /)
}

/** A request that cannot be kept to, the field that is to blame, the code, and a value that is named. */
const unkept: ReadonlyArray<readonly [Json, string, (string | null)?, string?]> = [
  [
    { tools: [{ type: "function", function: { name: "f", parameters: {} } }] },
    "tools",
    "unsupported_parameter"
  ],
  [{ functions: [{ name: "f" }] }, "functions", "unsupported_parameter"],
  [{ tool_choice: "required" }, "tool_choice", "unsupported_parameter"],
  [{ response_format: { type: "json_schema", json_schema: {} } }, "response_format", "unsupported_parameter"],
  [{ response_format: { type: "json_object" } }, "response_format", "unsupported_parameter"],
  [{ n: 2 }, "n", "unsupported_parameter"],
  [{ logprobs: true }, "logprobs", "unsupported_parameter"],
  [{ modalities: ["text", "audio"] }, "modalities", "unsupported_parameter"],
  [{ stop: ["END"] }, "stop", "unsupported_parameter"],
  [{ model: undefined }, "model"],
  [{ model: 7 }, "model"],
  [{ messages: undefined }, "messages"],
  [{ messages: [] }, "messages"],
  [{ messages: "Hello" }, "messages"],
  [{ messages: [{ role: "nobody", content: "x" }] }, "messages[0].role"],
  [{ messages: [{ role: "user" }] }, "messages[0].content"],
  [{ messages: [{ role: "user", content: " " }] }, "messages[0].content"],
  [{ messages: [{ role: "system", content: "Be." }] }, "messages"],
  [
    { messages: [hello, { role: "tool", content: "x", tool_call_id: "c" }, hello] },
    "messages[1].role",
    "unsupported_value"
  ],
  [
    { messages: [hello, { role: "assistant", content: null, tool_calls: [{ id: "c" }] }, hello] },
    "messages[1].tool_calls",
    "unsupported_value"
  ],
  [
    { messages: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] },
    "messages[0].content[0]",
    "unsupported_value"
  ],
  [
    {
      messages: [
        { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/tiff;base64,AAAA" } }] }
      ]
    },
    "messages[0].content[0].image_url.url",
    null,
    "data:"
  ],
  [
    {
      messages: [
        { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] }
      ]
    },
    "messages[0].content[0].image_url.url",
    null,
    "image/png"
  ],
  [
    {
      messages: [
        { role: "user", content: [{ type: "image_url", image_url: { url: "http://127.0.0.1/x.png" } }] }
      ]
    },
    "messages[0].content[0].image_url.url",
    null,
    "127.0.0.1"
  ],
  [
    { messages: [{ role: "user", content: [{ type: "file", file: { file_id: "file-123" } }] }] },
    "messages[0].content[0].file.file_id",
    null,
    "file-123"
  ],
  [{ temperature: 3 }, "temperature"],
  [{ max_tokens: 0 }, "max_tokens"],
  [{ metadata: { conversation_id: 7 } }, "metadata.conversation_id"]
]

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A request that cannot be kept to", () => {
    it.effect("is told the field and the reason, and nothing of it is kept", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const clerk = yield* newModel(story, "clerk", echo)
        for (const [overrides, param, code = null, value = ""] of unkept) {
          const answer = yield* sendCompletion(story, say(overrides))
          expect([overrides, answer.body]).toEqual([
            overrides,
            { error: expect.objectContaining({ param, code, message: expect.stringContaining(value) }) }
          ])
          expectRefusal(answer, 400, { type: "invalid_request_error" })
        }
        expect(yield* runsOf(story, clerk)).toEqual([])
        const { items } = yield* story.get("/contexts?limit=200")
        expect(items.filter(({ name }: Json) => name.startsWith("completion-"))).toEqual([])
      })
    )

    it.effect("what only colours an answer, and what nobody knows, is passed over", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const answer = yield* sendCompletion(
          story,
          say({
            top_p: 0.5,
            seed: 7,
            user: "ada",
            store: true,
            presence_penalty: 1,
            frequency_penalty: -1,
            logit_bias: { "50256": -100 },
            metadata: { topic: "greeting" },
            service_tier: "auto",
            reasoning_effort: "high",
            parallel_tool_calls: true,
            tools: [],
            tool_choice: "auto",
            stop: null,
            n: 1,
            response_format: { type: "text" },
            modalities: ["text"],
            a_field_of_next_year: { x: 1 }
          })
        )
        expect([answer.status, answer.body.choices[0].message.content]).toEqual([200, "Answer 1: Hello"])
      })
    )

    it.effect("a body that is none, is torn, or is too large", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        for (const body of [
          "",
          "{",
          "[]",
          "null",
          '"x"',
          '{"model": "clerk", "model": "clerk"}',
          '{"model": "\u0000"}'
        ])
          expectRefusal(yield* sendCompletion(story, body, { "content-type": "application/json" }), 400)
        expectRefusal(yield* sendCompletion(story, "model=clerk", { "content-type": "text/plain" }), 400)
        expectRefusal(yield* sendCompletion(story, new Uint8Array([0x7b, 0xff, 0x7d])), 400)
        // Nothing keeps these; a client that brings its whole history must be told where they stand.
        for (const content of ["a\u0000b", "a\ud800b"])
          for (const role of ["system", "assistant", "user"]) {
            const messages = [{ role, content }, ...say().messages]
            const refused = yield* sendCompletion(story, say({ messages, stream: role === "user" }))
            expectRefusal(refused, 400, { param: "messages[0].content" })
          }
        const metadata = { conversation_id: "a\u0000b" }
        const elsewhere = yield* sendCompletion(story, say({ metadata }))
        expectRefusal(elsewhere, 400, { param: "metadata.conversation_id" })
        expectRefusal(yield* sendCompletion(story, say({ model: "a\u0000b" })), 400, { param: "model" })
        const unknown = yield* story.send("GET", `/api/projects/${story.projectId}/v1/models/a%00b`)
        expectRefusal(unknown, 404, { code: "model_not_found" })
        const large = "x".repeat(16_777_217)
        expectRefusal(
          yield* sendCompletion(story, say({ messages: [{ role: "user", content: large }] })),
          413
        )
        const long = "x".repeat(1_000_001)
        expectRefusal(
          yield* sendCompletion(story, say({ messages: [{ role: "user", content: long }] })),
          400,
          {
            param: "messages[0].content"
          }
        )
      })
    )
  })

  describe("Who may not, and what is not there", () => {
    it.effect("is told in OpenAI's form, by every address of the door", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const prefix = `/api/projects/${story.projectId}/v1`
        for (const [method, path] of [
          ["GET", `${prefix}/models`],
          ["GET", `${prefix}/models/clerk`],
          ["POST", `${prefix}/chat/completions`],
          ["POST", `${prefix}/responses`],
          ["GET", `${prefix}/responses/resp_0`],
          ["DELETE", `${prefix}/responses/resp_0`],
          ["POST", `${prefix}/responses/resp_0/cancel`],
          ["GET", "/v1/models"],
          ["POST", "/v1/chat/completions"],
          ["POST", "/v1/responses"],
          ["DELETE", "/v1/nothing"]
        ] as const)
          for (const authorization of ["", "Bearer wrong", "Bearer", `Basic ${btoa("a:b")}`])
            expectRefusal(yield* story.send(method, path, undefined, { authorization }), 401, {
              code: "invalid_api_key"
            })
        for (const [method, path] of [
          ["GET", `${prefix}/responses`],
          ["GET", `${prefix}/chat/completions`],
          ["POST", `${prefix}/models`],
          ["POST", "/v1/embeddings"],
          ["GET", "/v1/assistants?limit=1"]
        ] as const)
          expectRefusal(yield* story.send(method, path, method === "POST" ? {} : undefined), 404, {
            code: "unknown_url"
          })
      })
    )

    it.effect("a missing project and a foreign one are alike, and so are agents and conversations", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const other = yield* newStoryHere
        const clerk = yield* newModel(other, "clerk", echo)
        const visitor = yield* asUser(story, "editor", [story.projectId])
        const at = (projectId: string) =>
          visitor.send("POST", `/api/projects/${projectId}/v1/chat/completions`, say())
        const [missing, foreign] = [yield* at(nobody), yield* at(other.projectId)]
        expectRefusal(missing, 404)
        expect(foreign.body).toEqual(missing.body)
        expectRefusal(yield* at("nonsense"), 404)
        // Another project's agent is none of this one's.
        expectRefusal(yield* sendCompletion(visitor, say()), 404, { code: "model_not_found", param: "model" })
        expectRefusal(yield* sendCompletion(visitor, say({ model: clerk.id })), 404, {
          code: "model_not_found"
        })
        expectRefusal(yield* visitor.send("GET", `/api/projects/${story.projectId}/v1/models/clerk`), 404, {
          code: "model_not_found"
        })
      })
    )

    it.effect("a viewer may list and not speak; a token of several projects is told the address", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const viewer = yield* asUser(story, "viewer", [story.projectId])
        const other = yield* newStoryHere
        const spanning = yield* asUser(story, "editor", [story.projectId, other.projectId])
        expect((yield* viewer.get("/v1/models")).object).toBe("list")
        expectRefusal(yield* sendCompletion(viewer, say()), 403, { type: "permission_error" })
        for (const [method, path] of [
          ["GET", "/v1/models"],
          ["GET", "/v1/models/clerk"],
          ["POST", "/v1/chat/completions"]
        ] as const)
          for (const { send } of [story, spanning]) {
            const refused = yield* send(method, path, method === "POST" ? say() : undefined)
            expectRefusal(refused, 400, { code: "project_required" })
            for (const { projectId } of [story, other])
              expect(refused.body.error.message).toContain(
                `${story.url}/api/projects/${projectId}/v1 (A story)`
              )
          }
        const [, third] = [yield* newStoryHere, yield* newStoryHere]
        const told = yield* spanning.send("GET", "/v1/models")
        expect(told.body.error.message).not.toContain(third.projectId)
      })
    )
  })

  describe("The clients' own errors", () => {
    const client = (story: Story) => openAiClient(story)
    const create = (story: Story, body: Json = {}) =>
      failureOf(() => client(story).chat.completions.create(say(body)))

    it.effect("OpenAI's client knows each by its class", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        yield* newModel(story, "asleep", echo, { enabled: false })
        const notFound = yield* create(story, { model: "gpt-4o" })
        expect(notFound).toBeInstanceOf(NotFoundError)
        expect(notFound).toMatchObject({ status: 404, code: "model_not_found", param: "model" })
        expect(notFound.requestID).toMatch(/^[0-9a-f-]{36}$/)
        expect(yield* create(story, { n: 2 })).toBeInstanceOf(BadRequestError)
        const wrong = { ...story, token: "wrong" }
        expect(yield* failureOf(() => client(wrong).models.list())).toBeInstanceOf(AuthenticationError)
        const viewer = yield* asUser(story, "viewer", [story.projectId])
        expect(yield* create(viewer)).toBeInstanceOf(PermissionDeniedError)
        expect(yield* create(story, { model: "asleep" })).toMatchObject({
          status: 400,
          code: "agentDisabled"
        })
        const embeddings = yield* failureOf(() =>
          client(story).embeddings.create({ model: "clerk", input: "Hello" })
        )
        expect(embeddings).toBeInstanceOf(NotFoundError)
        expect(embeddings.message).toContain("chat/completions")
      })
    )

    it.effect("an agent that has too many runs is a rate limit, with the time to wait", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "busy", scripted([{ say: "Done.", latencyMs: 60_000 }]), { maxPendingRuns: 1 })
        const first = yield* sendCompletion(story, say({ model: "busy", stream: true })).pipe(
          Effect.forkChild
        )
        yield* eventually(story.get("/runs"), ({ items }) => items.length === 1)
        const refused = yield* create(story, { model: "busy" })
        expect(refused).toBeInstanceOf(RateLimitError)
        expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
        const [run] = (yield* story.get("/runs")).items
        yield* story.post(`/runs/${run.id}/cancel`)
        yield* Fiber.join(first)
      })
    )

    it.effect(
      "a turn that fails is told, its reason stays with the run, and no client sends it again by itself",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const broken = yield* newModel(
            story,
            "clerk",
            scripted([{ fault: { kind: "error", message: "The model is on strike" } }])
          )
          const patient = new OpenAI({
            apiKey: story.token,
            baseURL: `${story.url}/api/projects/${story.projectId}/v1`,
            maxRetries: 3
          })
          const failed = yield* failureOf(() => patient.chat.completions.create(say()))
          expect(failed).toBeInstanceOf(UnprocessableEntityError)
          expect(failed).toMatchObject({ type: "agent_error", code: "turn_failed" })
          expect(failed.message).toMatch(/^422 \S/)
          expect(JSON.stringify(failed)).not.toContain("on strike")
          const ofSdk = yield* failureOf(() =>
            generateText({ model: compatibleProvider(story)("clerk"), prompt: "Hello", maxRetries: 3 })
          )
          expect(APICallError.isInstance(ofSdk)).toBe(true)
          expect(ofSdk).toMatchObject({ statusCode: 422, isRetryable: false })
          const runs = yield* runsOf(story, broken)
          expect(runs.map(({ errorMessage }) => errorMessage)).toEqual([
            expect.stringContaining("on strike"),
            expect.stringContaining("on strike")
          ])
          // Streamed, it is the last event.
          const stream = yield* outcomeOf(() => patient.chat.completions.create({ ...say(), stream: true }))
          const told = yield* failureOf(() => Array.fromAsync(stream))
          expect(told).toBeInstanceOf(APIError)
          expect(told).toMatchObject({ code: "turn_failed", message: failed.message.slice("422 ".length) })
          expect(JSON.stringify(told)).not.toContain("on strike")
        })
    )
  })
})
