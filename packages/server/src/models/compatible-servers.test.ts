/** Servers with OpenAI's API that refuse, mistype or mark what others do not, and addresses where no API is. */
import { describe, expect, it } from "@effect/vitest"
import type { ModelConfig } from "@tropism/domain/model-config"
import { Effect } from "effect"
import { anthropicMessages } from "../../testing/providers/anthropic-messages.ts"
import { bedrock } from "../../testing/providers/bedrock.ts"
import { formats } from "../../testing/providers/formats.ts"
import { gemini } from "../../testing/providers/gemini.ts"
import { azureChat, openaiChat, openaiCompatible } from "../../testing/providers/openai-chat.ts"
import { openaiResponses } from "../../testing/providers/openai-responses.ts"
import { conversation, type WireFormat } from "../../testing/providers/wire-format.ts"
import { chatChunk, chatEnd, events, type FakeAnswer, streaming } from "../../testing/fake-model-server.ts"
import type { ModelRequest } from "./model-request.ts"
import { type Answers, askAt } from "../../testing/asked-models.ts"
import { asking } from "../../testing/models.ts"

const page = "<!doctype html>\n<html><head><title>Welcome to nginx!</title></head><body>Hi</body></html>"

const html = (status: number, text = page, type = "text/html; charset=utf-8"): FakeAnswer => ({
  kind: "json",
  status,
  text,
  headers: { "content-type": type }
})

describe("An address where no API is", () => {
  for (const format of formats) {
    const good = streaming(format.answer({ words: ["Hello"] }))
    it.live(`${format.title}: a web page is no outage, and the failure says what to check`, () =>
      Effect.gen(function* () {
        for (const answer of [html(200), html(404), html(405), html(501)]) {
          const { failure, requests, url } = yield* askAt(format, [answer, good])
          expect(failure).toMatchObject({ reason: "refused", isRetryable: false })
          expect(failure?.message).toContain(url)
          expect(failure?.message).toMatch(
            /web page .*Welcome to nginx!.* instead of JSON; check the base URL/
          )
          expect(requests).toHaveLength(1)
        }
      })
    )

    it.live(`${format.title}: a page where the model answered before is an outage`, () =>
      Effect.gen(function* () {
        for (const answer of [html(200), html(404), html(404, "404 page not found", "text/plain")]) {
          const { requests, texts } = yield* askAt(
            format,
            [good, answer, good],
            {},
            asking("hi"),
            asking("hi")
          )
          expect([texts, requests.length]).toEqual([["Hello", "Hello"], 3])
        }
      })
    )

    it.live(`${format.title}: the page of a proxy in an outage is one`, () =>
      Effect.gen(function* () {
        for (const answer of [html(502), html(503), html(504), html(500)]) {
          const { requests, texts } = yield* askAt(format, [answer, good])
          expect([texts, requests.length]).toEqual([["Hello"], 2])
        }
      })
    )
  }

  it.live("is recognised by what it answers where its type says nothing", () =>
    Effect.gen(function* () {
      for (const [text, what] of [
        [page, "a web page (HTTP 200: Welcome to nginx!)"],
        ["Ollama is running", "a text (HTTP 200: Ollama is running)"]
      ] as const) {
        const { failure, requests } = yield* askAt(openaiCompatible, [html(200, text, "text/plain")])
        expect([failure, requests.length]).toMatchObject([{ reason: "refused" }, 1])
        expect(failure?.message).toContain(what)
      }
    })
  )

  it.live("is not taken for one where a stream has no type", () =>
    Effect.gen(function* () {
      const body = openaiCompatible.answer({ words: ["Hello"] }).join("")
      for (const text of [body, `\n: ping\n\n${body}`]) {
        const { texts } = yield* askAt(openaiCompatible, [html(200, text, "text/plain")])
        expect(texts).toEqual(["Hello"])
      }
    })
  )

  it.live.each([anthropicMessages, gemini])(
    "a refusal of another form is told in its words: $title",
    (format) =>
      Effect.gen(function* () {
        const body = { detail: [{ loc: ["body", "top_k"], msg: "Why it is so", type: "value_error" }] }
        const { failure } = yield* askAt(format, [{ kind: "json", status: 422, body }])
        expect(failure?.message).toBe("HTTP 422: top_k: Why it is so")
      })
  )

  it.live("a page with another refusal is told by its title", () =>
    Effect.gen(function* () {
      const { failure } = yield* askAt(openaiCompatible, [html(403)])
      expect(failure).toMatchObject({ reason: "authentication", message: "HTTP 403: Welcome to nginx!" })
    })
  )
})

/** A refusal in the words of a server: the field that it refuses, its status and its body. */
type OptionRefusal = readonly [string, WireFormat, Partial<ModelConfig>, number, unknown, object]

const error = (message: string, more: object = {}) => ({ error: { message, ...more } })

describe("An option that a server does not know", () => {
  const optionRefusals: ReadonlyArray<OptionRefusal> = [
    [
      "stream_options, in the words of FastAPI",
      openaiCompatible,
      {},
      422,
      {
        detail: [
          { type: "extra_forbidden", loc: ["body", "stream_options"], msg: "Extra inputs are not permitted" }
        ]
      },
      { stream_options: undefined }
    ],
    [
      "stream_options, in the words of vLLM",
      openaiCompatible,
      {},
      400,
      {
        object: "error",
        message:
          "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': 'Extra inputs are not permitted', 'input': {'include_usage': True}}]",
        code: 400
      },
      { stream_options: undefined }
    ],
    [
      "stream_options, in the words of older deployments at Azure",
      azureChat,
      {},
      400,
      error("Unrecognized request argument supplied: stream_options", { type: "invalid_request_error" }),
      { stream_options: undefined }
    ],
    [
      "stream_options, in the words of a server in Go",
      openaiCompatible,
      {},
      400,
      error('json: unknown field "stream_options"'),
      { stream_options: undefined }
    ],
    [
      "parallel_tool_calls, in OpenAI's words",
      openaiChat,
      { name: "o4-mini", providerOptions: { parallelToolCalls: false } },
      400,
      error("Unsupported parameter: 'parallel_tool_calls' is not supported with this model.", {
        param: "parallel_tool_calls",
        code: "unsupported_parameter"
      }),
      { parallel_tool_calls: undefined }
    ],
    [
      "max_tokens, in OpenAI's words",
      azureChat,
      { maxOutputTokens: 99 },
      400,
      error(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        { param: "max_tokens", code: "unsupported_parameter" }
      ),
      { max_tokens: undefined, max_completion_tokens: 99 }
    ],
    [
      "max_completion_tokens, of a server that knows the older name",
      openaiChat,
      { name: "gpt-5.4", maxOutputTokens: 99 },
      400,
      error("Unknown parameter: 'max_completion_tokens'."),
      { max_completion_tokens: undefined, max_tokens: 99 }
    ],
    [
      "temperature, in OpenAI's words",
      azureChat,
      { temperature: 0.5 },
      400,
      error(
        "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
        { param: "temperature", code: "unsupported_value" }
      ),
      { temperature: undefined }
    ],
    [
      "temperature, in Anthropic's words",
      anthropicMessages,
      { temperature: 0.5 },
      400,
      {
        type: "error",
        ...error("`temperature` is deprecated for this model.", { type: "invalid_request_error" })
      },
      { temperature: undefined }
    ],
    [
      "temperature, of a model at Bedrock, whose requests are signed",
      bedrock,
      { temperature: 0.5 },
      400,
      { message: "The model returned the following errors: `temperature` is deprecated for this model." },
      { inferenceConfig: expect.not.objectContaining({ temperature: expect.anything() }) }
    ],
    [
      "reasoning_effort",
      openaiCompatible,
      { reasoning: "low" },
      400,
      error("property 'reasoning_effort' is unsupported"),
      { reasoning_effort: undefined }
    ],
    [
      "store",
      openaiChat,
      {},
      422,
      {
        detail: [{ type: "extra_forbidden", loc: ["body", "store"], msg: "Extra inputs are not permitted" }]
      },
      { store: undefined }
    ]
  ]
  it.live.each(optionRefusals)(
    "%s: the model is asked without it at once, and from then on",
    ([, format, more, status, body, expected]) =>
      Effect.gen(function* () {
        const { bodies, requests, texts } = yield* askAt(
          format,
          [{ kind: "json", status, body }, streaming(format.answer({ words: ["Hello"] }))],
          more,
          asking("hi"),
          asking("hi again")
        )
        expect(texts).toEqual(["Hello", "Hello"])
        expect(bodies).toHaveLength(3)
        const [first, ...others] = bodies
        for (const [field, value] of Object.entries(expected))
          if (value === undefined) expect(first).toHaveProperty(field)
        for (const other of others)
          for (const [field, value] of Object.entries(expected)) expect(other[field]).toEqual(value)
        expect(JSON.stringify(requests.map(({ headers }) => headers))).not.toContain("x-tropism")
      })
  )

  it.live("one after the other are learned, and a refusal that stays is told", () =>
    Effect.gen(function* () {
      const unknown = (field: string): FakeAnswer => ({
        kind: "json",
        status: 400,
        body: error(`unknown field ${field}`)
      })
      const answers: Answers = [unknown("stream_options"), unknown("temperature"), unknown("messages")]
      const { bodies, failure } = yield* askAt(openaiCompatible, answers, { temperature: 0.5 })
      expect(bodies).toHaveLength(3)
      expect(failure).toMatchObject({ reason: "refused", message: "HTTP 400: unknown field messages" })
    })
  )

  it.live("is not taken for one where a refusal is of its value", () =>
    Effect.gen(function* () {
      const body = error("temperature must be between 0 and 1; max_tokens is too large: 99")
      const { bodies, failure } = yield* askAt(openaiCompatible, [{ kind: "json", status: 400, body }], {
        temperature: 2,
        maxOutputTokens: 99
      })
      expect([bodies.length, failure]).toMatchObject([1, { reason: "refused" }])
    })
  )
})

describe("A role that a chat template does not know", () => {
  const instructed: ModelRequest = {
    tools: [],
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello" },
      { role: "assistant", content: [{ type: "text", text: "Hi." }] },
      { role: "user", content: "And now?" },
      { role: "system", content: "Time is up." }
    ]
  }
  const rolesOf = (body: { readonly messages: ReadonlyArray<{ readonly role: string }> }) =>
    body.messages.map(({ role }) => role)

  it.live.each<readonly [string, WireFormat, number, unknown]>([
    ["Gemma's", openaiCompatible, 400, error("System role not supported")],
    ["llama.cpp's", openaiCompatible, 500, error("Jinja Exception: System role not supported")],
    [
      "o1-mini's",
      openaiCompatible,
      400,
      error("Unsupported value: 'messages[0].role' does not support 'system' with this model.")
    ]
  ])("%s: the user says the instructions", ([, format, status, body]) =>
    Effect.gen(function* () {
      const refused: FakeAnswer = { kind: "json", status, body }
      const good = streaming(format.answer({ words: ["Hello"] }))
      const answered = yield* askAt(format, [refused, refused, good], {}, instructed, instructed)
      expect(answered.texts).toEqual(["Hello", "Hello"])
      expect(answered.bodies.map(rolesOf).slice(2)).toEqual([
        ["user", "assistant", "user"],
        ["user", "assistant", "user"]
      ])
      expect(answered.bodies.at(-1).messages[0].content).toBe("Be brief.\n\nHello")
      expect(JSON.stringify(answered.bodies.at(-1))).toContain("<system>\\nTime is up.")
    })
  )

  it.live("of a developer's is sent as the system's", () =>
    Effect.gen(function* () {
      const body = error(
        "'developer' is not one of ['system', 'assistant', 'user', 'tool'] - 'messages.0.role'"
      )
      const good = streaming(openaiChat.answer({ words: ["Hello"] }))
      const refused: FakeAnswer = { kind: "json", status: 400, body }
      const answered = yield* askAt(openaiChat, [refused, good], { name: "gpt-5.4" }, instructed, instructed)
      expect(answered.texts).toEqual(["Hello", "Hello"])
      expect(answered.bodies.map((each) => rolesOf(each)[0])).toEqual(["developer", "system", "system"])
    })
  )
})

describe("Fields of another type", () => {
  const call = (delta: object): object => Object(chatChunk({ tool_calls: [delta] }))
  const typed = [openaiChat, openaiCompatible]
  for (const format of typed) {
    it.live(`${format.title}: ids and times as numbers and as text are understood`, () =>
      Effect.gen(function* () {
        const odd = (delta: object, finish: string | null = null) => ({
          id: 7,
          created: "1764471600",
          model: 5,
          choices: [{ index: "0", delta: { role: "ASSISTANT", ...delta }, finish_reason: finish }]
        })
        const { failure, texts } = yield* askAt(format, [
          events(odd({ content: "Hel" }), odd({ content: "lo" }, "stop"), "[DONE]")
        ])
        expect([failure, texts]).toEqual([null, ["Hello"]])
      })
    )

    it.live.each<readonly [string, ReadonlyArray<object>]>([
      [
        "ids that are numbers",
        [
          call({ index: 0, id: 11, function: { name: "a", arguments: '{"n":' } }),
          call({ index: 0, id: 11, function: { arguments: "1}" } }),
          call({ index: 1, id: 12, function: { name: "b", arguments: '{"n":2}' } })
        ]
      ],
      [
        "places that are text",
        [
          call({ index: "0", id: "x", function: { name: "a", arguments: null } }),
          call({ index: "0", function: { arguments: '{"n":1}' } }),
          call({ index: "1", id: "y", function: { name: "b", arguments: '{"n":2}' } })
        ]
      ],
      [
        "no places",
        [
          call({ id: "x", function: { name: "a", arguments: "" } }),
          call({ function: { arguments: '{"n":' } }),
          call({ id: "x", function: { arguments: "1}" } }),
          call({ id: "y", function: { name: "b", arguments: '{"n":2}' } })
        ]
      ],
      [
        "no places and no ids",
        [
          call({ function: { name: "a", arguments: '{"n":1}' } }),
          call({ function: { name: "b", arguments: { n: 2 } } })
        ]
      ]
    ])(`${format.title}: calls with %s are understood`, ([, chunks]) =>
      Effect.gen(function* () {
        const { failure, parts } = yield* askAt(format, [events(...chunks, ...chatEnd("tool_calls"))])
        expect(failure).toBeNull()
        expect(parts).toMatchObject([
          { type: "toolCall", name: "a", arguments: { n: 1 }, fault: null },
          { type: "toolCall", name: "b", arguments: { n: 2 }, fault: null },
          { type: "finish", reason: "tool-calls" }
        ])
      })
    )
  }

  it.live("arguments that are null are none, and a message in each chunk is a delta", () =>
    Effect.gen(function* () {
      const said = { choices: [{ message: { role: "assistant", content: "Hi" } }] }
      const { parts } = yield* askAt(openaiCompatible, [
        events(
          said,
          call({ index: 0, id: "x", function: { name: "a", arguments: null } }),
          ...chatEnd("tool_calls")
        )
      ])
      expect(parts).toMatchObject([
        { delta: "Hi" },
        { name: "a", arguments: {}, fault: null },
        { type: "finish" }
      ])
    })
  )
})

const saying = (text: string, end = "stop") => [
  events(chatChunk({ content: text }), ...chatEnd(end)),
  events(...Array.from(text, (letter) => chatChunk({ content: letter })), ...chatEnd(end))
]

describe("Thinking in the marks of a chat template", () => {
  const harmony = "<|channel|>analysis<|message|>I think.<|end|><|start|>assistant<|channel|>final<|message|>"
  it.live.each([
    "<think>\nI think.</think>\n\nAnswer",
    "<thinking>I think.</thinking>Answer",
    "\n<reasoning>I think.</reasoning>\nAnswer",
    "<thought>I think.</thought> Answer",
    "[THINK]I think.[/THINK]Answer",
    "◁think▷I think.◁/think▷Answer",
    "<seed:think>I think.</seed:think>Answer",
    "<think>I think.</think></think>Answer",
    "<|begin_of_thought|>I think.<|end_of_thought|>Answer",
    "<|START_THINKING|>I think.<|END_THINKING|>Answer",
    "<mm:think>I think.</mm:think>Answer",
    "<thoughts>I think.</thoughts>Answer",
    "<analysis>I think.</analysis>Answer",
    "<THINK>I think.</THINK>Answer",
    `${harmony}Answer`,
    `${harmony}Answer<|return|>`,
    `<|start|>assistant${harmony}Answer<|end|>`
  ])("%j is reasoning and an answer", (text) =>
    Effect.gen(function* () {
      for (const answer of saying(text)) {
        const { parts, texts } = yield* askAt(openaiCompatible, [answer])
        expect(texts).toEqual(["Answer"])
        expect(parts.at(-1)).toMatchObject({
          parts: [
            { type: "reasoning", text: expect.stringMatching(/^\s*I think\.$/) },
            { type: "text", chars: 6 }
          ]
        })
      }
    })
  )

  it.live("two channels before the final one are reasoning, and a final one alone is the answer", () =>
    Effect.gen(function* () {
      const both = harmony.replace(
        "<|end|>",
        "<|end|><|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
      )
      const first = yield* askAt(openaiCompatible, [saying(`${both}Answer`)[1] ?? { kind: "silence" }])
      expect(first.texts).toEqual(["Answer"])
      expect(first.parts.at(-1)).toMatchObject({ parts: [{ text: "I think.\nI look." }, { type: "text" }] })
      for (const answer of saying("<|channel|>final<|message|>Answer with < and <b><|return|>")) {
        const second = yield* askAt(openaiCompatible, [answer])
        expect(second.texts).toEqual(["Answer with < and <b>"])
      }
    })
  )

  it.live.each([
    "<thinking> is a tag that some models write.",
    "<think> and </think> are the tags.",
    "[THINK], [/THINK]: Magistral's marks.",
    "<reasoning>, unlike <think>, is rare.",
    "<thinkers> think.",
    "[THINGS] to do",
    "The <thinking>mark</thinking> in the midst",
    "Use <|channel|>final<|message|> for the answer"
  ])("%j speaks of them, and is text", (text) =>
    Effect.gen(function* () {
      for (const answer of saying(text)) {
        const { parts, texts } = yield* askAt(openaiCompatible, [answer])
        expect(texts).toEqual([text])
        expect(parts.at(-1)).not.toHaveProperty("parts")
      }
    })
  )

  it.live.each([
    ["[THINK]On and on", "length"],
    ["<thinking>\nOn and on", "stop"]
  ] as const)("%j, ended by %s, is reasoning without an answer", ([text, end]) =>
    Effect.gen(function* () {
      for (const answer of saying(text, end)) {
        const { parts, texts } = yield* askAt(openaiCompatible, [answer])
        expect(texts).toEqual([""])
        expect(parts.at(-1)).toMatchObject({ parts: [{ type: "reasoning" }] })
      }
    })
  )
})

describe("A refusal by the codes of its provider", () => {
  const dashScope = (code: string, message: string) => ({ code, message, request_id: "r" })
  // docs.bigmodel.cn/cn/api/api-code; help.aliyun.com/model-studio/error-code; cloud.baidu.com/doc/qianfan-api/s/rmwbl43x7;
  // cloud.baidu.com/doc/WENXINWORKSHOP/s/tlmyncueh; platform.minimax.io/docs/api-reference/errorcode; RFC 9457.
  it.live.each<readonly [string, number, unknown, string, string]>([
    ["Zhipu's 1302", 429, error("并发数过高", { code: "1302" }), "rateLimited", "HTTP 429: 并发数过高"],
    ["Zhipu's 1303, with 400", 400, error("频率过高", { code: "1303" }), "rateLimited", "HTTP 400: 频率过高"],
    ["Zhipu's 1305, a number", 400, error("流量限制", { code: 1305 }), "rateLimited", "HTTP 400: 流量限制"],
    ["Zhipu's 1113", 429, error("您的账户已欠费", { code: "1113" }), "quota", "HTTP 429: 您的账户已欠费"],
    [
      "Zhipu's 1261",
      400,
      error("Prompt 超长", { code: "1261" }),
      "tooLong",
      "HTTP 400: Prompt 超长 (context length exceeded)"
    ],
    [
      "Zhipu's 1211, an unknown model",
      400,
      error("模型不存在", { code: "1211" }),
      "refused",
      "HTTP 400: 模型不存在"
    ],
    ["DashScope's Throttling", 400, dashScope("Throttling", "Slow"), "rateLimited", "HTTP 400: Slow"],
    [
      "DashScope's Throttling.AllocationQuota",
      403,
      dashScope("Throttling.AllocationQuota", "Allocated quota exceeded"),
      "rateLimited",
      "HTTP 403: Allocated quota exceeded"
    ],
    [
      "DashScope's Arrearage",
      400,
      dashScope("Arrearage", "Access denied, please make sure your account is in good standing."),
      "quota",
      "HTTP 400: Access denied, please make sure your account is in good standing."
    ],
    [
      "Baidu's rpm_rate_limit_exceeded",
      400,
      error("Rate limit reached for RPM", { code: "rpm_rate_limit_exceeded" }),
      "rateLimited",
      "HTTP 400: Rate limit reached for RPM"
    ],
    [
      "Baidu's tokens_too_long",
      400,
      error("Prompt tokens too long", { code: "tokens_too_long" }),
      "tooLong",
      "HTTP 400: Prompt tokens too long (context length exceeded)"
    ],
    [
      "Baidu's 18, with 200",
      200,
      { error_code: 18, error_msg: "Open api qps request limit reached" },
      "rateLimited",
      "HTTP 429: Open api qps request limit reached"
    ],
    [
      "Baidu's 336501 beside msg, with 200",
      200,
      { code: 336_501, msg: "Rate limit reached for RPM" },
      "rateLimited",
      "HTTP 429: Rate limit reached for RPM"
    ],
    [
      "Baidu's 110, with 200",
      200,
      { error_code: 110, error_msg: "Access token invalid or no longer valid" },
      "authentication",
      "HTTP 401: Access token invalid or no longer valid"
    ],
    [
      "MiniMax's 1002, with 200",
      200,
      { base_resp: { status_code: 1002, status_msg: "rate limit" } },
      "rateLimited",
      "HTTP 429: rate limit"
    ],
    [
      "MiniMax's 1008, with 200",
      200,
      { choices: null, base_resp: { status_code: 1008, status_msg: "insufficient balance" } },
      "quota",
      "HTTP 402: insufficient balance"
    ],
    [
      "MiniMax's 1024, with 200",
      200,
      { base_resp: { status_code: 1024, status_msg: "internal error" } },
      "unavailable",
      "HTTP 503: internal error"
    ],
    [
      "MiniMax's 1026, with 200",
      200,
      { base_resp: { status_code: 1026, status_msg: "input sensitive" } },
      "refused",
      "HTTP 400: input sensitive"
    ],
    ["DeepSeek's 402", 402, error("Insufficient Balance"), "quota", "HTTP 402: Insufficient Balance"],
    [
      "a problem of RFC 9457 with a title alone",
      400,
      { type: "about:blank", title: "No such model", status: 400 },
      "refused",
      "HTTP 400: No such model"
    ]
  ])("%s", ([, status, body, reason, message]) =>
    Effect.gen(function* () {
      const type = "title" in Object(body) ? "application/problem+json" : "application/json"
      const answer: FakeAnswer = { kind: "json", status, body, headers: { "content-type": type } }
      const { failure } = yield* askAt(openaiCompatible, [answer])
      expect(failure).toMatchObject({ reason })
      expect(failure?.message).toContain(message)
    })
  )

  it.live("MiniMax's zero in each chunk is no refusal, and its 1002 in a stream is one", () =>
    Effect.gen(function* () {
      const fine = { base_resp: { status_code: 0, status_msg: "" } }
      const good = events(
        { ...Object(chatChunk({ content: "Hello" })), ...fine },
        { ...Object(chatChunk({}, "stop")), ...fine },
        "[DONE]"
      )
      const limited = events({ choices: [], base_resp: { status_code: 1002, status_msg: "rate limit" } })
      const { failure, pausesMs, texts } = yield* askAt(openaiCompatible, [limited, good])
      expect([failure, texts, pausesMs.length]).toEqual([null, ["Hello"], 1])
    })
  )

  it.live("at OpenAI's Responses API a used-up quota stays one", () =>
    Effect.gen(function* () {
      const body = error("You exceeded your current quota", { code: "insufficient_quota" })
      const { failure, requests } = yield* askAt(
        openaiResponses,
        [{ kind: "json", status: 429, body }],
        {},
        conversation
      )
      expect([failure, requests.length]).toMatchObject([{ reason: "quota" }, 1])
    })
  )
})
