/**
 * Turns of a conversation: gathered messages, interruption, sessions, one request at a time.
 *
 * The model server is on a socket, so that a request which is interrupted is one
 * whose connection was closed. The server's clock stands still until a story
 * moves it.
 */
import { describe, expect, it, layer } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { TestClock } from "effect/testing"
import { agentLimits, modelLimits } from "../src/limits.ts"
import { chatChunk, type FakeAnswer, toEvent } from "../testing/fake-model-server.ts"
import {
  addEvent,
  contentsOf,
  countOf,
  firstOf,
  logOf,
  logWith,
  newContext,
  passingOf,
  quietLog,
  quietness,
  say,
  slowEcho,
  turnsOf,
  typesOf
} from "../testing/context-words.ts"
import { openStream } from "../testing/event-stream.ts"
import { refuses, says, wiredStory, wireModel } from "../testing/model-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"

/** Of the time in which a context rests. */
const sessionStepMs = 10_000

/** An answer that says some words and then nothing more, with the connection open. */
const beginning = (text: string): FakeAnswer => ({
  kind: "stream",
  chunks: [toEvent(chatChunk({ content: text }))],
  ending: "hang"
})

/** The messages of a request as its server received them. */
const messagesOf = (request: { readonly body: unknown } | undefined): Json => {
  const body: Json = request?.body
  return body?.messages
}

/** A conversation with a model on the wire that gives these answers. */
const wiredTalk = Effect.fn("wiredTalk")(function* (
  answers: readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>],
  overrides: Record<string, unknown> = {}
) {
  const wired = yield* wiredStory(answers)
  yield* newContext(wired.story, "talk", wireModel, overrides)
  return wired
})

/** Waits until the model of a conversation has been asked and its first words are shown. */
const speaking = (story: Story, said: string) =>
  eventually(story.get("/runs"), (runs) => runs.items.length > 0 && runs.items[0].status === "running").pipe(
    Effect.andThen(logWith(story, "talk", "AgentTurnStartedEvent")),
    Effect.as(said)
  )

const interrupt = (story: Story) => story.ask("POST", "/contexts/talk/interrupt")

describe("Request Interruption", () => {
  it.live(
    "S004-R35, R36, R37 a message during a turn interrupts the request, and a new turn has seen both",
    () =>
      Effect.gen(function* () {
        const { models, story } = yield* wiredTalk([beginning("The first half"), says("Both.")])
        yield* addEvent(story, "talk", "One")
        yield* Deferred.await(models.asked)
        yield* speaking(story, "The first half")
        yield* addEvent(story, "talk", "Two")
        yield* Deferred.await(models.hungUp)
        const log = yield* quietLog(story, "talk")
        expect(turnsOf(log)).toEqual([
          ["AgentTurnStartedEvent", 1],
          ["AgentTurnInterruptedEvent", 1],
          ["AgentTurnStartedEvent", 2],
          ["AgentTurnCompletedEvent", 2]
        ])
        const broken = firstOf(log, "AgentTurnInterruptedEvent")
        expect(broken.reason).toBe("message")
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Both."])
        expect(models.requests).toHaveLength(2)
        // What had been said when somebody broke in stands where it was said.
        expect(messagesOf(models.requests[1])).toEqual([
          { role: "user", content: "One" },
          ...(broken.partialText ? [{ role: "assistant", content: broken.partialText }] : []),
          { role: "user", content: "Two" }
        ])
        expect((yield* story.get("/verify")).differences).toEqual([])
      }).pipe(Effect.scoped)
  )

  it.live("S004-R38 a person ends the turn: the request is closed and nothing of it goes on", () =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredTalk([beginning("Well, "), says("Never asked.")])
      expectProblem(yield* interrupt(story), 409)
      yield* addEvent(story, "talk", "Tell me everything")
      yield* Deferred.await(models.asked)
      yield* logWith(story, "talk", "AgentTurnStartedEvent")
      const answers = yield* Effect.all([interrupt(story), interrupt(story), interrupt(story)], {
        concurrency: 3
      })
      expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 409, 409])
      yield* Deferred.await(models.hungUp)
      const log = yield* quietLog(story, "talk")
      expect(typesOf(log).slice(-3)).toEqual([
        "AgentTurnStartedEvent",
        "InterruptRequestedEvent",
        "AgentTurnInterruptedEvent"
      ])
      expect(firstOf(log, "AgentTurnInterruptedEvent").reason).toBe("user")
      expect(models.requests).toHaveLength(1)
      expectProblem(yield* interrupt(story), 409)
      expect((yield* story.ask("POST", "/contexts/nobody/interrupt")).status).toBe(404)
    }).pipe(Effect.scoped)
  )
})

describe("Single LLM Request", () => {
  it.live("S004-R43, R46 one request at a time, however many speak", () =>
    Effect.gen(function* () {
      const { models, story } = yield* wiredTalk([says("Yes.")])
      const messages = Array.from({ length: 20 }, (_, index) => `Message ${index}`)
      yield* Effect.forEach(messages, (message) => addEvent(story, "talk", message), { concurrency: 20 })
      const log = yield* quietLog(story, "talk")
      const turns = turnsOf(log)
      expect(turns.map(([, number]) => number)).toEqual(
        Array.from({ length: turns.length }, (_, index) => Math.floor(index / 2) + 1)
      )
      // Every request was of a turn of its own: none was asked while another was.
      expect(models.requests.length).toBeLessThanOrEqual(turns.length / 2)
      const said = messagesOf(models.requests.at(-1)).filter(({ role }: Json) => role === "user")
      expect(said.flatMap(({ content }: Json) => content.split("\n\n"))).toHaveLength(20)
    }).pipe(Effect.scoped)
  )

  it.live("S004-R44, R45 the primary is asked again, more and more slowly, and then the fallback", () =>
    Effect.gen(function* () {
      const primary = Array.from({ length: modelLimits.maxRetries + 1 }, () => refuses(503, "Overloaded"))
      const { models, story } = yield* wiredTalk(
        [refuses(503, "Overloaded"), ...primary.slice(1), says("Here I am.")],
        {
          model: { ...wireModel, fallback: { provider: "openai-compatible", name: "wire-2" } }
        }
      )
      yield* addEvent(story, "talk", "One")
      yield* quietLog(story, "talk")
      expect(models.requests.map(({ body }) => (body as Json).model)).toEqual([
        ...primary.map(() => "wire-1"),
        "wire-2"
      ])
      const [run] = (yield* story.get("/runs")).items
      expect([run.status, run.model, run.summary]).toEqual([
        "completed",
        "openai-compatible:wire-2",
        "Here I am."
      ])
      const tries: ReadonlyArray<Json> = (yield* story.get(`/runs/${run.id}/model-calls`)).items
      const starts = tries.map(({ startedAt }) => new Date(startedAt).getTime()).toSorted((x, y) => x - y)
      const pauses = starts.slice(1, primary.length).map((start, index) => start - (starts[index] ?? 0))
      // Half a second, one, two, each a little more or less.
      for (const [index, pause] of pauses.entries()) expect(pause).toBeGreaterThan(0.75 * 500 * 2 ** index)
      expect(pauses).toHaveLength(modelLimits.maxRetries)
    }).pipe(Effect.scoped)
  )
})

layer(SharedServer.layer)((it) => {
  describe("Request Interruption", () => {
    it.effect("S004-R35 what was said before somebody broke in is kept and is in the next prompt", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const words = Array.from({ length: 100 }, (_, index) => `word-${index}`).join(" ")
        const model = scripted([
          { when: "turn == 1", say: words, tokensPerSecond: 1 },
          { say: "{{ message }}" }
        ])
        yield* newContext(story, "talk", model)
        const live = yield* openStream(
          story,
          `/api/projects/${story.projectId}/contexts/talk/events?after=start`
        )
        yield* addEvent(story, "talk", "Count")
        // Two words have been spoken when somebody breaks in.
        yield* asTimePasses(
          250,
          Effect.sync(() => passingOf(live)),
          (deltas) => deltas.length >= 2
        )
        yield* addEvent(story, "talk", "Stop")
        const log = yield* eventually(logOf(story, "talk"), (events) =>
          events.some((event) => event.type === "AgentTurnInterruptedEvent")
        )
        const { partialText } = firstOf(log, "AgentTurnInterruptedEvent")
        expect(words.startsWith(partialText)).toBe(true)
        expect(partialText.length).toBeGreaterThan(0)
        yield* asTimePasses(100, story.get("/runs"), (runs) =>
          runs.items.every((run: Json) => run.completedAt !== null)
        )
        const { messages } = yield* story.get("/contexts/talk/state")
        expect(messages.slice(0, 3)).toEqual([
          { role: "user", content: "Count" },
          { role: "assistant", content: [{ type: "text", text: partialText }] },
          { role: "user", content: "Stop" }
        ])
      })
    )
  })

  describe("Debouncing", () => {
    it.effect("S004-R39 a turn starts 100 ms after the last of several messages, and has seen them all", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk")
        for (const message of ["One", "Two", "Three"]) {
          yield* say(story, "talk", message)
          yield* TestClock.adjust(90)
        }
        // 90 ms of quiet are not enough: nobody has begun, and the run that will begin is there.
        yield* eventually(story.get("/runs?status=running"), (page) => page.items.length === 1)
        expect(countOf(yield* logOf(story, "talk"), "AgentTurnStartedEvent")).toBe(0)
        yield* asTimePasses(10, story.get("/runs"), (runs) =>
          runs.items.every((run: Json) => run.completedAt !== null)
        )
        const log = yield* logOf(story, "talk")
        expect(turnsOf(log)).toEqual([
          ["AgentTurnStartedEvent", 1],
          ["AgentTurnCompletedEvent", 1]
        ])
        expect(contentsOf(log, "AssistantMessageEvent")).toEqual(["Answer 3: Three"])
      })
    )

    it.effect(
      "S004-R39 a steady stream of messages does not starve the turn: it starts within a second",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newContext(story, "talk", slowEcho)
          for (let n = 1; n <= 20; n++) {
            yield* say(story, "talk", `Message ${n}`)
            yield* TestClock.adjust(60)
          }
          const log = yield* logWith(story, "talk", "AgentTurnStartedEvent")
          const [first] = log
          const start = firstOf(log, "AgentTurnStartedEvent")
          const waitedMs = new Date(start.timestamp).getTime() - new Date(first?.timestamp).getTime()
          expect(waitedMs).toBeGreaterThanOrEqual(100)
          // 20 × 60 ms have passed: one look after the second at the latest.
          expect(waitedMs).toBeLessThanOrEqual(1_200)
          yield* quietness
          yield* asTimePasses(1_000, story.get("/runs"), (runs) =>
            runs.items.every((run: Json) => run.completedAt !== null)
          )
          const turns = turnsOf(yield* logOf(story, "talk"))
          expect(turns.filter(([type]) => type === "AgentTurnStartedEvent")).toHaveLength(turns.length / 2)
        })
    )
  })

  describe("Event Types: turns and sessions", () => {
    it.effect("S004-R32 a turn that completes says its number and how long it took", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk", slowEcho)
        yield* addEvent(story, "talk", "One")
        yield* logWith(story, "talk", "AgentTurnStartedEvent")
        yield* asTimePasses(1_000, story.get("/runs"), (runs) =>
          runs.items.every((run: Json) => run.completedAt !== null)
        )
        const log = yield* logOf(story, "talk")
        const [start, end] = [firstOf(log, "AgentTurnStartedEvent"), firstOf(log, "AgentTurnCompletedEvent")]
        expect(end.turnNumber).toBe(1)
        expect(end.durationMs).toBeGreaterThanOrEqual(5_000)
        expect(end.durationMs).toBe(new Date(end.timestamp).getTime() - new Date(start.timestamp).getTime())
      })
    )

    it.effect("S004-R33, R34 a turn that is interrupted or fails says its number and why", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const failing = scripted([{ say: "", fault: { kind: "error", message: "Out of order" } }])
        yield* newContext(story, "talk", failing)
        yield* addEvent(story, "talk", "One")
        yield* asTimePasses(1_000, story.get("/runs"), (runs) =>
          runs.items.every((run: Json) => run.completedAt !== null)
        )
        expect(firstOf(yield* logOf(story, "talk"), "AgentTurnFailedEvent")).toMatchObject({
          turnNumber: 1,
          error: expect.stringContaining("Out of order")
        })
        yield* newContext(story, "slow", slowEcho)
        yield* addEvent(story, "slow", "One")
        yield* logWith(story, "slow", "AgentTurnStartedEvent")
        yield* addEvent(story, "slow", "Two")
        expect(
          firstOf(yield* logWith(story, "slow", "AgentTurnInterruptedEvent"), "AgentTurnInterruptedEvent")
        ).toMatchObject({ turnNumber: 1, reason: "message" })
      })
    )

    it.effect(
      "S004-R40, R41, R42 a session begins with the first event, goes on over turns, and ends when the context has rested",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* newContext(story, "talk")
          const turn = [
            "UserMessageEvent",
            "AgentTurnStartedEvent",
            "AssistantMessageEvent",
            "AgentTurnCompletedEvent"
          ]
          const spoken = ["SessionStartedEvent", ...turn, ...turn]
          for (const message of ["One", "Two"]) {
            yield* addEvent(story, "talk", message)
            yield* quietLog(story, "talk")
          }
          const log = yield* logOf(story, "talk")
          expect(typesOf(log)).toEqual(spoken)
          expect(log[0]).toMatchObject({ id: "talk:1", parentEventId: null, triggersAgentTurn: false })
          expect((yield* story.get("/contexts/talk/state")).isSessionOpen).toBe(true)
          yield* asTimePasses(sessionStepMs, logOf(story, "talk"), (found) => found.length > spoken.length)
          const rested = yield* logOf(story, "talk")
          expect(typesOf(rested)).toEqual([...spoken, "SessionEndedEvent"])
          expect(rested.at(-1)).toMatchObject({ id: "talk:10", parentEventId: "talk:9" })
          const timeOf = (event: Json): number => new Date(event.timestamp).getTime()
          expect(timeOf(rested.at(-1)) - timeOf(log.at(-1))).toBeGreaterThanOrEqual(agentLimits.sessionRestMs)
          // Whatever is said then begins the next, also where nobody is to answer it.
          yield* addEvent(story, "talk", "Three", false)
          yield* addEvent(story, "talk", "Four")
          expect(typesOf(yield* quietLog(story, "talk")).slice(10)).toEqual([
            "SessionStartedEvent",
            "UserMessageEvent",
            ...turn
          ])
          expect((yield* story.get("/contexts/talk/replay")).isEqual).toBe(true)
          expect((yield* story.get("/verify")).differences).toEqual([])
        })
    )

    it.effect("S004-R40, R41 a run's log is one session, from its first event to its last", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* newContext(story, "talk")
        const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
        const { items } = yield* story.get(`/runs/${run.id}/events?limit=200`)
        expect([items[0], items.at(-1)]).toMatchObject([
          { type: "SessionStartedEvent", parentEventId: null },
          { type: "SessionEndedEvent" }
        ])
        expect([countOf(items, "SessionStartedEvent"), countOf(items, "SessionEndedEvent")]).toEqual([1, 1])
      })
    )
  })
})
