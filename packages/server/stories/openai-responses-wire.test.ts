/**
 * The Responses API as it goes over the wire: the events of a stream, places in conversations, and what is refused.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect } from "effect"
import { chatChunk, chatEnd, events } from "../testing/fake-model-server.ts"
import { contentsOf, countOf, echo, logOf } from "../testing/context-words.ts"
import { calls, says, wiredStory, wireModel } from "../testing/model-words.ts"
import {
  atResponse,
  newModel,
  outputText,
  responseEvents,
  sendCompletion,
  sendResponse
} from "../testing/openai-words.ts"
import { type Answer, type Json, scripted } from "../testing/platform.ts"
import { asking } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { runsOf } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const hello = { model: "clerk", input: "Hello" }
const nextChatMemory =
  "Summarize the discussion briefly in 200 words or less to use as a prompt for future context."
const nobody = `resp_${"0".repeat(32)}`

/** Says something, finds nothing, and says so. */
const finder = scripted([
  { when: "step == 0", say: "I look.", calls: [{ tool: "search_objects", arguments: { query: "x" } }] },
  { say: "Nothing." }
])

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
  expect(answer.body.error.message).not.toMatch(/\n\s+at /)
}

const unsupported = "unsupported_parameter"
const message = (role: string, content: Json) => ({ type: "message", role, content })
const tool = { type: "function", name: "f", parameters: {}, strict: true }

/** A request that cannot be kept to, the field that is to blame, and the code. */
const unkept: ReadonlyArray<readonly [Json, string, (string | null)?]> = [
  [{ tools: [tool] }, "tools", unsupported],
  [{ tools: [{ type: "web_search" }] }, "tools", unsupported],
  [{ tool_choice: "required" }, "tool_choice", unsupported],
  [{ tool_choice: { type: "function", name: "f" } }, "tool_choice", unsupported],
  [{ text: { format: { type: "json_schema", name: "a", schema: {} } } }, "text.format", unsupported],
  [{ top_logprobs: 3 }, "top_logprobs", unsupported],
  [{ max_tool_calls: 1 }, "max_tool_calls", unsupported],
  [{ prompt: { id: "pmpt_1" } }, "prompt", unsupported],
  [{ background: true, store: false }, "background", unsupported],
  [{ model: undefined }, "model"],
  [{ model: 7 }, "model"],
  [{ input: undefined }, "input"],
  [{ input: [] }, "input"],
  [{ input: " " }, "input"],
  [{ input: 7 }, "input"],
  [{ input: [message("user", " ")] }, "input[0].content"],
  [{ input: [message("nobody", "x")] }, "input[0].role"],
  [{ input: [message("system", "Be.")] }, "input"],
  [
    { input: [{ type: "function_call_output", call_id: "c", output: "x" }] },
    "input[0].type",
    "unsupported_value"
  ],
  [
    { input: [{ type: "function_call", call_id: "c", name: "f", arguments: "{}" }, message("user", "x")] },
    "input[0].type",
    "unsupported_value"
  ],
  [{ input: [{ type: "a_type_of_next_year" }] }, "input[0].type", "unsupported_value"],
  [
    { input: [message("user", [{ type: "input_audio", input_audio: {} }])] },
    "input[0].content[0]",
    "unsupported_value"
  ],
  [
    { input: [message("user", [{ type: "input_image", image_url: "http://127.0.0.1/x.png" }])] },
    "input[0].content[0].image_url"
  ],
  [
    { input: [message("user", [{ type: "input_image", image_url: { url: "http://127.0.0.1/x.png" } }])] },
    "input[0].content[0].image_url.url"
  ],
  [
    { input: [message("user", [{ type: "input_image", image_url: { href: "x" } }])] },
    "input[0].content[0].image_url.url"
  ],
  [{ input: [message("user", [{ type: "input_image", image_url: 7 }])] }, "input[0].content[0].image_url"],
  [
    { input: [message("user", [{ type: "input_file", file_id: "file-123" }])] },
    "input[0].content[0].file_id"
  ],
  [{ input: [message("user", [{ type: "input_file" }])] }, "input[0].content[0]"],
  [{ temperature: 3 }, "temperature"],
  [{ max_output_tokens: 0 }, "max_output_tokens"],
  [{ metadata: { a: 1 } }, "metadata.a"],
  [{ instructions: "a\u0000b" }, "instructions"],
  [{ input: "a\ud800b" }, "input"],
  [{ previous_response_id: nobody }, "previous_response_id", "previous_response_not_found"],
  [{ previous_response_id: "nonsense" }, "previous_response_id", "previous_response_not_found"],
  [{ previous_response_id: nobody, conversation: "x" }, "conversation"]
]

layer(SharedServer.layer, { excludeTestServices: true })((here) => {
  describe("A streamed response", () => {
    here.effect("has OpenAI's events in OpenAI's order, each with its number", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", finder)
        const answer = yield* sendResponse(story, { ...hello, stream: true })
        expect(answer.headers.get("content-type")).toMatch(/^text\/event-stream/)
        const events = responseEvents(answer)
        expect(events.map(({ sequence_number: number }) => number)).toEqual(events.map((_, index) => index))
        const types = events.map(({ type }) => type.replace(/^response\./, ""))
        expect(types.filter((type, index) => type !== types[index - 1])).toEqual([
          "created",
          "in_progress",
          "output_item.added",
          "content_part.added",
          "output_text.delta",
          "output_text.done",
          "content_part.done",
          "output_item.done",
          "output_item.added",
          "mcp_call.in_progress",
          "mcp_call_arguments.delta",
          "mcp_call_arguments.done",
          "mcp_call.completed",
          "output_item.done",
          "output_item.added",
          "content_part.added",
          "output_text.delta",
          "output_text.done",
          "content_part.done",
          "output_item.done",
          "completed"
        ])
        const of = (type: string) => events.filter((event) => event.type === `response.${type}`)
        expect(of("created")[0].response).toMatchObject({ status: "in_progress", output: [] })
        const [said, called] = of("output_item.added").map(({ item }) => item)
        expect(said).toEqual({
          type: "message",
          id: said.id,
          role: "assistant",
          status: "in_progress",
          content: []
        })
        expect(called).toMatchObject({ type: "mcp_call", name: "search_objects", status: "in_progress" })
        expect(of("content_part.added")[0]).toEqual({
          type: "response.content_part.added",
          item_id: said.id,
          output_index: 0,
          content_index: 0,
          part: { type: "output_text", text: "", annotations: [], logprobs: [] },
          sequence_number: 3
        })
        expect(of("output_text.delta")[0]).toMatchObject({ item_id: said.id, output_index: 0, logprobs: [] })
        expect(of("output_text.done").map(({ text }) => text)).toEqual(["I look.\n\n", "Nothing."])
        const final = of("completed")[0].response
        expect(of("output_item.done").map(({ item }) => item)).toEqual(final.output)
        expect(final).toMatchObject({ status: "completed", usage: { input_tokens: expect.any(Number) } })
        const read = yield* atResponse(story, "GET", final.id)
        expect(read.body).toEqual(final)
      })
    )

    here.effect("of which a limit comes first is incomplete", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const walker = scripted([
          { when: "tools.size == 0", say: "So far." },
          { say: "On.", calls: [{ tool: "search_objects", arguments: { query: "{{ step }}" } }] }
        ])
        yield* newModel(story, "clerk", walker, { maxSteps: 1 })
        const incomplete = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } }
        const streamed = responseEvents(yield* sendResponse(story, { ...hello, stream: true })).at(-1)
        expect(streamed).toMatchObject({ type: "response.incomplete", response: incomplete })
        const whole = yield* sendResponse(story, hello)
        expect(whole.body).toMatchObject(incomplete)
      })
    )

    here.effect("of an agent that asks ends with the question, and the next input answers it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([
          { when: "step == 0", calls: [asking("Which colour?", ["red", "blue"]), asking("How much?")] },
          { say: "So {% for each in results %}{{ each.result.answer }}{% endfor %}." }
        ])
        const agent = yield* newModel(story, "clerk", model, { tools: ["run.ask_user"] })
        const first = yield* sendResponse(story, hello)
        expect([first.body.status, outputText(first.body), first.body.x_tropism.status]).toEqual([
          "completed",
          "Which colour?\n- red\n- blue\n\nHow much?",
          "waiting"
        ])
        const goOn = (input: string, to: Answer) =>
          sendResponse(story, { model: "clerk", input, previous_response_id: to.body.id })
        expectRefusal(yield* goOn("green", first), 400, { code: "answer_refused", param: "input" })
        const second = yield* goOn("blue", first)
        expect(outputText(second.body)).toBe("How much?")
        const third = yield* goOn("2 l", second)
        expect(outputText(third.body)).toBe("So blue2 l.")
        expect(yield* runsOf(story, agent)).toHaveLength(1)
        // Each is read as it was answered, although the turn has gone on.
        for (const { body } of [first, second, third])
          expect((yield* atResponse(story, "GET", body.id)).body).toEqual({
            ...body,
            usage: expect.anything()
          })
      })
    )
  })

  describe("A place in a conversation", () => {
    here.effect("from which two requests go on is two conversations from there", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const say = (input: string, previous?: Answer, more: Json = {}) =>
          sendResponse(story, {
            model: "clerk",
            input,
            ...(previous ? { previous_response_id: previous.body.id } : {}),
            ...more
          })
        const first = yield* say("One")
        const second = yield* say("Two", first)
        const other = yield* say("Another two", first)
        expect([outputText(second.body), outputText(other.body)]).toEqual([
          "Answer 2: Two",
          "Answer 2: Another two"
        ])
        const third = yield* say("Three", other)
        expect(outputText(third.body)).toBe("Answer 3: Three")
        const conversations = [first, second, other, third].map(({ body }) => body.x_tropism.conversation)
        expect(conversations[1]).toBe(conversations[0])
        expect(conversations[2]).not.toBe(conversations[0])
        expect(conversations[3]).toBe(conversations[2])
        expect(contentsOf(yield* logOf(story, conversations[0]), "UserMessageEvent")).toEqual(["One", "Two"])
        // Another agent goes on in a conversation of its own.
        yield* newModel(story, "scribe", echo)
        const elsewhere = yield* say("Four", third, { model: "scribe" })
        expect([outputText(elsewhere.body), elsewhere.body.model]).toEqual(["Answer 4: Four", "scribe"])
        // At once, too, each goes on by itself.
        const both = yield* Effect.forEach(["A", "B"], (input) => say(input, third), { concurrency: 2 })
        expect(both.map(({ body }) => outputText(body))).toEqual(["Answer 4: A", "Answer 4: B"])
      })
    )

    here.effect("is nobody else's, and is gone when it is deleted", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const editor = yield* asUser(story, "editor", [story.projectId])
        const { body: mine } = yield* sendResponse(story, hello)
        const missing = (who: typeof story, id: string) =>
          Effect.gen(function* () {
            const found = [
              yield* atResponse(who, "GET", id),
              yield* atResponse(who, "POST", `${id}/cancel`),
              yield* atResponse(who, "DELETE", id)
            ]
            for (const answer of found) expectRefusal(answer, 404, { type: "invalid_request_error" })
            expectRefusal(yield* sendResponse(who, { ...hello, previous_response_id: id }), 400, {
              param: "previous_response_id",
              code: "previous_response_not_found"
            })
            const reference = { type: "item_reference", id: mine.output[0].id }
            if (id === mine.id)
              expectRefusal(
                yield* sendResponse(who, { model: "clerk", input: [reference, message("user", "x")] }),
                404,
                {
                  param: "input[0].id"
                }
              )
            return found.map(({ body }) => body.error.message.replaceAll(id, ""))
          })
        const foreign = yield* missing(editor, mine.id)
        expect(foreign).toEqual(yield* missing(editor, nobody))
        for (const id of ["x", "resp_", `resp_${"z".repeat(32)}`, "x".repeat(3_000)])
          yield* missing(story, id)
        const deleted = yield* atResponse(story, "DELETE", mine.id)
        expect([deleted.status, deleted.body]).toEqual([
          200,
          { id: mine.id, object: "response", deleted: true }
        ])
        yield* missing(story, mine.id)
      })
    )

    here.effect("is none where nothing is stored: the history comes in the input", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const { body: first } = yield* sendResponse(story, { ...hello, store: false })
        expect([outputText(first), first.store]).toEqual(["Answer 1: Hello", false])
        expectRefusal(yield* atResponse(story, "GET", first.id), 404)
        expectRefusal(yield* sendResponse(story, { ...hello, previous_response_id: first.id }), 400, {
          code: "previous_response_not_found"
        })
        const { body: second } = yield* sendResponse(story, {
          model: "clerk",
          store: false,
          input: [message("user", "Hello"), ...first.output, { role: "user", content: "And now?" }]
        })
        expect(outputText(second)).toBe("Answer 2: And now?")
      })
    )

    here.effect("is one of chat completions, too", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const { body: first } = yield* sendResponse(story, hello)
        const { conversation } = first.x_tropism
        const chat = yield* story.send(
          "POST",
          `/api/projects/${story.projectId}/v1/chat/completions`,
          { model: "clerk", messages: [{ role: "user", content: "Two" }] },
          { "x-tropism-conversation": conversation }
        )
        expect(chat.body.choices[0].message.content).toBe("Answer 2: Two")
        const { body: third } = yield* sendResponse(story, { ...hello, conversation })
        expect([outputText(third), third.conversation]).toEqual(["Answer 3: Hello", { id: conversation }])
        expectRefusal(yield* sendResponse(story, { ...hello, conversation: "x" }), 404, {
          param: "conversation",
          code: "conversation_not_found"
        })
      })
    )

    here.effect("under an Idempotency-Key is said once, and every repeat is the same response", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newModel(story, "clerk", echo)
        const key = { "idempotency-key": "a-key" }
        const answers = yield* Effect.forEach(
          Array.from({ length: 6 }),
          () => sendResponse(story, hello, key),
          { concurrency: 6 }
        )
        for (const { body, status } of answers) expect([status, body]).toEqual([200, answers[0]?.body])
        const streamed = responseEvents(yield* sendResponse(story, { ...hello, stream: true }, key))
        expect(streamed.at(-1)?.response).toEqual(answers[0]?.body)
        expect(yield* runsOf(story, agent)).toHaveLength(1)
        expectRefusal(yield* sendResponse(story, { ...hello, input: "Another" }, key), 400, {
          code: "idempotency_key_reused"
        })
        yield* story.delete(`/agents/${agent.id}`)
        expect((yield* sendResponse(story, hello, key)).body.id).toBe(answers[0]?.body.id)
      })
    )
  })

  describe("A request for a response that cannot be kept to", () => {
    here.effect("is told the field and the reason, and nothing of it is kept", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const clerk = yield* newModel(story, "clerk", echo)
        for (const [overrides, param, code = null] of unkept) {
          const answer = yield* sendResponse(story, { ...hello, ...overrides })
          expect([overrides, answer.body]).toEqual([
            overrides,
            { error: expect.objectContaining({ param, code }) }
          ])
          expectRefusal(answer, 400, { type: "invalid_request_error" })
        }
        for (const body of ["", "{", "[]", "null", '"x"'])
          expectRefusal(yield* sendResponse(story, body, { "content-type": "application/json" }), 400)
        expectRefusal(yield* sendResponse(story, { ...hello, input: "x".repeat(1_000_001) }), 400, {
          param: "input",
          code: "string_above_max_length"
        })
        expectRefusal(yield* sendResponse(story, { ...hello, input: "x".repeat(16_777_217) }), 413)
        expectRefusal(yield* sendResponse(story, { ...hello, model: "gpt-5" }), 404, {
          code: "model_not_found",
          param: "model"
        })
        const viewer = yield* asUser(story, "viewer", [story.projectId])
        expectRefusal(yield* sendResponse(viewer, hello), 403)
        expectRefusal(yield* sendResponse(story, hello, { authorization: "Bearer wrong" }), 401)
        expect(yield* runsOf(story, clerk)).toEqual([])
        expectRefusal(yield* atResponse(story, "GET", `${nobody}/input_items`), 404, { code: "unknown_url" })
      })
    )

    here.effect("what only colours a response, and what nobody knows, is passed over", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const answer = yield* sendResponse(story, {
          ...hello,
          input: [{ role: "user", content: [{ type: "input_text", text: "Hello" }] }],
          include: ["reasoning.encrypted_content"],
          parallel_tool_calls: true,
          prompt_cache_key: "k",
          reasoning: { effort: "high", summary: "auto" },
          safety_identifier: "s",
          service_tier: "auto",
          store: true,
          stream: false,
          stream_options: { include_obfuscation: false },
          text: { format: { type: "text" }, verbosity: "low" },
          tools: [],
          tool_choice: "auto",
          top_logprobs: 0,
          top_p: 0.5,
          truncation: "auto",
          user: "ada",
          max_output_tokens: null,
          conversation: null,
          a_field_of_next_year: { x: 1 }
        })
        expect([answer.status, outputText(answer.body)]).toEqual([200, "Answer 1: Hello"])
      })
    )
  })
})

describe("What the model is asked", () => {
  const pngs = [1, 2, 3].map((last) =>
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, last]).toString("base64")
  )

  it.live("has the input's items, and the instructions of this response alone", () =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredStory([says("One."), says("Two."), says("Three."), says("Four.")])
      yield* newModel(story, "clerk", wireModel, { tools: [], systemPrompt: "You are a clerk." })
      const say = (body: Json) => sendResponse(story, { model: "clerk", ...body })
      const picture = { type: "input_image", image_url: `data:image/png;base64,${pngs[0]}`, detail: "auto" }
      const asInChat = { type: "image_url", image_url: { url: `data:image/png;base64,${pngs[1]}` } }
      const asObject = { type: "input_image", image_url: { url: `data:image/png;base64,${pngs[2]}` } }
      const first = yield* say({
        instructions: "Speak French.",
        max_output_tokens: 77,
        temperature: 0.5,
        input: [
          message("developer", "Be brief."),
          message("user", [{ type: "input_text", text: "Before?" }]),
          message("assistant", [{ type: "output_text", text: "Yes.", annotations: [] }]),
          message("user", [{ type: "input_text", text: "What is it?" }, picture, asInChat, asObject])
        ]
      })
      expect(outputText(first.body)).toBe("One.")
      const second = yield* say({
        input: "And now?",
        previous_response_id: first.body.id,
        instructions: "Speak German."
      })
      const third = yield* say({
        input: "Now?",
        previous_response_id: second.body.id,
        instructions: "Speak German."
      })
      yield* say({ input: "Last?", previous_response_id: third.body.id })
      const bodies: ReadonlyArray<Json> = models.requests.map(({ body }) => body)
      const system = bodies.map(({ messages }) => messages[0].content)
      expect(system[0]).toMatch(/^You are a clerk\.\s+Be brief\.\s+Speak French\.$/)
      expect(system[1]).toMatch(/^You are a clerk\.\s+Be brief\.\s+Speak German\.$/)
      expect(system[2]).toBe(system[1])
      expect(system[3]).toMatch(/^You are a clerk\.\s+Be brief\.$/)
      expect(bodies[0].max_tokens ?? bodies[0].max_completion_tokens).toBe(77)
      for (const png of pngs) expect(JSON.stringify(bodies[0].messages)).toContain(png)
      expect(JSON.stringify(bodies[1].messages)).toContain("Before?")
      const log = yield* logOf(story, first.body.x_tropism.conversation)
      // The same instructions again are no event.
      expect(countOf(log, "HistoryGivenEvent")).toBe(3)
    }).pipe(Effect.scoped)
  )

  it.live("has no tool with tool_choice none", () =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredStory([says("Words.")])
      yield* newModel(story, "clerk", wireModel, { tools: ["graph.*"] })
      const answer = yield* sendResponse(story, { ...hello, tool_choice: "none" })
      expect([outputText(answer.body), answer.body.tool_choice]).toEqual(["Words.", "none"])
      expect(models.requests.map(({ body }) => (body as Json).tools)).toEqual([undefined])
    }).pipe(Effect.scoped)
  )

  it.live("has no tool and no conversation where a chat client asks for a title", () =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredStory([says("One."), says("A title"), says("Another")])
      yield* newModel(story, "clerk", wireModel, { tools: ["graph.*"] })
      const { body: first } = yield* sendResponse(story, hello)
      const title = {
        instructions:
          "you will generate a short title based on the first message a user begins a conversation with\n- do not use quotes or colons",
        input: "Hello"
      }
      const named = yield* sendResponse(story, { ...hello, ...title, previous_response_id: first.id })
      expect(outputText(named.body)).toBe("A title")
      expect(named.body.x_tropism.conversation).not.toBe(first.x_tropism.conversation)
      yield* sendResponse(story, {
        ...hello,
        input: [message("user", "Hello"), message("assistant", "Hi."), message("system", nextChatMemory)]
      })
      const asked: ReadonlyArray<Json> = models.requests.map(({ body }) => body)
      expect(asked.map(({ tools }) => tools !== undefined)).toEqual([true, false, false])
      expect(asked[2].messages.at(-1)).toMatchObject({ role: "user", content: nextChatMemory })
    }).pipe(Effect.scoped)
  )

  it.live("has the question before another answer to it, and the fork of a question goes on with that", () =>
    Effect.gen(function* () {
      const question = { question: "Which colour?", options: ["red", "blue"] }
      const ask = calls({ id: "c1", tool: "ask_user", arguments: question })
      const { models, story } = yield* wiredStory([ask, says("So blue."), says("So red.")])
      yield* newModel(story, "clerk", wireModel, { tools: ["run.ask_user"] })
      const { body: first } = yield* sendResponse(story, hello)
      const answer = (input: string) =>
        sendResponse(story, { model: "clerk", input, previous_response_id: first.id })
      expect(outputText((yield* answer("blue")).body)).toBe("So blue.")
      const { body: again } = yield* answer("red")
      expect([again.status, outputText(again)]).toEqual(["completed", "So red."])
      const asked: Json = models.requests.at(-1)?.body
      expect(asked.messages.slice(-2)).toMatchObject([
        { role: "assistant", content: "Which colour?\n- red\n- blue" },
        { role: "user", content: "red" }
      ])
      expect((yield* atResponse(story, "GET", again.id)).body.output).toEqual(again.output)
    }).pipe(Effect.scoped)
  )

  it.live("an answer that is cut and goes on is one message, as in a chat completion", () =>
    Effect.gen(function* () {
      const cut = (text: string) => events(chatChunk({ content: text }), ...chatEnd("length"))
      const pieces = [cut("piece0 "), cut("piece1 "), says("end.")] as const
      const { story } = yield* wiredStory([...pieces, ...pieces, ...pieces])
      const { maxOutputTokens: _limit, ...unlimited } = wireModel
      yield* newModel(story, "clerk", unlimited, { tools: [] })
      const whole = yield* sendResponse(story, hello)
      const content = [{ type: "output_text", text: "piece0 piece1 end.", annotations: [], logprobs: [] }]
      expect(whole.body).toMatchObject({
        status: "completed",
        output: [{ type: "message", status: "completed", content }]
      })
      expect((yield* atResponse(story, "GET", whole.body.id)).body.output).toEqual(whole.body.output)
      const streamed = responseEvents(yield* sendResponse(story, { ...hello, stream: true }))
      const of = (type: string) => streamed.filter((event) => event.type === `response.${type}`)
      expect(of("output_text.delta").map(({ delta }) => delta)).toEqual(["piece0 ", "piece1 ", "end."])
      expect(of("output_item.added")).toHaveLength(1)
      expect(of("content_part.added")).toHaveLength(1)
      expect(of("output_text.done")).toMatchObject([{ text: "piece0 piece1 end." }])
      expect(of("completed")[0].response.output).toMatchObject([{ type: "message", content }])
      const messages = [{ role: "user", content: "Hello" }]
      const completion = yield* sendCompletion(story, { model: "clerk", messages })
      expect(completion.body.choices[0].message.content).toBe("piece0 piece1 end.")
    }).pipe(Effect.scoped)
  )
})
