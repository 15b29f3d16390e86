/**
 * A message that is sent again under its Idempotency-Key is said once, whatever happened in between.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answered, chat, contextOf, keyed, newAssistant, streamed } from "../testing/chat-words.ts"
import { contentsOf, echo, quietLog } from "../testing/context-words.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { asUser } from "../testing/token-words.ts"

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Retry of the same message", () => {
    it.effect(
      "is told of the same conversation and the same answer, whole and streamed, and says nothing twice",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newAssistant(story, echo)
          const first = { agentId: agent.id, message: "Hello" }
          const answer = yield* answered(story, first, keyed("a"))
          expect(yield* answered(story, first, keyed("a"))).toEqual(answer)
          const { conversationId } = answer
          const second = { conversationId, message: "Hello" }
          const later = yield* answered(story, second, keyed("b"))
          expect(later.response).toBe("Answer 2: Hello")
          // Also when more was said since.
          expect(yield* answered(story, first, keyed("a"))).toEqual(answer)
          expect((yield* streamed(story, second, keyed("b"))).at(-1)?.json).toEqual(later)
          // Without a key, or under another, it is another message.
          expect((yield* answered(story, second)).response).toBe("Answer 3: Hello")
          const log = yield* quietLog(story, contextOf(conversationId))
          expect(contentsOf(log, "UserMessageEvent")).toEqual(["Hello", "Hello", "Hello"])
          expect((yield* story.get("/contexts")).items).toHaveLength(1)
        })
    )

    it.effect("fifty at once begin one conversation and are told one answer", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, echo)
        const body = { agentId: agent.id, message: "Hello" }
        const answers = yield* Effect.all(
          Array.from({ length: 50 }, () => answered(story, body, keyed("one"))),
          { concurrency: "unbounded" }
        )
        expect(new Set(answers.map((answer) => JSON.stringify(answer))).size).toBe(1)
        expect((yield* story.get("/contexts")).items).toHaveLength(1)
        expect((yield* story.get("/runs")).items).toHaveLength(1)
      })
    )

    it.effect(
      "another message under the key is refused, and a key is the person's and the project's own",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* newAssistant(story, echo)
          const body = { agentId: agent.id, message: "Hello" }
          const { conversationId } = yield* answered(story, body, keyed("k"))
          const refusal = yield* chat(story, { ...body, message: "Hello!" }, keyed("k"))
          expectProblem(refusal, 422, "idempotency-key")
          expectProblem(
            yield* chat(story, { conversationId, message: "Hello" }, keyed("k")),
            422,
            "idempotency-key"
          )
          const other = yield* asUser(story, "editor")
          const theirs = yield* answered(other, { ...body, message: "Hi" }, keyed("k"))
          expect(theirs.conversationId).not.toBe(conversationId)
        })
    )

    it.effect("a refusal is not kept: the same message may be said when nothing speaks against it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, echo, { enabled: false })
        const body = { agentId: agent.id, message: "Hello" }
        expectProblem(yield* chat(story, body, keyed("r")), 409)
        yield* story.patch(`/agents/${agent.id}`, { enabled: true })
        expect((yield* answered(story, body, keyed("r"))).response).toBe("Answer 1: Hello")
      })
    )
  })
})
