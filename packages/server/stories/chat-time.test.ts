/**
 * How long a request waits for its answer: the clock goes on when the story says so.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { chatLimits } from "../src/chat/limits.ts"
import { keyLimits } from "../src/tenancy/idempotency-keys.ts"
import { inTime } from "../testing/chat-time.ts"
import { answered, chat, contextOf, keyed, newAssistant, streamed } from "../testing/chat-words.ts"
import { contentsOf, countOf, echo, logOf, slowEcho } from "../testing/context-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { silentFor } from "../testing/story-words.ts"

layer(SharedServer.layer)((it) => {
  describe("Waiting for an answer", () => {
    it.effect("a request that has waited as long as it may is told so, and the turn goes on behind it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, silentFor(chatLimits.waitMs + 20_000))
        const body = { agentId: agent.id, message: "Hello" }
        const first = yield* inTime(chat(story, body, keyed("a")), 5_000)
        expect([first?.status, first?.body]).toMatchObject([
          202,
          {
            conversationId: expect.any(String),
            status: "working",
            response: "",
            toolCalls: [],
            runId: expect.any(String)
          }
        ])
        // On a machine that is busy, the turn began when much of the request's time had passed.
        const again = yield* inTime(chat(story, body, keyed("a")), 5_000).pipe(
          Effect.repeat({ until: (answer) => answer?.status !== 202, times: 5 })
        )
        expect([again?.status, again?.body.response]).toEqual([200, "Done."])
        expect(again?.body.runId).toBe(first?.body.runId)
      })
    )

    it.effect("a stream that is quiet has a heartbeat before any connection is closed for silence", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, silentFor(20_000))
        const accept = { accept: "text/event-stream" }
        const answer = yield* inTime(chat(story, { agentId: agent.id, message: "Hello" }, accept), 1_000)
        expect(answer?.headers.get("content-type")).toBe("text/event-stream")
        expect(String(answer?.body).split(": heartbeat").length).toBeGreaterThan(3)
        expect(chatLimits.heartbeatIntervalMs).toBeLessThanOrEqual(5_000)
      })
    )

    it.effect("who says something more before the answer is there is told so, and is answered to both", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, slowEcho)
        const one = { agentId: agent.id, message: "One" }
        const { conversationId } = (yield* chat(story, one, keyed("one"), "?wait=false")).body
        const context = contextOf(conversationId)
        yield* asTimePasses(50, logOf(story, context), (log) => countOf(log, "AgentTurnStartedEvent") === 1)
        const two = { conversationId, message: "Two" }
        expect((yield* chat(story, two, keyed("two"), "?wait=false")).status).toBe(202)
        // No time passes: the turn is broken off as soon as the message is there.
        expect(yield* answered(story, one, keyed("one"))).toMatchObject({
          status: "interrupted",
          response: expect.not.stringContaining("Answer")
        })
        const last = yield* inTime(chat(story, two, keyed("two")), 500)
        expect(last?.body).toMatchObject({ status: "completed", response: "Answer 2: Two" })
      })
    )

    it.effect("whoever goes away cancels nothing", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, silentFor(10_000))
        const begun = yield* chat(
          story,
          { agentId: agent.id, message: "Hello" },
          keyed("gone"),
          "?wait=false"
        )
        const { conversationId } = begun.body
        const context = contextOf(conversationId)
        const abort = new AbortController()
        const path = `${story.url}/api/projects/${story.projectId}/chat`
        const request = Effect.promise(() =>
          fetch(path, {
            method: "POST",
            signal: abort.signal,
            headers: {
              authorization: `Bearer ${story.token}`,
              "content-type": "application/json",
              accept: "text/event-stream",
              ...keyed("gone")
            },
            body: JSON.stringify({ agentId: agent.id, message: "Hello" })
          })
        )
        expect((yield* request).status).toBe(200)
        abort.abort()
        const log = yield* asTimePasses(
          1_000,
          logOf(story, context),
          (events) => countOf(events, "AgentTurnCompletedEvent") > 0
        )
        expect(countOf(log, "AgentTurnInterruptedEvent")).toBe(0)
        expect(
          (yield* answered(story, { agentId: agent.id, message: "Hello" }, keyed("gone"))).response
        ).toBe("Done.")
      })
    )

    it.effect("a stream that breaks says so last, and the same message under its key is answered", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, silentFor(10_000))
        const body = { agentId: agent.id, message: "Hello" }
        const { conversationId } = (yield* chat(story, body, keyed("broken"), "?wait=false")).body
        const context = contextOf(conversationId)
        yield* asTimePasses(50, logOf(story, context), (log) => countOf(log, "AgentTurnStartedEvent") === 1)
        // Whoever reads a log is refused by the database for a moment; the agent is asking its model.
        yield* ask(story.access, "revoke select on kb.context_events from tropism_server")
        const heard = yield* streamed(story, body, keyed("broken"))
        yield* ask(story.access, "grant select on kb.context_events to tropism_server")
        expect(heard.map(({ name }) => name)).toEqual(["begun", "error"])
        expect(heard[1]?.json).toEqual({
          type: "/problems/server-fault",
          title: expect.any(String),
          status: 500,
          detail: expect.any(String)
        })
        const again = yield* inTime(chat(story, body, keyed("broken")), 1_000)
        expect(again?.body).toMatchObject({ conversationId, status: "completed", response: "Done." })
        expect(contentsOf(yield* logOf(story, context), "UserMessageEvent")).toEqual(["Hello"])
      })
    )
  })

  describe("Keys", () => {
    it.effect("a key is kept for 30 days, and is forgotten by the sweep of keys behind them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newAssistant(story, echo)
        const body = { agentId: agent.id, message: "Hello" }
        const send = (key: string) =>
          Effect.map(inTime(chat(story, body, keyed(key)), 100), (answer) => answer?.body)
        const first = yield* send("old")
        yield* send("young")
        const age = (key: string, days: number) =>
          ask(
            story.access,
            `update kb.idempotency_keys set created_at = now() - make_interval(days => $3) where project_id = $1 and key = $2`,
            [story.projectId, key, days]
          )
        const keys = Effect.map(
          ask(story.access, "select key from kb.idempotency_keys where project_id = $1 order by key", [
            story.projectId
          ]),
          (rows) => rows.flat()
        )
        yield* age("young", 29)
        expect(yield* send("old")).toEqual(first)
        yield* age("old", 31)
        const left = yield* asTimePasses(keyLimits.forgetIntervalMs / 4, keys, (found) => found.length < 2)
        expect(left).toEqual(["young"])
        expect((yield* send("old")).conversationId).not.toBe(first.conversationId)
      })
    )
  })
})
