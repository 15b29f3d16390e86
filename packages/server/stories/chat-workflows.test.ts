/**
 * Which words answer a message that is worked through in steps: the last step's, and no other message's.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { chatLimits } from "../src/chat/limits.ts"
import { answered, chat, contextOf, keyed, newAssistant } from "../testing/chat-words.ts"
import { echo, logWith, say } from "../testing/context-words.ts"
import { defineWorkflow, draftAndCheck, loud, loudUnlessSlow } from "../testing/define-words.ts"
import { Interposed, newInterposedStory } from "../testing/interposed.ts"
import { sendCompletion } from "../testing/openai-words.ts"
import { type Json, scripted } from "../testing/platform.ts"

/** A conversation in which something was said before a workflow was set. */
const conversation = Effect.fnUntraced(function* (
  workflow: Record<string, unknown>,
  model: Json = loud,
  overrides: Record<string, unknown> = {}
) {
  const story = yield* newInterposedStory
  const agent = yield* newAssistant(story, model, overrides)
  const { conversationId } = yield* answered(story, { agentId: agent.id, message: "zero" })
  expect((yield* defineWorkflow(story, contextOf(conversationId), workflow)).status).toBe(204)
  const saying = (message: string) => ({ conversationId, message })
  const send = (message: string, key: string) =>
    sendCompletion(
      story,
      { model: agent.name, messages: [{ role: "user", content: message }] },
      { "x-tropism-conversation": conversationId, ...keyed(key) }
    )
  return { story, context: contextOf(conversationId), saying, send }
})

/** Asks which colour before it drafts. */
const asking = {
  ...draftAndCheck,
  steps: [
    {
      name: "draft",
      prompt: "draft {{ input }}",
      model: scripted([
        { when: "step == 0", calls: [{ tool: "ask_user", arguments: { question: "Which colour?" } }] },
        { say: "Then {% for each in results %}{{ each.result.answer }}{% endfor %}." }
      ])
    },
    { name: "check", prompt: "check {{ steps.draft.output }}" }
  ]
}

/** Drafts in no story's time, unless somebody says that it be quick. */
const slowly = {
  ...draftAndCheck,
  steps: [
    { name: "draft", prompt: "{% if input contains 'quick' %}draft{% else %}slow{% endif %}" },
    { name: "check", prompt: "check {{ steps.draft.output }}" }
  ]
}

/** Told that more was said before the last step, and nothing of what answers that. */
const isBrokenInto = {
  status: "interrupted",
  response: expect.not.stringMatching(/^$|CHECK|TWO/)
}

layer(Interposed.layer, { excludeTestServices: true })((it) => {
  describe("A message that is worked through in steps", () => {
    it.effect("is answered by the last step, also where the answer to a question let it go on", () =>
      Effect.gen(function* () {
        const { saying, send, story } = yield* conversation(asking, loud, { tools: ["run.ask_user"] })
        expect(yield* answered(story, saying("one"))).toMatchObject({ status: "waiting" })
        const blue = yield* answered(story, saying("blue"), keyed("blue"))
        expect(blue).toMatchObject({ status: "completed", response: "CHECK THEN BLUE." })
        expect((yield* send("two", "two")).body.x_tropism.status).toBe("waiting")
        const red = yield* send("red", "red")
        expect(red.body.choices[0].message.content).toBe("Then red.\n\nCHECK THEN RED.")
        // And when it is told again, with other words behind it.
        expect(yield* answered(story, saying("blue"), keyed("blue"))).toEqual(blue)
      })
    )

    it.effect("is told its own answer again, and none of what was said later", () =>
      Effect.gen(function* () {
        const { saying, send, story } = yield* conversation(draftAndCheck)
        const one = yield* answered(story, saying("one"), keyed("one"))
        const two = yield* send("two", "two")
        expect(one.response).toBe("CHECK DRAFT ONE")
        expect(two.body.choices[0].message.content).toBe("DRAFT TWO\n\nCHECK DRAFT TWO")
        yield* answered(story, saying("three"))
        expect(yield* answered(story, saying("one"), keyed("one"))).toEqual(one)
        const again = yield* send("two", "two")
        expect([again.body.choices, again.body.usage]).toEqual([two.body.choices, two.body.usage])
      })
    )

    it.effect("is not told what answers somebody who broke into a step, now or later", () =>
      Effect.gen(function* () {
        const { context, saying, story } = yield* conversation(slowly, loudUnlessSlow)
        yield* chat(story, saying("one"), keyed("one"), "?wait=false")
        yield* logWith(story, context, "AgentTurnStartedEvent", 2)
        expect((yield* answered(story, saying("quick"))).response).toBe("CHECK DRAFT")
        expect(yield* answered(story, saying("one"), keyed("one"))).toMatchObject(isBrokenInto)
      })
    )

    it.effect("is not told what answers somebody who spoke while the last words of a step were kept", () =>
      Effect.gen(function* () {
        const { saying, story } = yield* conversation(draftAndCheck)
        const { server } = yield* Interposed
        const spoken = yield* Deferred.make<Json>()
        yield* server.interpose(
          "run.afterStep",
          Effect.flatMap(chat(story, saying("two"), keyed("two"), "?wait=false"), ({ status }) =>
            Effect.asVoid(Deferred.succeed(spoken, status))
          )
        )
        const one = yield* answered(story, saying("one"), keyed("one"))
        expect(yield* Deferred.await(spoken)).toBe(202)
        expect(one).toMatchObject(isBrokenInto)
        const both = yield* answered(story, saying("two"), keyed("two"))
        expect(both.response).toBe("CHECK DRAFT ONE\n\nTWO")
        expect(yield* answered(story, saying("one"), keyed("one"))).toEqual(one)
      })
    )
  })

  describe("A message that is sent again", () => {
    it.effect("is told its answer also where more events than one look has lie behind it", () =>
      Effect.gen(function* () {
        const story = yield* newInterposedStory
        const agent = yield* newAssistant(story, echo)
        const body = { agentId: agent.id, message: "Hello" }
        const answer = yield* answered(story, body, keyed("k"))
        yield* Effect.forEach(
          Array.from({ length: chatLimits.pageEvents + 1 }, (_, index) => `Note ${index}`),
          (note) => say(story, contextOf(answer.conversationId), note, false),
          { concurrency: 8 }
        )
        expect(yield* answered(story, body, keyed("k"))).toEqual(answer)
      })
    )
  })
})
