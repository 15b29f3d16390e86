/** Chat completions over a real socket: what comes through, what is tried again, what is not. */
import { describe, expect, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, Stream } from "effect"
import { makeFakeClock } from "../../testing/fake-clock.ts"
import {
  chatChunk,
  chatEnd,
  events,
  type FakeAnswer,
  type FakeModelServer,
  serveAnswers,
  toEvent
} from "../../testing/fake-model-server.ts"
import { askServer, envOf, localKey as key, localModel as model } from "../../testing/asked-models.ts"
import { ask, asking, modelsIn, textOf } from "../../testing/models.ts"
import { naming } from "../../testing/naming.ts"
import { Models } from "./models.ts"

const tools = [
  {
    name: "create_object",
    description: "Creates an object",
    inputSchema: { type: "object", properties: { type: { type: "string" } } }
  }
]

const hello = events(
  chatChunk({ role: "assistant", content: "Hel" }),
  chatChunk({ content: "lo" }),
  ...chatEnd("stop")
)

const toolDelta = (index: number, id: string | undefined, name: string | undefined, args: string) =>
  chatChunk({
    tool_calls: [
      {
        index,
        ...(id ? { id, type: "function" } : {}),
        function: { ...(name ? { name } : {}), arguments: args }
      }
    ]
  })

describe("an answer", () => {
  it.live("comes word by word, with its usage", () =>
    Effect.gen(function* () {
      const { parts, server } = yield* askServer([hello])
      expect(parts).toEqual([
        { type: "text", delta: "Hel" },
        { type: "text", delta: "lo" },
        {
          type: "finish",
          reason: "stop",
          usage: { inputTokens: 11, outputTokens: 7 },
          isUsageEstimated: false,
          costMicros: null,
          cachedCostMicros: null,
          provider: "openai-compatible",
          name: "m"
        }
      ])
      expect(server.requests[0]?.path).toBe("/v1/chat/completions")
      expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${key}`)
      expect(server.requests[0]?.body).toMatchObject({
        model: "m",
        stream: true,
        temperature: 0.5,
        max_tokens: 99,
        messages: [{ role: "user", content: "hi" }]
      })
    })
  )

  it.live("joins the pieces of each tool call", () =>
    Effect.gen(function* () {
      const { parts, server } = yield* askServer(
        [
          events(
            toolDelta(0, "call_a", "create_object", ""),
            toolDelta(0, undefined, undefined, '{"type": "Fin'),
            toolDelta(1, "call_b", "unknown_tool", "{}"),
            toolDelta(0, undefined, undefined, 'ding", "n": 3}'),
            ...chatEnd("tool_calls")
          )
        ],
        asking("hi", { tools })
      )
      expect(parts).toEqual([
        {
          type: "toolCall",
          id: "call_a",
          name: "create_object",
          arguments: { type: "Finding", n: 3 },
          fault: null
        },
        { type: "toolCall", id: "call_b", name: "unknown_tool", arguments: {}, fault: null },
        expect.objectContaining({ type: "finish", reason: "tool-calls" })
      ])
      expect(server.requests[0]?.body).toMatchObject({
        tool_choice: "auto",
        tools: [
          {
            type: "function",
            function: {
              name: "create_object",
              description: "Creates an object",
              parameters: { properties: { type: { type: "string" } } }
            }
          }
        ]
      })
    })
  )

  it.live("keeps arguments that are no JSON, or cannot be kept, as text with a reason", () =>
    Effect.gen(function* () {
      const { parts } = yield* askServer(
        [
          events(
            toolDelta(0, "a", "create_object", '{"type": '),
            toolDelta(1, "b", "create_object", '{"n": 9007199254740993}'),
            toolDelta(2, "c", "create_object", ""),
            ...chatEnd("tool_calls")
          )
        ],
        asking("hi", { tools })
      )
      expect(parts.slice(0, 3)).toEqual([
        {
          type: "toolCall",
          id: "a",
          name: "create_object",
          arguments: '{"type": ',
          fault: expect.any(String)
        },
        {
          type: "toolCall",
          id: "b",
          name: "create_object",
          arguments: '{"n": 9007199254740993}',
          fault: expect.stringContaining("9007199254740993")
        },
        { type: "toolCall", id: "c", name: "create_object", arguments: {}, fault: null }
      ])
    })
  )

  it.live("is asked for with the whole conversation", () =>
    Effect.gen(function* () {
      const { server } = yield* askServer([hello], {
        tools,
        toolChoice: "none",
        messages: [
          { role: "system", content: "Be brief." },
          { role: "system", content: "Be kind." },
          { role: "user", content: "go" },
          {
            role: "assistant",
            content: [
              { type: "text", text: "" },
              { type: "tool-call", id: "a", name: "create_object", params: { type: "X" } },
              { type: "tool-call", id: "b", name: "create_object", params: "{oops" }
            ]
          },
          {
            role: "tool",
            content: [
              { type: "tool-result", id: "a", name: "create_object", isFailure: false, result: { id: 1 } },
              { type: "tool-result", id: "b", name: "create_object", isFailure: true, result: "no JSON" }
            ]
          },
          { role: "system", content: "Stop now." }
        ]
      })
      expect(server.requests[0]?.body).toMatchObject({
        tool_choice: "none",
        messages: [
          { role: "system", content: "Be brief.\n\nBe kind." },
          { role: "user", content: "go" },
          {
            role: "assistant",
            tool_calls: [
              { id: "a", function: { arguments: '{"type":"X"}' } },
              { id: "b", function: { arguments: '{"invalidArguments":"{oops"}' } }
            ]
          },
          { role: "tool", tool_call_id: "a", content: '{"id":1}' },
          { role: "tool", tool_call_id: "b", content: "no JSON" },
          { role: "system", content: "Stop now." }
        ]
      })
    })
  )
})

describe("a request that fails before any output", () => {
  const tooMany = (headers: Record<string, string>): FakeAnswer => ({
    kind: "json",
    status: 429,
    body: { error: { message: "slow down" } },
    headers
  })
  const down: FakeAnswer = { kind: "json", status: 503, body: { error: { message: "overloaded" } } }

  it.live("waits as long as the server asks, then succeeds", () =>
    Effect.gen(function* () {
      const { parts, pausesMs, server } = yield* askServer([
        tooMany({ "retry-after": "7" }),
        tooMany({ "retry-after": "Thu, 01 Jan 1970 00:00:10 GMT" }),
        hello
      ])
      expect(textOf(parts)).toBe("Hello")
      expect(server.requests).toHaveLength(3)
      // The clock stands at 1 s, so the date asks for 9 s more.
      expect(pausesMs).toEqual([7_000, 9_000])
    })
  )

  it.live("is not kept waiting for longer than anybody would", () =>
    Effect.gen(function* () {
      const { failure, pausesMs, server } = yield* askServer([tooMany({ "retry-after": "3600" }), hello])
      expect(failure).toMatchObject({
        reason: "rateLimited",
        message: naming(429, "slow down", 3600, 60),
        retryAfterMs: 3_600_000
      })
      expect([server.requests.length, pausesMs]).toEqual([1, []])
    })
  )

  it.live("goes to the fallback when the server stays down", () =>
    Effect.gen(function* () {
      const { parts, pausesMs, server } = yield* askServer([down], asking("hi"), {
        ...model,
        fallback: { provider: "scripted", name: "daily-digest" }
      })
      expect(server.requests).toHaveLength(4)
      expect(pausesMs.filter((ms) => ms < 4_800)).toHaveLength(4) // three retries, and the script's latency
      expect(parts.at(-1)).toMatchObject({ type: "finish", provider: "scripted", name: "daily-digest" })
    })
  )

  it.live("is not made again where the server refuses it", () =>
    Effect.gen(function* () {
      const refusals = [
        [400, "too long", "refused"],
        [401, "who are you", "authentication"],
        [404, "no such model", "refused"],
        [429, "You exceeded your current quota", "quota"]
      ] as const
      for (const [status, message, reason] of refusals) {
        const { failure, server } = yield* askServer([{ kind: "json", status, body: { error: { message } } }])
        expect(failure).toMatchObject({ reason, message: `HTTP ${status}: ${message}` })
        expect(server.requests).toHaveLength(1)
      }
    })
  )

  it.live("is made again where the error comes inside the stream", () =>
    Effect.gen(function* () {
      const { parts, server } = yield* askServer([
        events({ error: { message: "overloaded", code: 529 } }),
        events({ error: { message: "try later" } }),
        hello
      ])
      expect(textOf(parts)).toBe("Hello")
      expect(server.requests).toHaveLength(3)
    })
  )

  it.live("is made again where only a tool call had begun, since none was delivered", () =>
    Effect.gen(function* () {
      const begun: FakeAnswer = {
        kind: "stream",
        chunks: [toEvent(toolDelta(0, "a", "create_object", '{"type": "F'))],
        ending: "end"
      }
      const { parts, server } = yield* askServer([begun, hello], asking("hi", { tools }))
      expect(parts.map((part) => part.type)).toEqual(["text", "text", "finish"])
      expect(server.requests).toHaveLength(2)
    })
  )

  it.live("says so where nobody listens", () =>
    Effect.gen(function* () {
      const { clock, pausesMs } = makeFakeClock()
      const failure = yield* ask(model, asking("hi")).pipe(
        Effect.flip,
        Effect.provideService(Clock.Clock, clock),
        Effect.provide(modelsIn({ OPENAI_COMPATIBLE_BASE_URL: "http://127.0.0.1:1/v1" }))
      )
      expect(failure).toMatchObject({ reason: "cut", outputBegan: false })
      expect(pausesMs).toHaveLength(3)
    })
  )
})

describe("an answer that breaks off after its first word", () => {
  const first = toEvent(chatChunk({ content: "Hel" }))

  for (const ending of ["hang", "end"] as const) {
    it.live(
      `fails and is not begun again (${ending === "hang" ? "the socket closes" : "the stream ends without a finish"})`,
      () =>
        Effect.gen(function* () {
          const { failure, parts, server } = yield* askServer(
            [{ kind: "stream", chunks: [first], ending }, hello],
            asking("hi"),
            { ...model, fallback: { provider: "scripted", name: "daily-digest" } }
          )
          expect(parts).toEqual([{ type: "text", delta: "Hel" }])
          expect(failure).toMatchObject({ reason: "cut", outputBegan: true, isRetryable: false })
          expect(server.requests).toHaveLength(1)
        })
    )
  }
})

describe("an interruption hangs up on the server", () => {
  const begun: FakeAnswer = {
    kind: "stream",
    chunks: [toEvent(chatChunk({ content: "Hel" }))],
    ending: "hang"
  }

  const interruptAfter = (
    answer: FakeAnswer,
    isTime: (server: FakeModelServer, heard: Deferred.Deferred<void>) => Deferred.Deferred<void>
  ) =>
    Effect.gen(function* () {
      const server = yield* serveAnswers(answer)
      const heard = yield* Deferred.make<void>()
      const fiber = yield* Effect.gen(function* () {
        const resolved = yield* (yield* Models).resolve({ agentName: "tester", model })
        yield* Stream.runForEach(resolved.request(asking("hi")), () => Deferred.succeed(heard, undefined))
      }).pipe(Effect.provide(modelsIn(envOf(server))), Effect.forkChild)
      yield* Deferred.await(isTime(server, heard))
      yield* Fiber.interrupt(fiber)
      yield* Deferred.await(server.hungUp)
      expect(Exit.hasInterrupts(yield* Fiber.await(fiber))).toBe(true)
      expect(server.requests).toHaveLength(1)
    }).pipe(Effect.scoped)

  it.live("in the middle of an answer", () => interruptAfter(begun, (_server, heard) => heard))
  it.live("before the answer began", () => interruptAfter({ kind: "silence" }, (server) => server.asked))
})

describe("A server that speaks the format nearly right", () => {
  const done = { type: "finish", reason: "stop" }
  const usage = { prompt_tokens: "11", completion_tokens: "7", prompt_tokens_details: { cached_tokens: "3" } }
  const callOf = (args: unknown) =>
    chatChunk({
      tool_calls: [{ index: 0, id: "c1", type: "function", function: { name: "t", arguments: args } }]
    })
  const call = { type: "toolCall", id: "c1", name: "t", arguments: { a: 1 }, fault: null }
  const reasoning = (text: string) => ({ type: "reasoning", text })

  it.live.each<readonly [string, FakeAnswer, ReadonlyArray<object>]>([
    ["ends without a reason", events(chatChunk({ content: "Hi" }), "[DONE]"), [{ delta: "Hi" }, done]],
    [
      "ends a call without a reason",
      events(callOf('{"a":1}'), "[DONE]"),
      [call, { type: "finish", reason: "tool-calls" }]
    ],
    [
      "sends its last event without a blank line",
      {
        kind: "stream",
        chunks: [toEvent(chatChunk({ content: "Hi" })), `data: ${JSON.stringify(chatChunk({}, "stop"))}`],
        ending: "end"
      },
      [{ delta: "Hi" }, done]
    ],
    [
      "counts in text, beside choices that are null",
      events(chatChunk({ content: "Hi" }, "stop"), { choices: null, usage }, "[DONE]"),
      [{ delta: "Hi" }, { ...done, usage: { inputTokens: 11, outputTokens: 7 }, isUsageEstimated: false }]
    ],
    [
      "sends arguments as an object",
      events(callOf({ a: 1 }), ...chatEnd("tool_calls")),
      [call, { type: "finish", reason: "tool-calls" }]
    ],
    [
      "answers whole though a stream was asked for",
      {
        kind: "json",
        status: 200,
        body: {
          choices: [
            {
              message: {
                role: "assistant",
                content: "Hi",
                tool_calls: [{ id: "c1", type: "function", function: { name: "t", arguments: '{"a":1}' } }]
              },
              finish_reason: "tool_calls"
            }
          ],
          usage
        }
      },
      [{ delta: "Hi" }, call, { type: "finish", usage: { inputTokens: 11, outputTokens: 7 } }]
    ],
    [
      "thinks in tags, in pieces",
      events(
        ...["<th", "ink>I th", "ink.</thi", "nk>\n\nAn", "swer"].map((content) => chatChunk({ content })),
        ...chatEnd("stop")
      ),
      [
        { delta: "An" },
        { delta: "swer" },
        { ...done, parts: [reasoning("I think."), { type: "text", chars: 6 }] }
      ]
    ],
    [
      "begins like a tag and is none",
      events(chatChunk({ content: "<th" }), chatChunk({ content: "is>" }), ...chatEnd("stop")),
      [{ delta: "<this>" }, done]
    ],
    [
      "thinks without an opening tag, which its chat template has",
      events(
        ...["I th", "ink.\n</thi", "nk>\n\nAn", "swer"].map((content) => chatChunk({ content })),
        ...chatEnd("stop")
      ),
      [
        { delta: "I th" },
        { delta: "ink.\n" },
        { delta: "An" },
        { delta: "swer" },
        { ...done, thoughtChars: 9, parts: [reasoning("I think.\n"), { type: "text", chars: 6 }] }
      ]
    ],
    [
      "speaks of the tags",
      events(chatChunk({ content: "End it with `</think>`: <think>x</think>." }), ...chatEnd("stop")),
      [{ delta: "End it with `</think>`: <think>x</think>." }, done]
    ],
    [
      "never ends its thinking",
      events(chatChunk({ content: "<think>On and on" }), ...chatEnd("length")),
      [{ type: "finish", reason: "length", parts: [reasoning("On and on")] }]
    ]
  ])("that %s is understood", ([, answer, expected]) =>
    Effect.gen(function* () {
      const { failure, parts } = yield* askServer([answer])
      expect(failure).toBeNull()
      expect(parts).toMatchObject(expected)
      expect(parts).toHaveLength(expected.length)
    })
  )

  it.live.each([
    "Example:\n```\n</think>\n```\nDone",
    "Use <code></think></code> to close.",
    "Models close it with (</think>) always.",
    "Write </think> to close the block.",
    "It ends with </think>"
  ])("that speaks of the closing tag is all text: %j", (content) =>
    Effect.gen(function* () {
      const letters = Array.from(content, (letter) => chatChunk({ content: letter }))
      const { parts } = yield* askServer([events(...letters, ...chatEnd("stop"))])
      expect(textOf(parts)).toBe(content)
      expect(parts.at(-1)).not.toHaveProperty("thoughtChars")
    })
  )

  it.live(
    "whose model is known to think without an opening tag delivers no word before its thinking ends",
    () =>
      Effect.gen(function* () {
        const saying = (...texts: ReadonlyArray<string>) =>
          events(...texts.map((content) => chatChunk({ content })), ...chatEnd("stop"))
        const server = yield* serveAnswers(
          saying("I think.</think>\nOne"),
          saying("I th", "ink.</th", "ink>", " Two"),
          saying("Three"),
          saying("<think>So.</think>Four")
        )
        const answers = yield* Effect.forEach([1, 2, 3, 4], () => ask(model, asking("hi"))).pipe(
          Effect.provide(modelsIn(envOf(server)))
        )
        expect(answers.map((parts) => [textOf(parts), parts.at(-1)])).toMatchObject([
          ["I think.One", { thoughtChars: 8 }],
          ["Two", { parts: [reasoning("I think."), { type: "text", chars: 3 }] }],
          ["Three", done],
          ["Four", { parts: [reasoning("So."), { type: "text", chars: 4 }] }]
        ])
        expect(answers.slice(1).map((parts) => parts.at(-1))).not.toContainEqual(
          expect.objectContaining({ thoughtChars: expect.any(Number) })
        )
      }).pipe(Effect.scoped)
  )

  it.live.each<readonly [string, number, unknown, Record<string, string>?]>([
    ["OpenAI's code with 400", 400, { error: { message: "Slow down", code: "rate_limit_exceeded" } }],
    [
      "Google's status with 403",
      403,
      { error: { message: "Slow down", status: "RESOURCE_EXHAUSTED", code: 403 } }
    ],
    ["a type that ends in error", 400, { error: { message: "Slow down", type: "rate_limit_reached_error" } }],
    ["a full server with 498", 498, { error: { message: "Slow down", type: "capacity_exceeded" } }],
    ["a sentence with 412", 412, { detail: "Too many requests, slow down" }],
    ["a type with 403", 403, { error: { message: "Slow down", type: "rate_limit_error" } }],
    [
      "Groq's code with 413",
      413,
      { error: { message: "Slow down", type: "tokens", code: "rate_limit_exceeded" } }
    ],
    [
      "Groq's code with 413, for a small prompt",
      413,
      {
        error: {
          message: "Request too large for m (TPM): Limit 6000, Requested 900",
          code: "rate_limit_exceeded"
        }
      }
    ],
    ["a time alone with 400", 400, { error: { message: "Not now" } }],
    ["a time alone with 403", 403, { error: { message: "Not now" } }],
    ["a busy server with 400", 400, { error: { message: "Busy", code: "server_busy" } }],
    ["a code beside the message", 400, { message: "Slow down", code: "too_many_requests" }],
    [
      "Google's reason with 403",
      403,
      { error: { code: 403, message: "Slow down", errors: [{ reason: "userRateLimitExceeded" }] } }
    ],
    ["AWS's type with 400", 400, { __type: "com.amazon#ThrottlingException", message: "Slow down" }],
    ["AWS's header with 400", 400, { message: "Slow down" }, { "x-amzn-errortype": "ThrottlingException:x" }],
    ["GitHub's words with 403", 403, { message: "You have exceeded a secondary rate limit" }]
  ])("a rate limit in %s is waited for", ([, status, body, headers = {}]) =>
    Effect.gen(function* () {
      const limited: FakeAnswer = { kind: "json", status, body, headers: { ...headers, "retry-after": "7" } }
      const { parts, pausesMs } = yield* askServer([limited, hello])
      expect([textOf(parts), pausesMs]).toEqual(["Hello", [7_000]])
      const { failure } = yield* askServer([limited])
      expect(failure).toMatchObject({ reason: "rateLimited" })
    })
  )

  it.live.each<readonly [string, number, unknown, string]>([
    [
      "service_unavailable with 400",
      400,
      { error: { message: "x", code: "service_unavailable" } },
      "unavailable"
    ],
    ["overloaded_error with 403", 403, { error: { message: "x", type: "overloaded_error" } }, "unavailable"],
    ["server_busy with 404", 404, { error: { message: "x", type: "server_busy" } }, "unavailable"],
    ["too early", 425, { error: { message: "x" } }, "unavailable"],
    ["Cloudflare's 1015", 403, { title: "error code: 1015" }, "rateLimited"],
    ["words with 403", 403, { error: { message: "You are being rate limited" } }, "rateLimited"],
    [
      "a limit by the minute that this prompt fits in",
      413,
      {
        error: { message: "Request too large (TPM): Limit 6000, Requested 900", code: "rate_limit_exceeded" }
      },
      "rateLimited"
    ]
  ])("%s passes", ([, status, body, reason]) =>
    Effect.gen(function* () {
      const { failure } = yield* askServer([{ kind: "json", status, body }])
      expect(failure).toMatchObject({ reason })
    })
  )

  it.live("a rate limit inside a stream is one, and a bad request there is no outage", () =>
    Effect.gen(function* () {
      for (const [error, reason] of [
        [{ message: "Slow down", type: "rate_limit_error" }, "rateLimited"],
        [{ message: "Too hot", type: "invalid_request_error" }, "refused"]
      ] as const) {
        const { failure } = yield* askServer([events({ error })])
        expect(failure).toMatchObject({ reason })
      }
    })
  )

  it.live.each<readonly [string, number, unknown]>([
    ["a message alone", 400, { message: "Why it is so" }],
    ["a detail", 422, { detail: "Why it is so" }],
    ["details in a list", 422, { detail: [{ loc: ["body"], msg: "Why it is so", type: "value_error" }] }],
    ["an error that is text", 404, { error: "Why it is so" }],
    [
      "a list of errors",
      400,
      [{ error: { code: 400, message: "Why it is so", status: "INVALID_ARGUMENT" } }]
    ],
    ["errors in a list", 400, { errors: [{ message: "Why it is so" }] }],
    ["an error of its own form", 400, { object: "error", message: "Why it is so", code: 400 }]
  ])("a refusal in %s is told in the provider's words", ([, status, body]) =>
    Effect.gen(function* () {
      const { failure } = yield* askServer([{ kind: "json", status, body }])
      expect(failure?.message).toBe(`HTTP ${status}: Why it is so`)
    })
  )

  it.live.each<readonly [string, string]>([
    ["plain text", "Why it is so"],
    ["a page", "<html><head><title>Why it is so</title></head><body>nginx</body></html>"]
  ])("a refusal in %s is told, too", ([, text]) =>
    Effect.gen(function* () {
      const headers = { "content-type": "text/plain" }
      const { failure } = yield* askServer([{ kind: "json", status: 400, text, headers }])
      expect(failure?.message).toBe("HTTP 400: Why it is so")
    })
  )

  it.live.each<readonly [string, object]>([
    ["SAFETY", { parts: [{ delta: "Half" }, { reason: "content-filter" }] }],
    ["sensitive", { parts: [{ delta: "Half" }, { reason: "content-filter" }] }],
    ["MAX_TOKENS", { parts: [{ delta: "Half" }, { reason: "length" }] }],
    ["model_length", { parts: [{ delta: "Half" }, { reason: "length" }] }],
    ["abort", { parts: [{ delta: "Half" }], failure: { reason: "cut" } }],
    ["network_error", { parts: [{ delta: "Half" }], failure: { reason: "cut" } }]
  ])("an answer that ends with %s is not whole", ([reason, expected]) =>
    Effect.gen(function* () {
      const answered = yield* askServer([events(chatChunk({ content: "Half" }), ...chatEnd(reason))])
      expect(answered).toMatchObject(expected)
    })
  )

  it.live.each<readonly [string, ReadonlyArray<string>]>([
    ["an event of its own", ['event: error\ndata: {"error":{"message":"Why it is so"}}\n\n']],
    ["an error that is text", ['data: {"error":"Why it is so"}\n\n']],
    ["an object of an error", ['data: {"object":"error","message":"Why it is so","code":400}\n\n']]
  ])("a stream that fails with %s says why", ([, chunks]) =>
    Effect.gen(function* () {
      const { failure } = yield* askServer([{ kind: "stream", chunks, ending: "end" }])
      expect(failure?.message).toMatch(/Why it is so$/)
    })
  )

  it.live.each([
    "event: keepalive\ndata: ",
    "event: ping",
    "data:",
    "data: {}",
    "data: null",
    'data: {"type":"ping"}',
    'data: {"object":"ping"}'
  ])("the event %j beside an answer is ignored", (odd) =>
    Effect.gen(function* () {
      for (const end of ["[DONE] ", "[done]", '"[DONE]"']) {
        const chunks = [
          `${odd}\n\n`,
          `data: ${JSON.stringify(chatChunk({ content: "Hello" }))}\n\n`,
          `${odd}\n\n`,
          `data: ${JSON.stringify(chatChunk({}, "stop"))}\n\n`,
          `data: {"x_groq":{"id":"r"}}\n\ndata: ${end}\n\n`
        ]
        const { failure, parts } = yield* askServer([{ kind: "stream", chunks, ending: "end" }])
        expect([failure, textOf(parts)]).toEqual([null, "Hello"])
      }
    })
  )

  it.live.each([
    undefined,
    null,
    {},
    { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 },
    { prompt_tokens: 1e12, completion_tokens: 1e12, total_tokens: 2e12 }
  ])("a usage of %j is estimated, for no request is free", (reported) =>
    Effect.gen(function* () {
      const { parts } = yield* askServer([
        events(chatChunk({ content: "Twelve characters" }), chatChunk({}, "stop"), {
          choices: [],
          usage: reported
        })
      ])
      const finish = parts.at(-1)
      expect(finish).toMatchObject({ isUsageEstimated: true })
      if (finish?.type !== "finish") return
      expect(Math.min(finish.usage.inputTokens, finish.usage.outputTokens)).toBeGreaterThan(0)
      expect(Math.max(finish.usage.inputTokens, finish.usage.outputTokens)).toBeLessThan(100)
    })
  )
})
