/**
 * What an agent knows of a conversation that a client brings, and how one goes on here.
 *
 * The model server is a real one on a socket, so what a story says of a prompt is
 * what went over the wire.
 */
import { createHash } from "node:crypto"
import { describe, expect, it, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { contentsOf, countOf, echo, logOf, typesOf } from "../testing/context-words.ts"
import { calls, says, wiredStory, wireModel } from "../testing/model-words.ts"
import { newModel, sendCompletion } from "../testing/openai-words.ts"
import { holding } from "../testing/owner-rows.ts"
import { type Json, scripted } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { runsOf } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3]).toString("base64")
const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } } as const

const user = (content: Json) => ({ role: "user", content }) as const
const assistant = (content: string) => ({ role: "assistant", content }) as const

const contextOf = (answer: Json): string => answer.headers.get("x-tropism-conversation")

describe("What a client brings", () => {
  it.live(
    "is shown to the model in order: the agent's own words first, what is asked now last, and once",
    () =>
      Effect.gen(function* () {
        const { models, story } = yield* wiredStory([says("Ada.")])
        yield* newModel(story, "clerk", wireModel, { systemPrompt: "You are a clerk." })
        const answer = yield* sendCompletion(story, {
          model: "clerk",
          temperature: 0.75,
          max_tokens: 50,
          messages: [
            { role: "system", content: "Be brief." },
            user([{ type: "text", text: "Who is this?" }, picture]),
            assistant("I do not know: who are you?"),
            user("I am Ada, “Ada” in ∑."),
            assistant("Hello, Ada."),
            user([{ type: "text", text: "What is my name?" }, picture])
          ]
        })
        expect([answer.status, answer.body.choices[0].message.content]).toEqual([200, "Ada."])
        const body: Json = models.requests[0]?.body
        const shown = { type: "image_url", image_url: { url: picture.image_url.url } }
        expect(body.messages).toEqual([
          { role: "system", content: "You are a clerk.\n\nBe brief." },
          { role: "user", content: [shown, { type: "text", text: "Who is this?" }] },
          assistant("I do not know: who are you?"),
          user("I am Ada, “Ada” in ∑."),
          assistant("Hello, Ada."),
          { role: "user", content: [shown, { type: "text", text: "What is my name?" }] }
        ])
        expect([body.temperature, body.max_tokens]).toEqual([0.75, 50])
        // The log has it once, as it was brought, and the picture by its digest.
        const log = yield* logOf(story, contextOf(answer))
        expect(typesOf(log).slice(0, 6)).toEqual([
          "SessionStartedEvent",
          "SystemPromptEvent",
          "SetLlmConfigEvent",
          "HistoryGivenEvent",
          "FileAttachmentEvent",
          "UserMessageEvent"
        ])
        expect(JSON.stringify(log)).not.toContain(png)
        const replay = yield* story.get(`/contexts/${contextOf(answer)}/replay`)
        expect(replay.isEqual).toBe(true)
      }).pipe(Effect.scoped)
  )

  it.live("goes on here with only what is new, and the agent knows the rest", () =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredStory([
        calls({ id: "c1", tool: "search_objects", arguments: { query: "Ada" } }),
        says("One."),
        says("Two.")
      ])
      yield* newModel(story, "clerk", wireModel)
      const first = yield* sendCompletion(story, { model: "clerk", messages: [user("First?")] })
      const conversation = contextOf(first)
      expect(first.body.choices[0].message.content).toBe("One.")
      const second = yield* sendCompletion(
        story,
        { model: "clerk", messages: [user("This is not said."), assistant("Nor this."), user("Second?")] },
        { "x-tropism-conversation": conversation }
      )
      expect(second.body.choices[0].message.content).toBe("Two.")
      expect(contextOf(second)).toBe(conversation)
      expect(second.body.id).not.toBe(first.body.id)
      const body: Json = models.requests[2]?.body
      expect(
        body.messages.map(({ content, role }: Json) => [role, role === "tool" ? "…" : (content ?? "")])
      ).toEqual([
        ["user", "First?"],
        ["assistant", ""],
        ["tool", "…"],
        ["assistant", "One."],
        ["user", "Second?"]
      ])
      // What the second answer cost is its own.
      expect(second.body.usage.total_tokens).toBeLessThan(first.body.usage.total_tokens + 100)
      expect(second.body.x_tropism.tool_calls).toEqual([])
    }).pipe(Effect.scoped)
  )
})

layer(SharedServer.layer, { excludeTestServices: true })((here) => {
  describe("A conversation", () => {
    here.effect("of 200 messages is understood in one request, and is one event", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const history = Array.from({ length: 200 }, (_, index) =>
          index % 2 === 0 ? user(`Question ${index} 🙂`) : assistant(`Answer ${index}`)
        )
        const answer = yield* sendCompletion(story, {
          model: "clerk",
          messages: [...history, user("And now?")]
        })
        expect(answer.body.choices[0].message.content).toBe("Answer 101: And now?")
        const log = yield* logOf(story, contextOf(answer))
        expect(countOf(log, "HistoryGivenEvent")).toBe(1)
        expect(contentsOf(log, "UserMessageEvent")).toEqual(["And now?"])
        const state = yield* story.get(`/contexts/${contextOf(answer)}/state`)
        expect(state.messages.slice(0, 200).map(({ role }: Json) => role)).toEqual(
          history.map(({ role }) => role)
        )
      })
    )

    here.effect("belongs to whoever began it: to others it is one that is not there", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        yield* newModel(story, "other", echo)
        const editor = yield* asUser(story, "editor", [story.projectId])
        const messages = [user("Hello")]
        const mine = contextOf(yield* sendCompletion(story, { model: "clerk", messages }))
        const goOn = (who: typeof story, conversation: string, model = "clerk") =>
          sendCompletion(who, { model, messages }, { "x-tropism-conversation": conversation })
        const missing = yield* goOn(editor, `completion-${crypto.randomUUID()}`)
        expect([missing.status, missing.body.error.code]).toEqual([404, "conversation_not_found"])
        const before = yield* logOf(story, mine)
        for (const name of [mine, crypto.randomUUID(), "clerk", "a b", "x".repeat(5_000)])
          expect((yield* goOn(editor, name)).body).toEqual(missing.body)
        expect(yield* logOf(story, mine)).toEqual(before)
        // It is with one agent; and it is no conversation that a chat lists.
        expect((yield* goOn(story, mine, "other")).body.error).toMatchObject({ param: "model" })
        expect((yield* story.get("/conversations")).items).toEqual([])
        const byMetadata = yield* sendCompletion(story, {
          model: "clerk",
          messages,
          metadata: { conversation_id: mine }
        })
        expect(byMetadata.body.choices[0].message.content).toBe("Answer 2: Hello")
      })
    )

    here.effect("what is sent again under its Idempotency-Key is said once, and answered again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newModel(story, "clerk", echo)
        const body = { model: "clerk", messages: [user("Before."), assistant("Yes."), user("Hello")] }
        const send = (more: Json = {}, key = "a-key") =>
          sendCompletion(story, { ...body, ...more }, { "idempotency-key": key })
        const answers = yield* Effect.forEach(Array.from({ length: 8 }), () => send(), { concurrency: 8 })
        const [first] = answers
        for (const { body: each, status } of answers)
          expect([status, each.id, each.choices, each.usage]).toEqual([
            200,
            first?.body.id,
            first?.body.choices,
            first?.body.usage
          ])
        expect(first?.body.choices[0].message.content).toBe("Answer 2: Hello")
        const streamed = yield* send({ stream: true })
        expect(streamed.body).toContain("Answer 2: Hello")
        expect(yield* runsOf(story, agent)).toHaveLength(1)
        const other = yield* send({ messages: [user("Another")] })
        expect([other.status, other.body.error]).toMatchObject([400, { code: "idempotency_key_reused" }])
        expect((yield* send({}, "k".repeat(256))).body.error).toMatchObject({ param: "idempotency-key" })
        // A key is its sender's own.
        const editor = yield* asUser(story, "editor", [story.projectId])
        expect((yield* sendCompletion(editor, body, { "idempotency-key": "a-key" })).body.id).not.toBe(
          first?.body.id
        )
      })
    )

    here.effect(
      "what was said under a key is answered again when its agent has another name, and is gone",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newModel(story, "clerk", echo)
          const body = { model: "clerk", temperature: 0.5, messages: [user("Hello")] }
          const send = (more: Json = {}) =>
            sendCompletion(story, { ...body, ...more }, { "idempotency-key": "a-key" })
          const first = yield* send()
          expect(first.body.choices[0].message.content).toBe("Answer 1: Hello")
          const shown = ({ body: told, headers, status }: Json) => [
            status,
            headers.get("idempotency-replayed"),
            told.id,
            told.choices
          ]
          const again = Effect.map(send(), shown)
          const kept = [200, "true", first.body.id, first.body.choices]
          yield* story.patch(`/agents/${agent.id}`, { name: "scribe" })
          expect(yield* again).toEqual(kept)
          // Another one that has the name now was not spoken to.
          const other = yield* newModel(story, "clerk", echo)
          expect(yield* again).toEqual(kept)
          expect(yield* runsOf(story, other)).toEqual([])
          for (const { id } of [agent, other]) yield* story.delete(`/agents/${id}`)
          expect(yield* again).toEqual(kept)
          expect((yield* send({ messages: [user("Another")] })).body.error.code).toBe(
            "idempotency_key_reused"
          )
          expect((yield* sendCompletion(story, body)).body.error.code).toBe("model_not_found")
        })
    )

    here.effect("a picture for which nobody vouches taints the conversation that shows it again", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newModel(story, "clerk", echo)
        const bytes = new Uint8Array(Buffer.from(png, "base64"))
        const sent = yield* story.send(
          "POST",
          `/api/projects/${story.projectId}/attachments?type=image/png&untrusted=true`,
          bytes,
          { "content-type": "application/octet-stream" }
        )
        const named = { type: "file", file: { file_id: sent.body.digest } }
        for (const shown of [picture, named])
          for (const messages of [[user([shown])], [user([shown]), assistant("I see."), user("And now?")]]) {
            const answer = yield* sendCompletion(story, { model: "clerk", messages })
            const context = yield* story.get(`/contexts/${contextOf(answer)}`)
            expect(context.taintedBy).toMatchObject([{ kind: "attachment", id: sent.body.digest }])
          }
        // Nobody names a file that somebody else sent.
        const editor = yield* asUser(story, "editor", [story.projectId])
        const refused = yield* sendCompletion(editor, { model: "clerk", messages: [user([named])] })
        expect([refused.status, refused.body.error]).toMatchObject([
          400,
          {
            param: "messages[0].content[0].file.file_id",
            message: expect.stringContaining(sent.body.digest)
          }
        ])
      })
    )

    here.effect(
      "a picture that somebody doubts while it is shown taints all the same, and stays doubted",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newModel(story, "clerk", echo)
          const bytes = Buffer.from(png, "base64")
          const digest = createHash("sha256").update(bytes).digest("hex")
          const send = sendCompletion(story, { model: "clerk", messages: [user([picture])] })
          // Somebody's upload of the same bytes, which is committed when the completion has looked for them.
          const uploading = yield* holding(
            story.access,
            `insert into kb.attachments (project_id, digest, mime_type, size_bytes, untrusted, bytes)
             values ('${story.projectId}', '${digest}', 'image/png', ${bytes.length}, true, decode('${bytes.toString("hex")}', 'hex'))`
          )
          const sending = yield* Effect.forkScoped(send)
          yield* whenWaiting(story.access, 1)
          yield* uploading.query("commit")
          for (const answer of [yield* Fiber.join(sending), yield* send])
            expect((yield* story.get(`/contexts/${contextOf(answer)}`)).taintedBy).toMatchObject([
              { kind: "attachment", id: digest }
            ])
        })
    )

    here.effect("an answer that a limit cuts short says so", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const walker = scripted([
          { when: "tools.size == 0", say: "So far." },
          { say: "On.", calls: [{ tool: "search_objects", arguments: { query: "{{ step }}" } }] }
        ])
        yield* newModel(story, "walker", walker, { maxSteps: 1 })
        const answer = yield* sendCompletion(story, { model: "walker", messages: [user("Go.")] })
        expect(answer.body.choices[0]).toMatchObject({ finish_reason: "length" })
        expect(answer.body.x_tropism.status).toBe("interrupted")
      })
    )
  })
})

describe("A request for words only", () => {
  const writing = calls({ id: "c1", tool: "create_object", arguments: { type: "Note", properties: {} } })
  const title = `### Task:\nGenerate a concise title.\n<chat_history>\nUSER: Hello\n</chat_history>`

  it.live.each<readonly [string, Json]>([
    ["tool_choice none", { tool_choice: "none", messages: [user("Hello")] }],
    ["function_call none", { function_call: "none", messages: [user("Hello")] }],
    ["Open WebUI's title", { messages: [user(title)] }],
    ["Open WebUI's task", { messages: [user("Hello")], metadata: { task: "tags_generation" } }],
    [
      "LobeChat's title",
      {
        messages: [
          {
            role: "system",
            content:
              "You are a professional conversation summarizer. Generate a concise title that captures the essence of the conversation.\n\nRules:\n- Output ONLY the title text"
          },
          user("user: Hello")
        ]
      }
    ],
    [
      "NextChat's memory",
      {
        messages: [
          user("Hello"),
          { role: "assistant", content: "Hi." },
          {
            role: "system",
            content:
              "Summarize the discussion briefly in 200 words or less to use as a prompt for future context."
          }
        ]
      }
    ],
    [
      "LibreChat's title",
      {
        messages: [
          user(
            "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title itself."
          )
        ]
      }
    ]
  ])("%s: the agent is offered no tool, and a model that calls one all the same writes nothing", ([, body]) =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredStory([writing, says("Words.")])
      yield* newModel(story, "clerk", wireModel, { tools: ["graph.*"], executionMode: "execute" })
      const answer = yield* sendCompletion(story, { model: "clerk", ...body })
      expect([answer.status, answer.body.choices[0].message.content]).toEqual([200, "Words."])
      const [first, second]: ReadonlyArray<Json> = models.requests.map(({ body: asked }) => asked)
      expect([first.tools, second.tools]).toEqual([undefined, undefined])
      expect((yield* story.get("/objects")).items).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live("in a conversation holds for one message, and a title leaves the conversation alone", () =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredStory([
        says("One."),
        says("Two."),
        says("A title"),
        says("Three.")
      ])
      yield* newModel(story, "clerk", wireModel, { tools: ["graph.*"] })
      const first = yield* sendCompletion(story, { model: "clerk", messages: [user("First?")] })
      const headers = { "x-tropism-conversation": contextOf(first) }
      const say = (content: string, more: Json = {}) =>
        sendCompletion(story, { model: "clerk", messages: [user(content)], ...more }, headers)
      expect(contextOf(yield* say("Second?", { tool_choice: "none" }))).toBe(contextOf(first))
      expect(contextOf(yield* say(title))).not.toBe(contextOf(first))
      yield* say("Third?")
      const offered = models.requests.map(({ body }) => (body as Json).tools !== undefined)
      expect(offered).toEqual([true, false, false, true])
      const log = yield* logOf(story, contextOf(first))
      expect(JSON.stringify(log)).not.toContain("A title")
    }).pipe(Effect.scoped)
  )
})
