/**
 * How answers end that are not simply given: stopped, cancelled, interrupted, or worked through in steps.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answered, chat, contextOf, keyed, newAssistant } from "../testing/chat-words.ts"
import { contentsOf, countOf, logOf, slowEcho } from "../testing/context-words.ts"
import { defineWorkflow, draftAndCheck, loud } from "../testing/define-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { inTime } from "../testing/chat-time.ts"
import { expectProblem } from "../testing/problem-words.ts"
import type { Json, Story } from "../testing/platform.ts"

/** A message whose answer is being made, and stays so while no time passes. */
const underWay = Effect.gen(function* () {
  const story = yield* newStoryHere
  const agent = yield* newAssistant(story, slowEcho)
  const body = { agentId: agent.id, message: "Hello" }
  const { conversationId } = (yield* chat(story, body, keyed("k"), "?wait=false")).body
  const context = contextOf(conversationId)
  yield* asTimePasses(50, logOf(story, context), (log) => countOf(log, "AgentTurnStartedEvent") === 1)
  return { story, agent, body, context, answer: answered(story, body, keyed("k")) }
})

const setSwitch = (story: Story, stopped: boolean) =>
  story.ask("PUT", "/kill-switch", stopped ? { stopped, reason: "Fire drill" } : { stopped })

layer(SharedServer.layer)((it) => {
  describe("Endings of an answer", () => {
    it.effect("a kill switch lets it rest, says so and refuses what is said meanwhile; then it goes on", () =>
      Effect.gen(function* () {
        const { agent, answer, body, story } = yield* underWay
        yield* setSwitch(story, true)
        expect(yield* answer).toMatchObject({
          status: "waiting",
          response: expect.stringMatching(/^I was stopped and wait/)
        })
        const refusal = yield* chat(story, { agentId: agent.id, message: "Are you there?" })
        expectProblem(refusal, 409)
        expect(refusal.body).toMatchObject({
          reason: "stopped",
          detail: expect.stringContaining("Fire drill")
        })
        yield* setSwitch(story, false)
        const last = yield* inTime(chat(story, body, keyed("k")), 500)
        expect(last?.body).toMatchObject({ status: "completed", response: "Answer 1: Hello" })
      })
    )

    it.effect("a run that somebody cancels ends it, and the log keeps who did what", () =>
      Effect.gen(function* () {
        const { answer, context, story } = yield* underWay
        const [run] = (yield* story.get("/runs")).items
        yield* story.post(`/runs/${run.id}/cancel`)
        expect(yield* answer).toMatchObject({
          status: "interrupted",
          response: expect.stringMatching(/^I was stopped before I was done/),
          runId: run.id
        })
        expect(JSON.stringify(yield* logOf(story, context))).not.toContain("I was stopped")
      })
    )

    it.effect("a person who interrupts the turn ends it", () =>
      Effect.gen(function* () {
        const { answer, context, story } = yield* underWay
        expect((yield* story.ask("POST", `/contexts/${context}/interrupt`)).status).toBe(204)
        expect(yield* answer).toMatchObject({
          status: "interrupted",
          response: "I stopped here, as I was told to."
        })
      })
    )

    it.effect("a workflow answers with its last step", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, loud)
        const first = yield* inTime(chat(story, { agentId: agent.id, message: "one" }), 100)
        const { conversationId } = first?.body ?? {}
        expect((yield* defineWorkflow(story, contextOf(conversationId), draftAndCheck)).status).toBe(204)
        const second = yield* inTime(chat(story, { conversationId, message: "two" }), 100)
        expect(second?.body).toMatchObject({ status: "completed", response: "CHECK DRAFT TWO" })
        const words: ReadonlyArray<Json> = contentsOf(
          yield* logOf(story, contextOf(conversationId)),
          "AssistantMessageEvent"
        )
        expect(words.slice(1)).toEqual(["DRAFT TWO", "CHECK DRAFT TWO"])
      })
    )
  })
})
