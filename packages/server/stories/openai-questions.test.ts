/**
 * An agent that asks a client's user: its question ends the answer, and the next message is the user's answer.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { chunksOf, newModel, openAiClient, outcomeOf, sendCompletion } from "../testing/openai-words.ts"
import { type Json, scripted } from "../testing/platform.ts"
import { asking } from "../testing/question-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { runsOf } from "../testing/story-words.ts"
import { asUser } from "../testing/token-words.ts"

const user = (content: Json) => ({ role: "user", content }) as const

/** Asks which colour, once, and then repeats the answer. */
const asker = scripted([
  {
    when: "step == 0",
    say: "I need to know.",
    calls: [asking("Which colour?", ["red", "blue"])]
  },
  { say: "Then {% for each in results %}{{ each.result.answer }}{% endfor %}." }
])

const contextOf = (answer: Json): string => answer.headers.get("x-tropism-conversation")

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("A question of an agent", () => {
    it.effect("an agent that asks ends its answer with the question, and the next message answers it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newModel(story, "asker", asker, { tools: ["run.ask_user"] })
        const first = yield* sendCompletion(story, { model: "asker", messages: [user("Paint it.")] })
        expect(first.body.choices[0]).toMatchObject({
          finish_reason: "stop",
          message: { content: "I need to know.\n\nWhich colour?\n- red\n- blue" }
        })
        expect(first.body.x_tropism.status).toBe("waiting")
        const headers = { "x-tropism-conversation": contextOf(first) }
        const other = yield* sendCompletion(story, { model: "asker", messages: [user("green")] }, headers)
        expect([other.status, other.body.error.code]).toEqual([400, "answer_refused"])
        const file = { type: "file", file: { filename: "a.txt", file_data: "data:text/plain;base64,QQ==" } }
        const shown = [user([{ type: "text", text: "blue" }, file])]
        const withFile = yield* sendCompletion(story, { model: "asker", messages: shown }, headers)
        expect([withFile.status, withFile.body.error.code]).toEqual([400, "answer_refused"])
        const second = yield* sendCompletion(story, { model: "asker", messages: [user("blue")] }, headers)
        expect(second.body.choices[0].message.content).toBe("Then blue.")
        expect(yield* runsOf(story, agent)).toHaveLength(1)
        // Streamed, the question comes behind the words.
        const stream = yield* outcomeOf(() =>
          openAiClient(story).chat.completions.create({
            model: "asker",
            messages: [user("Paint it.")],
            stream: true
          })
        )
        expect((yield* chunksOf(stream)).words).toBe("I need to know.\n\nWhich colour?\n- red\n- blue")
      })
    )

    it.effect("a client that names no conversation answers by bringing the question back", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newModel(story, "asker", asker, { tools: ["run.ask_user"] })
        const ask = (...messages: ReadonlyArray<Json>) => sendCompletion(story, { model: "asker", messages })
        const first = yield* ask(user("Paint it."))
        const said = { role: "assistant", content: first.body.choices[0].message.content }
        // Of somebody else, or after other words, it is another conversation; somebody else's question is theirs alone to see.
        const other = yield* asUser(story, "editor", [story.projectId])
        const open = Effect.map(story.get("/tasks?type=question&status=pending"), ({ items }) => items.length)
        yield* sendCompletion(other, { model: "asker", messages: [user("Paint it."), said, user("blue")] })
        yield* ask(user("Paint that."), said, user("blue"))
        expect([yield* open, (yield* runsOf(story, agent)).length]).toEqual([2, 3])
        const second = yield* ask(
          { role: "system", content: "Be kind." },
          user("Paint it."),
          said,
          user("blue")
        )
        expect(second.body.choices[0].message.content).toBe("Then blue.")
        expect(contextOf(second)).toBe(contextOf(first))
        expect([yield* open, (yield* runsOf(story, agent)).length]).toEqual([1, 3])
        // Answered once: the same history begins a conversation of its own.
        yield* ask(user("Paint it."), said, user("red"))
        expect((yield* runsOf(story, agent)).length).toBe(4)
      })
    )

    it.effect("an agent that asks several things ends each answer with what is left to answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([
          { when: "step == 0", calls: [asking("Which colour?", ["red", "blue"]), asking("How much?")] },
          { say: "So {% for each in results %}{{ each.result.answer }}{% endfor %}." }
        ])
        yield* newModel(story, "asker", model, { tools: ["run.ask_user"] })
        const tell = (answer: Json) => [
          answer.body.x_tropism.status,
          answer.body.choices[0].finish_reason,
          answer.body.choices[0].message.content
        ]
        const first = yield* sendCompletion(story, { model: "asker", messages: [user("Paint it.")] })
        expect(tell(first)).toEqual(["waiting", "stop", "Which colour?\n- red\n- blue\n\nHow much?"])
        const headers = { "x-tropism-conversation": contextOf(first) }
        const say = (content: string) =>
          sendCompletion(story, { model: "asker", messages: [user(content)] }, headers)
        expect(tell(yield* say("blue"))).toEqual(["waiting", "stop", "How much?"])
        expect(tell(yield* say("2 l"))).toEqual(["completed", "stop", "So blue2 l."])
        // Streamed, it is told, too.
        const again = yield* sendCompletion(story, { model: "asker", messages: [user("Paint it.")] })
        const stream = yield* outcomeOf(() =>
          openAiClient(story).chat.completions.create(
            { model: "asker", messages: [user("red")], stream: true },
            { headers: { "x-tropism-conversation": contextOf(again) } }
          )
        )
        expect((yield* chunksOf(stream)).words).toBe("How much?")
      })
    )

    it.effect("a message that is longer than an answer may be does not answer a question", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([
          { when: "step == 0", calls: [asking("Which?")] },
          { say: "{{ results[0].result.answer | size }} characters." }
        ])
        yield* newModel(story, "asker", model, { tools: ["run.ask_user"] })
        const first = yield* sendCompletion(story, { model: "asker", messages: [user("Ask.")] })
        const headers = { "x-tropism-conversation": contextOf(first) }
        const send = (length: number) =>
          sendCompletion(story, { model: "asker", messages: [user("x".repeat(length))] }, headers)
        const refused = yield* send(20_001)
        expect([refused.status, refused.body.error]).toMatchObject([
          400,
          {
            message: expect.stringMatching(/\b20,?000\b/),
            param: "messages",
            code: "answer_refused"
          }
        ])
        expect((yield* send(20_000)).body.choices[0].message.content).toBe("20000 characters.")
      })
    )
  })
})
