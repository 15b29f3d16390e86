/**
 * What chat programs really send, and what each is answered: Open WebUI, LibreChat, LangChain, the AI SDK, `llm`.
 *
 * A request is as the program writes it, sent with no client between.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { echo } from "../testing/context-words.ts"
import { newModel, outputText, sendCompletion, sendResponse } from "../testing/openai-words.ts"
import { ask } from "../testing/owner-rows.ts"
import type { Json, Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"

const user = (content: Json, more: Json = {}) => ({ role: "user", content, ...more })
const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]).toString("base64")
const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${png}`, detail: "auto" } }
const weather = { type: "function", function: { name: "get_weather", parameters: { type: "object" } } }

/** A program, what it sends, and the answer. */
const answered: ReadonlyArray<readonly [string, Json, string]> = [
  [
    "Open WebUI chats",
    {
      stream: true,
      stream_options: { include_usage: true },
      messages: [user("Hello")],
      params: {},
      files: []
    },
    "Answer 1: Hello"
  ],
  [
    "Open WebUI asks for a title",
    {
      stream: false,
      max_completion_tokens: 1_000,
      messages: [user("### Task:\nGenerate a concise title.")],
      metadata: { task: "title_generation", chat_id: "c1", task_body: { model: "clerk", messages: [] } }
    },
    "Answer 1: ### Task:\nGenerate a concise title."
  ],
  [
    "Open WebUI goes on behind an answer that was empty",
    { messages: [user("Hello"), { role: "assistant", content: "" }, user("And?")], stream: false },
    "Answer 2: And?"
  ],
  [
    "Open WebUI continues an answer that was cut",
    { messages: [user("Hello"), { role: "assistant", content: "Once upon" }], stream: false },
    "Answer 2: Continue"
  ],
  [
    "a client of llama.cpp sets no limit",
    { messages: [user("Hello")], max_tokens: -1, n_predict: -1 },
    "Answer 1: Hello"
  ],
  [
    "LM Studio sends the address of a picture as text",
    {
      messages: [
        user([
          { type: "image_url", image_url: picture.image_url.url },
          { type: "text", text: "This?" }
        ])
      ]
    },
    "Answer 2: This?"
  ],
  [
    "LibreChat chats",
    {
      user: "66f0c1d2e3a4b5c6d7e8f901",
      stream: true,
      stream_options: { include_usage: true },
      temperature: 1,
      top_p: 1,
      presence_penalty: 0,
      frequency_penalty: 0,
      messages: [
        { role: "system", content: "You are ChatGPT.", name: "instructions" },
        user([{ type: "text", text: "Hello" }])
      ]
    },
    "Answer 1: Hello"
  ],
  [
    "LangChain's ChatOpenAI invokes",
    {
      temperature: 0.7,
      top_p: 1,
      frequency_penalty: 0,
      presence_penalty: 0,
      n: 1,
      stream: false,
      logprobs: null,
      stop: null,
      messages: [
        { role: "developer", content: [{ type: "text", text: "Be brief." }] },
        user("Hello", { name: "ada" }),
        { role: "assistant", content: null, refusal: null, tool_calls: [] },
        user("And?")
      ]
    },
    "Answer 2: And?"
  ],
  [
    "the AI SDK speaks in parts, with a seed and a format that is text",
    {
      seed: 7,
      parallel_tool_calls: true,
      tool_choice: "auto",
      response_format: { type: "text" },
      messages: [{ role: "system", content: "Be brief." }, user([{ type: "text", text: "Look:" }, picture])]
    },
    "Answer 2: Look:"
  ],
  [
    "llm changes its system prompt on the way, and sends a picture with nothing beside it",
    {
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "Be brief." },
        user("Hello"),
        { role: "assistant", content: "Hi." },
        { role: "system", content: "Be long." },
        user([picture])
      ]
    },
    "Answer"
  ],
  // n8n-io/n8n, nodes/vendors/OpenAi/v2/actions/text/message.operation.ts
  [
    "n8n's OpenAI node sends a message with all its options",
    {
      messages: [user("Hello")],
      frequency_penalty: 0,
      max_completion_tokens: 16,
      n: 1,
      presence_penalty: 0,
      temperature: 1,
      top_p: 1,
      reasoning_effort: "medium"
    },
    "Answer 1: Hello"
  ],
  [
    "n8n's chat model sets no limit, through LangChain",
    {
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: -1,
      n: 1,
      response_format: { type: "text" },
      parallel_tool_calls: true,
      messages: [{ role: "system", content: "You are a helpful assistant" }, user("Hello")]
    },
    "Answer 1: Hello"
  ],
  // cline/cline, src/core/api/providers/openai.ts and transform/openai-format.ts
  [
    "Cline sends parts, and answers of its model that were reasoning alone",
    {
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0,
      messages: [
        { role: "system", content: "You are Cline." },
        user([{ type: "text", text: "Hello" }]),
        { role: "assistant", reasoning_details: [{ type: "reasoning.text", text: "Hm.", index: 0 }] },
        user([
          { type: "text", text: "And?" },
          { type: "image_url", image_url: { url: picture.image_url.url } }
        ])
      ]
    },
    ": And?"
  ],
  [
    "Cline takes the model for one that reasons",
    {
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 32_000,
      reasoning_effort: "high",
      messages: [{ role: "developer", content: "You are Cline." }, user([{ type: "text", text: "Hello" }])]
    },
    "Answer 1: Hello"
  ],
  // continuedev/continue, core/llm/openaiTypeConverters.ts
  [
    "Continue sends a blank for what is empty, and a picture with a text that it lacks",
    {
      stream: true,
      max_tokens: 2_048,
      stop: [],
      prediction: null,
      tools: [],
      messages: [
        { role: "system", content: "Be brief." },
        user("Hello"),
        { role: "assistant", content: " " },
        user([
          { type: "text", text: "And?" },
          { type: "image_url", text: null, image_url: { url: picture.image_url.url, detail: "auto" } }
        ])
      ]
    },
    ": And?"
  ],
  // danny-avila/LibreChat, packages/api/src/endpoints/openai/llm.ts
  [
    "LibreChat adds what its operator has set",
    {
      stream: true,
      user: "66f0c1d2e3a4b5c6d7e8f901",
      reasoning_effort: "low",
      reasoning: { effort: "low", summary: "auto" },
      verbosity: "low",
      service_tier: "auto",
      include_reasoning: true,
      plugins: [{ id: "web" }],
      stop: null,
      seed: 3,
      logit_bias: {},
      metadata: { session: 7, tags: ["a"] },
      messages: [user([{ type: "text", text: "Hello" }])]
    },
    "Answer 1: Hello"
  ]
]

/** The same through the Responses API. */
const responded: ReadonlyArray<readonly [string, Json, string]> = [
  // n8n-io/n8n, nodes/vendors/OpenAi/v2/actions/text/helpers/responses.ts
  [
    "n8n's OpenAI node",
    {
      input: [
        { role: "system", content: [{ type: "input_text", text: "Be brief." }] },
        { role: "user", content: [{ type: "input_text", text: "Hello" }] },
        { role: "assistant", content: [{ type: "input_text", text: "Hi." }] },
        { role: "user", content: [{ type: "input_text", text: "And?" }] }
      ],
      parallel_tool_calls: true,
      store: true,
      background: false,
      max_output_tokens: 16,
      prompt_cache_key: "k",
      safety_identifier: "s",
      service_tier: "auto",
      top_p: 1,
      top_logprobs: 0,
      truncation: "auto",
      include: ["message.output_text.logprobs"],
      metadata: { flow: "a" },
      reasoning: { effort: "medium" },
      text: { verbosity: "medium", format: { type: "text" } },
      tools: []
    },
    "Answer 2: And?"
  ],
  [
    "n8n's node with a picture",
    {
      input: [
        {
          role: "user",
          content: [{ type: "input_image", detail: "auto", image_url: picture.image_url.url }]
        },
        { role: "user", content: [{ type: "input_text", text: "This?" }] }
      ],
      store: true
    },
    "Answer 2: This?"
  ],
  // @langchain/openai, as n8n's chat model and LibreChat use it
  [
    "LangChain's ChatOpenAI",
    {
      input: [
        { type: "message", role: "developer", content: "Be brief." },
        { type: "message", role: "user", content: [{ type: "input_text", text: "Hello" }] }
      ],
      include: ["reasoning.encrypted_content"],
      max_output_tokens: -1,
      parallel_tool_calls: null,
      store: false,
      stream: false,
      temperature: null,
      text: { verbosity: "low" },
      tool_choice: null,
      user: "u"
    },
    "Answer 1: Hello"
  ]
]

/** What is refused there, and the field that is to blame. */
const unrespondable: ReadonlyArray<readonly [string, Json, string]> = [
  ["n8n's node with a search of the web", { input: "Hello", tools: [{ type: "web_search" }] }, "tools"],
  [
    "n8n's node that wants JSON",
    { input: "Hello", text: { format: { type: "json_object" } } },
    "text.format"
  ],
  ["n8n's node with a prompt of OpenAI's", { input: "Hello", prompt: { id: "pmpt_1" } }, "prompt"],
  [
    "LangChain goes on after a tool of its own",
    {
      input: [
        { role: "user", content: "Hello" },
        { type: "function_call", call_id: "c1", name: "get_weather", arguments: "{}" },
        { type: "function_call_output", call_id: "c1", output: "Sunny" }
      ]
    },
    "input[1].type"
  ]
]

/** A program, what it sends, and the field that is to blame. */
const refused: ReadonlyArray<readonly [string, Json, string]> = [
  ["Open WebUI with tools of its own", { messages: [user("Hello")], tools: [weather] }, "tools"],
  [
    "LangChain asks for a structure",
    { messages: [user("Hello")], response_format: { type: "json_schema", json_schema: { name: "x" } } },
    "response_format"
  ],
  [
    "llm asks for JSON",
    { messages: [user("Hello")], response_format: { type: "json_object" } },
    "response_format"
  ],
  [
    "the AI SDK's generateObject by a tool",
    {
      messages: [user("Hello")],
      tools: [weather],
      tool_choice: { type: "function", function: { name: "x" } }
    },
    "tools"
  ],
  [
    "the AI SDK goes on behind a tool of its own",
    {
      messages: [
        user("Hello"),
        { role: "assistant", content: "", tool_calls: [{ id: "c1", ...weather }] },
        { role: "tool", tool_call_id: "c1", content: "Sunny" }
      ]
    },
    "messages[1].tool_calls"
  ],
  [
    "n8n's node that wants JSON",
    { messages: [user("Hello")], response_format: { type: "json_object" }, n: 1 },
    "response_format"
  ],
  ["n8n's node that wants two answers", { messages: [user("Hello")], n: 2 }, "n"],
  [
    "Cline with tools of its own",
    { messages: [user("Hello")], tools: [weather], tool_choice: "auto" },
    "tools"
  ],
  [
    "Continue names no call with the result of a tool",
    { messages: [user("Hello"), { role: "assistant", content: " " }, { role: "tool", content: "Sunny" }] },
    "messages[2].role"
  ],
  ["LibreChat with stop sequences", { messages: [user("Hello")], stop: ["||>"] }, "stop"],
  [
    "llm sends a recording",
    { messages: [user([{ type: "input_audio", input_audio: {} }])] },
    "messages[0].content[0]"
  ]
]

/** The words of an answer, whole or streamed. */
const wordsOf = ({ body }: Json): string =>
  typeof body === "string"
    ? body
        .split("\n\n")
        .filter((line) => line.startsWith("data: {"))
        .map((line) => JSON.parse(line.slice(6)).choices[0]?.delta.content ?? "")
        .join("")
    : body.choices[0].message.content

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  const clerkHere = Effect.gen(function* () {
    const story = yield* newStoryHere
    yield* newModel(story, "clerk", echo)
    return story
  })
  const at = ({ projectId }: Story, path: string) => `/api/projects/${projectId}/v1${path}`

  describe("What chat programs send", () => {
    it.effect("is answered, whole and streamed", () =>
      Effect.gen(function* () {
        const story = yield* clerkHere
        for (const [program, body, words] of answered) {
          const answer = yield* sendCompletion(story, { model: "clerk", ...body })
          expect([program, answer.status, wordsOf(answer)]).toEqual([
            program,
            200,
            expect.stringContaining(words)
          ])
          if (body.stream) expect(answer.body).toMatch(/\n\ndata: \[DONE\]\n\n$/)
          if (body.stream_options?.include_usage)
            expect(answer.body).toMatch(/"usage":\{"prompt_tokens":\d+.*\n\ndata: \[DONE\]\n\n$/s)
        }
      })
    )

    it.effect("is answered through the Responses API, or refused there with the field to blame", () =>
      Effect.gen(function* () {
        const story = yield* clerkHere
        for (const [program, body, words] of responded) {
          const { body: told, status } = yield* sendResponse(story, { model: "clerk", ...body })
          expect([program, status, told.error?.message ?? outputText(told)]).toEqual([
            program,
            200,
            expect.stringContaining(words)
          ])
        }
        const runs = (yield* story.get("/runs")).items.length
        for (const [program, body, param] of unrespondable) {
          const { body: told, status } = yield* sendResponse(story, { model: "clerk", ...body })
          expect([program, status, told.error?.param]).toEqual([program, 400, param])
        }
        expect((yield* story.get("/runs")).items).toHaveLength(runs)
      })
    )

    it.effect("for themselves leaves a run, and no conversation in any list", () =>
      Effect.gen(function* () {
        const story = yield* clerkHere
        const title = "### Task:\nGenerate a concise title.\n<chat_history>\nUSER: Hello\n</chat_history>"
        const helper = yield* sendCompletion(story, { model: "clerk", messages: [user(title)] })
        const response = yield* story.send("POST", at(story, "/responses"), { model: "clerk", input: title })
        const chat = yield* sendCompletion(story, { model: "clerk", messages: [user("Hello")] })
        expect([helper, response, chat].map(({ status }) => status)).toEqual([200, 200, 200])
        const namesOf = ({ headers }: Json) => headers.get("x-tropism-conversation")
        expect([helper, response].map(namesOf)).toEqual([null, null])
        const listed = (yield* story.get("/contexts")).items.map(({ name }: Json) => name)
        expect(listed).toEqual([namesOf(chat)])
        expect((yield* story.get("/conversations")).items).toEqual([])
        const runs = (yield* story.get("/runs")).items
        expect(runs).toHaveLength(3)
        // A context of somebody's own may be called so.
        const agents: ReadonlyArray<Json> = (yield* story.get("/agents")).items
        const agent = agents.find(({ name }) => name === "clerk")
        yield* story.post("/contexts", { agentId: agent?.id, name: "helper-1" })
        expect((yield* story.get("/contexts")).items.map(({ name }: Json) => name)).toContain("helper-1")
      })
    )

    it.effect("is refused with the field to blame where an answer without it would be another one", () =>
      Effect.gen(function* () {
        const story = yield* clerkHere
        for (const [program, body, param] of refused)
          for (const stream of [false, true]) {
            const {
              body: told,
              headers,
              status
            } = yield* sendCompletion(story, { model: "clerk", stream, ...body })
            expect([program, status, told.error?.param, told.error?.type]).toEqual([
              program,
              400,
              param,
              "invalid_request_error"
            ])
            expect(headers.get("content-type")).toMatch(/^application\/json/)
          }
        expect((yield* story.get("/runs")).items).toEqual([])
      })
    )
  })

  describe("The addresses that chat programs try", () => {
    it.effect("those of which there is nothing here are told so, and where to go", () =>
      Effect.gen(function* () {
        const story = yield* clerkHere
        for (const [method, path] of [
          ["GET", "/responses"],
          ["GET", "/responses/resp_1/input_items"],
          ["POST", "/responses/compact"],
          ["POST", "/conversations"],
          ["POST", "/completions"],
          ["POST", "/embeddings"],
          ["POST", "/audio/transcriptions"],
          ["POST", "/images/generations"],
          ["GET", "/files"],
          ["GET", "/"],
          ["GET", ""]
        ] as const) {
          const answer = yield* story.send(
            method,
            at(story, path),
            method === "POST" ? { model: "clerk" } : undefined
          )
          expect([path, answer.status, answer.body.error]).toEqual([
            path,
            404,
            { code: "unknown_url", message: expect.any(String), param: null, type: "invalid_request_error" }
          ])
          expect(answer.body.error.message).toContain("/v1/chat/completions")
        }
      })
    )

    it.effect("a HEAD of the models is answered as their GET, without a body", () =>
      Effect.gen(function* () {
        const story = yield* clerkHere
        const head = yield* story.send("HEAD", at(story, "/models"))
        expect([head.status, head.body]).toEqual([200, null])
        expect(
          (yield* story.send("HEAD", at(story, "/models"), undefined, { authorization: "" })).status
        ).toBe(401)
      })
    )

    it.effect("a page of this machine may ask from the browser, and one of elsewhere may not", () =>
      Effect.gen(function* () {
        const story = yield* clerkHere
        const asked = (origin: string, path = "/chat/completions") =>
          story.send("OPTIONS", at(story, path), undefined, {
            authorization: "",
            origin,
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,content-type,x-stainless-os"
          })
        const ours = "http://localhost:3000"
        for (const path of ["/chat/completions", "/responses/resp_1", "/models", "/models/clerk"]) {
          const { headers, status } = yield* asked(ours, path)
          expect([status, headers.get("access-control-allow-origin")]).toEqual([204, ours])
          expect(headers.get("access-control-allow-methods")).toBe("GET, POST, DELETE")
          expect(headers.get("access-control-allow-headers")).toContain("x-stainless-os")
        }
        const stranger = yield* asked("https://evil.example")
        expect([stranger.status, stranger.body.error.code]).toEqual([403, "origin_not_allowed"])
        expect(stranger.headers.get("access-control-allow-origin")).toBeNull()
        const answer = yield* sendCompletion(
          story,
          { model: "clerk", messages: [user("Hello")] },
          { origin: ours }
        )
        expect(answer.headers.get("access-control-allow-origin")).toBe(ours)
        expect(answer.headers.get("access-control-expose-headers")).toContain("x-tropism-conversation")
        const unknown = yield* story.send("GET", at(story, "/models"), undefined, {
          authorization: "",
          origin: ours
        })
        expect([unknown.status, unknown.headers.get("access-control-allow-origin")]).toEqual([401, ours])
        const others = yield* story.send("GET", at(story, "/models"), undefined, {
          origin: "https://evil.example"
        })
        expect(others.headers.get("access-control-allow-origin")).toBeNull()
      })
    )
  })

  describe("TodoAssistant", () => {
    it.effect("is a model of a project that was made before it existed, from the first request on", () =>
      Effect.gen(function* () {
        // As in a project from before there was one.
        const older = Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* ask(story.access, "update kb.projects set assistant_id = null where id = $1", [
            story.projectId
          ])
          yield* ask(story.access, "update kb.agents set name = 'other' where project_id = $1", [
            story.projectId
          ])
          return story
        })
        const idsOf = ({ body }: Json) => body.data.map(({ id }: Json) => id)
        const listing = yield* older
        expect(idsOf(yield* listing.send("GET", at(listing, "/models")))).toEqual(["TodoAssistant", "other"])
        const asking = yield* older
        const body = { model: "TodoAssistant", messages: [user("add milk")] }
        const both = yield* Effect.all([sendCompletion(asking, body), sendCompletion(asking, body)], {
          concurrency: 2
        })
        expect(both.map(({ status }) => status)).toEqual([200, 200])
        expect(wordsOf(both[0])).toContain("Milk")
        expect(idsOf(yield* asking.send("GET", at(asking, "/models")))).toEqual(["TodoAssistant", "other"])
        const one = yield* older
        const editor = yield* asUser(one, "editor", [one.projectId])
        expect((yield* editor.send("GET", "/v1/models/TodoAssistant")).body.id).toBe("TodoAssistant")
        // One that a person deleted is not made again.
        const [made] = (yield* one.get("/agents")).items.filter(({ name }: Json) => name === "TodoAssistant")
        yield* one.delete(`/agents/${made.id}`)
        const gone = yield* sendCompletion(one, body)
        expect([gone.status, gone.body.error.code]).toEqual([404, "model_not_found"])
        expect(idsOf(yield* one.send("GET", at(one, "/models")))).toEqual(["other"])
      })
    )
  })
})
