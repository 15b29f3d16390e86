/**
 * How answers end that are not simply given: stopped, cancelled, interrupted, or worked through in steps.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { answered, chat, contextOf, keyed, newAssistant } from "../testing/chat-words.ts"
import { contentsOf, countOf, firstOf, logOf, slowEcho, typesOf } from "../testing/context-words.ts"
import { messagesOf } from "../testing/conversation-words.ts"
import { defineWorkflow, draftAndCheck, loud } from "../testing/define-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { inTime } from "../testing/chat-time.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"

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

/** Asks which colour, and repeats the answer. */
const asker = scripted([
  { when: "step == 0", calls: [{ tool: "ask_user", arguments: { question: "Which colour?" } }] },
  { say: "Then {% for each in results %}{{ each.result.answer }}{% endfor %}." }
])

const setSwitch = (story: Story, stopped: boolean) =>
  story.ask("PUT", "/kill-switch", stopped ? { stopped, reason: "Fire drill" } : { stopped })

layer(SharedServer.layer)((it) => {
  describe("RunCancellation of an answer", () => {
    it.effect("a kill switch lets it rest, says so and refuses what is said meanwhile; then it goes on", () =>
      Effect.gen(function* () {
        const { agent, answer, body, story } = yield* underWay
        yield* setSwitch(story, true)
        expect(yield* answer).toMatchObject({
          status: "waiting",
          response: expect.stringMatching(/^\S/)
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

    it.effect("a kill switch that keeps an answered question from going on is told as what it is", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, asker, { tools: ["run.ask_user"] })
        const first = yield* inTime(chat(story, { agentId: agent.id, message: "Paint it." }), 100)
        expect(first?.body).toMatchObject({ status: "waiting", response: "Which colour?" })
        yield* setSwitch(story, true)
        const blue = { conversationId: first?.body.conversationId, message: "blue" }
        // The run is queued, and nobody may take it: no time passes until this is told.
        expect((yield* story.get("/runs")).items).toMatchObject([{ status: "paused" }])
        expect(yield* answered(story, blue, keyed("b"))).toMatchObject({
          status: "waiting",
          response: expect.stringMatching(/^\S/)
        })
        expect((yield* story.get("/runs")).items).toMatchObject([{ status: "queued" }])
        yield* setSwitch(story, false)
        const last = yield* inTime(chat(story, blue, keyed("b")), 500)
        expect(last?.body).toMatchObject({ status: "completed", response: "Then blue." })
      })
    )

    it.effect("an agent that goes round in circles says so, and so does the conversation", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(
          story,
          scripted([{ calls: [{ tool: "list_tasks", arguments: {} }] }])
        )
        const last = yield* inTime(chat(story, { agentId: agent.id, message: "What is open?" }), 100)
        const { conversationId, response } = last?.body ?? {}
        expect([last?.body.status, response]).toEqual(["failed", expect.stringMatching(/\S/)])
        const log = yield* logOf(story, contextOf(conversationId))
        expect(firstOf(log, "AgentTurnFailedEvent")).toMatchObject({ reason: "doomLoop" })
        const { items } = yield* messagesOf(story, { id: conversationId })
        expect(items.at(-1)).toMatchObject({ role: "assistant", content: response })
      })
    )

    it.effect("who deletes the conversation stops its turn, and nothing of it is written any more", () =>
      Effect.gen(function* () {
        const { answer, body, context, story } = yield* underWay
        const id = context.slice("chat-".length)
        expect((yield* story.delete(`/conversations/${id}`)).status).toBe(204)
        expect(yield* answer).toMatchObject({ status: "interrupted" })
        const [run] = (yield* story.get("/runs")).items
        expect(run).toMatchObject({
          status: "cancelled",
          errorMessage: expect.any(String),
          cancelledBy: (yield* story.send("GET", "/api/me")).body.userId
        })
        const log = yield* logOf(story, context)
        expect(typesOf(log).at(-1)).toBe("AgentTurnInterruptedEvent")
        // The model's answer comes, and finds nobody who may keep it.
        yield* TestClock.adjust("1 minute")
        const other = yield* inTime(chat(story, { agentId: body.agentId, message: "Other" }), 500)
        expect(other?.body.status).toBe("completed")
        expect(yield* logOf(story, context)).toEqual(log)
        expectProblem(yield* chat(story, { conversationId: id, message: "Still there?" }), 404)
        expectProblem(yield* story.ask("DELETE", `/conversations/${id}`), 404)
      })
    )

    it.effect("a question that waits in a conversation is asked no more when it is deleted", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, asker, { tools: ["run.ask_user"] })
        const first = yield* inTime(chat(story, { agentId: agent.id, message: "Paint it." }), 100)
        const [question] = (yield* story.get("/tasks?type=question&status=pending")).items
        expect(question).toBeDefined()
        yield* story.delete(`/conversations/${first?.body.conversationId}`)
        expect((yield* story.get("/runs")).items).toMatchObject([{ status: "cancelled" }])
        expect((yield* story.get("/tasks?type=question&status=pending")).items).toEqual([])
      })
    )

    it.effect("a message and a deletion at once: it is refused, or kept and its turn stopped", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, slowEcho)
        yield* Effect.forEach(
          Array.from({ length: 6 }, (_, index) => index),
          (index) =>
            Effect.gen(function* () {
              const { contextName, id } = yield* story.post("/conversations", { agentId: agent.id })
              const say = chat(story, { conversationId: id, message: "Hello" }, {}, "?wait=false")
              const remove = story.delete(`/conversations/${id}`)
              const both = index % 2 === 0 ? [say, remove] : [remove, say]
              const answers = yield* Effect.all(both, { concurrency: 2 })
              const [said, removed] = index % 2 === 0 ? answers : answers.toReversed()
              expect(removed?.status).toBe(204)
              const isKept = said?.status === 202
              const { items } = yield* story.get(`/contexts/${contextName}/events`)
              expect([said?.status, countOf(items, "UserMessageEvent")]).toEqual(isKept ? [202, 1] : [404, 0])
              const runs: ReadonlyArray<Json> = (yield* story.get("/runs")).items
              expect(
                runs.filter((run) => run.contextName === contextName).map(({ status }) => status)
              ).toEqual(isKept ? ["cancelled"] : [])
            })
        )
      })
    )

    it.effect("a run that somebody cancels ends it, and the log keeps who did what", () =>
      Effect.gen(function* () {
        const { answer, context, story } = yield* underWay
        const [run] = (yield* story.get("/runs")).items
        yield* story.post(`/runs/${run.id}/cancel`)
        const told = yield* answer
        expect(told).toMatchObject({
          status: "interrupted",
          response: expect.stringMatching(/^\S/),
          runId: run.id
        })
        expect(JSON.stringify(yield* logOf(story, context))).not.toContain(told?.response)
      })
    )

    it.effect("a person who interrupts the turn ends it", () =>
      Effect.gen(function* () {
        const { answer, context, story } = yield* underWay
        expect((yield* story.ask("POST", `/contexts/${context}/interrupt`)).status).toBe(204)
        expect(yield* answer).toMatchObject({
          status: "interrupted",
          response: expect.stringMatching(/^\S/)
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
