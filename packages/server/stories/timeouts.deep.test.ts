/**
 * A run that takes too long is asked to come to an end, and then made to.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import { addEvent, firstOf, logOf, newContext, typesOf } from "../testing/context-words.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  beginAsking,
  between,
  longText,
  partialOf,
  reader,
  runLog,
  timeoutMs
} from "../testing/time-words.ts"

const stepMs = 1_000

const isPaused = (run: Json) => run.status === "paused"
const isStopped = (log: ReadonlyArray<Json>) => log.some(({ type }) => type === "SoftStopEvent")

/** The run, once it rests, as the server's clock goes on. */
const atRest = (story: Story, run: Json, ms = stepMs) =>
  asTimePasses(ms, story.get(`/runs/${run.id}`), isPaused)

layer(SharedServer.layer)((it) => {
  describe("Requirement: Timeout Enforcement", () => {
    it.effect(
      "S002-R26, R28 Scenario: Timeout with graceful shutdown: it is told that time's up and pauses with its summary",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", reader({ say: "I have read a part." }))
          const run = yield* beginAsking(story, agent)
          expect(yield* atRest(story, run)).toMatchObject({
            status: "paused",
            pauseReason: "timeout",
            summary: "I have read a part.",
            completedAt: null,
            stepCount: 1,
            limits: { timeoutMs }
          })
          const log = yield* runLog(story, run)
          expect(typesOf(log).slice(-4)).toEqual([
            "SoftStopEvent",
            "AssistantMessageEvent",
            "AgentTurnInterruptedEvent",
            "SessionEndedEvent"
          ])
          const stop = firstOf(log, "SoftStopEvent")
          expect(stop).toMatchObject({
            reason: "timeout",
            content: expect.stringMatching(/\S/)
          })
          // What it was saying is not lost: about a minute's worth of words.
          expect(longText.startsWith(stop.partialText)).toBe(true)
          expect(stop.partialText.split(" ").length).toBeGreaterThan(50)
          const spent = between(log, "AgentTurnStartedEvent", "SoftStopEvent")
          expect([spent >= timeoutMs, spent <= timeoutMs + 2 * stepMs]).toEqual([true, true])
        })
    )

    it.effect("S002-R27 Scenario: Timeout with graceful shutdown: an answer within 30 s is waited for", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", reader({ say: "At last.", latencyMs: 20_000 }))
        const run = yield* beginAsking(story, agent)
        expect(yield* atRest(story, run)).toMatchObject({ pauseReason: "timeout", summary: "At last." })
      })
    )

    it.effect(
      "S002-R29, R30, R31 Scenario: Hard timeout after grace period: after 30 s it is aborted and paused, with what it had said",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", reader({ say: "Too late.", latencyMs: 31_000 }))
          const run = yield* beginAsking(story, agent)
          const paused = yield* atRest(story, run)
          const log = yield* runLog(story, run)
          const { partialText } = firstOf(log, "SoftStopEvent")
          expect(partialText.length).toBeGreaterThan(100)
          expect(paused).toMatchObject({ pauseReason: "timeout", summary: partialText, stepCount: 0 })
          const grace = between(log, "SoftStopEvent", "AgentTurnInterruptedEvent")
          expect([grace >= 30_000, grace <= 30_000 + 2 * stepMs]).toEqual([true, true])
          expect(firstOf(log, "AgentTurnInterruptedEvent").reason).toBe("timeout")
        })
    )

    it.effect("S002-R31 a summary that is broken off in the grace is kept as far as it came", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", reader({ say: longText, tokensPerSecond: 2 }))
        const run = yield* beginAsking(story, agent)
        const { summary } = yield* atRest(story, run)
        const words = summary.split(" ").length
        expect(longText.startsWith(summary)).toBe(true)
        expect([words > 50, words < 70]).toEqual([true, true])
        // The log has it, too, and not only the row that was kept up to date meanwhile.
        expect(firstOf(yield* runLog(story, run), "AgentTurnInterruptedEvent")).toMatchObject({
          reason: "timeout",
          partialText: summary
        })
      })
    )

    it.effect("S002-R30 calls that are asked for in the grace are not made", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const call = { tool: "create_object", arguments: { type: "Note", properties: {} } }
        const agent = yield* story.post("/agents", reader({ say: "One more.", calls: [call] }))
        const run = yield* beginAsking(story, agent)
        expect(yield* atRest(story, run)).toMatchObject({ pauseReason: "timeout", summary: "One more." })
        expect((yield* story.get("/objects?type=Note")).items).toEqual([])
      })
    )

    it.effect("S002-R26 time that the steps take together is counted, not the time of each", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const note = (name: string) => [
          { tool: "create_object", arguments: { type: "Note", properties: { name } } }
        ]
        const model = scripted([
          { when: "tools.size == 0", say: "Three notes." },
          { say: "", latencyMs: 20_000, calls: note("{{ step }}") }
        ])
        const agent = yield* story.post("/agents", reader({}, { model }))
        const run = yield* beginAsking(story, agent)
        expect(yield* atRest(story, run)).toMatchObject({ pauseReason: "timeout", summary: "Three notes." })
        const notes = (yield* story.get("/objects?type=Note")).items.length
        expect([2, 3]).toContain(notes)
      })
    )

    it.effect("S002-R26, R29 pauses between tries of a model end with the time, and with the grace", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const busy = scripted([{ say: "", fault: { kind: "rateLimited", message: "Later" } }])
        yield* newContext(story, "talk", busy, { defaultTimeoutMs: timeoutMs })
        const retry = { type: "SetRetryConfigEvent", maxRetries: 10, baseMs: 60_000, maxMs: 60_000 }
        yield* story.ask("POST", "/contexts/talk/events", retry)
        yield* addEvent(story, "talk", "Begin")
        const log = yield* asTimePasses(stepMs, logOf(story, "talk"), (events) =>
          events.some(({ type }) => type === "AgentTurnInterruptedEvent")
        )
        expect(between(log, "AgentTurnStartedEvent", "SoftStopEvent")).toBeLessThanOrEqual(
          timeoutMs + 2 * stepMs
        )
        expect(between(log, "SoftStopEvent", "AgentTurnInterruptedEvent")).toBeLessThanOrEqual(
          30_000 + 2 * stepMs
        )
        expect((yield* story.get("/runs")).items).toMatchObject([{ pauseReason: "timeout", stepCount: 0 }])
      })
    )

    it.effect("S002-R26 an agent without a timeout works as long as it takes", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([{ say: "Done.", latencyMs: 200_000 }])
        const agent = yield* story.post("/agents", reader({}, { model, defaultTimeoutMs: null }))
        const run = yield* beginAsking(story, agent)
        const ended = yield* asTimePasses(
          5 * stepMs,
          story.get(`/runs/${run.id}`),
          ({ completedAt }) => completedAt !== null
        )
        expect(ended).toMatchObject({ status: "completed", summary: "Done.", limits: { timeoutMs: null } })
      })
    )
  })

  describe("A run whose time is up and whose worker dies", () => {
    it.effect("S002-R29 has the rest of its grace on the next worker, and not a new one", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", reader({ say: "Too late.", latencyMs: 31_000 }))
        const run = yield* beginAsking(story, agent)
        const told = yield* asTimePasses(stepMs, runLog(story, run), isStopped)
        const toldAt = Date.parse(firstOf(told, "SoftStopEvent").timestamp)
        // The worker dies, and the rest of the grace passes for the database before another takes over.
        yield* ask(
          story.access,
          `update kb.agent_runs set attempt_token = gen_random_uuid(), worker_id = 'dead',
             lease_expires_at = now() - interval '1 second', deadline_at = deadline_at - interval '20 seconds' where id = $1`,
          [run.id]
        )
        const paused = yield* atRest(story, run)
        expect(paused).toMatchObject({ pauseReason: "timeout", attempt: 2, stepCount: 0 })
        expect(paused.summary).toBe(firstOf(told, "SoftStopEvent").partialText)
        const log = yield* runLog(story, run)
        expect(log.filter(({ type }) => type === "SoftStopEvent")).toHaveLength(1)
        const end = log.findLast(({ type }) => type === "AgentTurnInterruptedEvent")
        expect(end.reason).toBe("timeout")
        expect(Date.parse(end.timestamp) - toldAt).toBeLessThan(30_000)
      })
    )
  })

  describe("A run whose time and grace are over", () => {
    it.effect("S002-R29, R30 is paused although its worker stands still and holds its lease", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", reader({ say: "Never asked." }))
        const run = yield* beginAsking(story, agent)
        yield* asTimePasses(stepMs, partialOf(story, run), (text) => text !== null)
        const [[partial]] = (yield* ask(
          story.access,
          `update kb.agent_runs set attempt_token = gen_random_uuid(), worker_id = 'frozen', lease_expires_at = now() + interval '1 hour',
             deadline_at = now() - interval '29 seconds' where id = $1 returning partial_text`,
          [run.id]
        )) as [[string]]
        expect(yield* atRest(story, run)).toMatchObject({
          pauseReason: "timeout",
          attempt: 1,
          stepCount: 0,
          summary: partial
        })
        const log = yield* runLog(story, run)
        expect(typesOf(log).slice(-3)).toEqual([
          "SoftStopEvent",
          "AgentTurnInterruptedEvent",
          "SessionEndedEvent"
        ])
        expect(firstOf(log, "AgentTurnInterruptedEvent")).toMatchObject({
          reason: "timeout",
          partialText: partial
        })
        expect((yield* story.get(`/contexts/${run.contextName}/replay`)).isEqual).toBe(true)
        // It goes on when a person says so.
        yield* story.post(`/runs/${run.id}/resume`, {})
        expect(yield* atRest(story, run)).toMatchObject({ pauseReason: "timeout", summary: "Never asked." })
      })
    )
  })

  describe("A kill switch", () => {
    it.effect("S002-R26 stops the clock of what it stops", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const turn = (stopped: boolean) =>
          story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, { stopped, reason: "An audit" })
        const agent = yield* story.post("/agents", reader({ say: "Stopped by time." }))
        const run = yield* beginAsking(story, agent)
        // Forty seconds of its minute pass for the database.
        yield* ask(
          story.access,
          "update kb.agent_runs set deadline_at = deadline_at - interval '40 seconds' where id = $1",
          [run.id]
        )
        yield* turn(true)
        expect(yield* story.get(`/runs/${run.id}`)).toMatchObject({ pauseReason: "killSwitch" })
        const [[left, deadline]] = (yield* ask(
          story.access,
          "select time_left_ms::int, deadline_at from kb.agent_runs where id = $1",
          [run.id]
        )) as [[number, unknown]]
        expect([left > 10_000, left <= 20_000, deadline]).toEqual([true, true, null])
        yield* turn(false)
        expect(yield* atRest(story, run)).toMatchObject({
          pauseReason: "timeout",
          summary: "Stopped by time."
        })
        const log = yield* runLog(story, run)
        // Its turn was left open and goes on.
        expect(typesOf(log).filter((type) => type.startsWith("AgentTurn"))).toEqual([
          "AgentTurnStartedEvent",
          "AgentTurnInterruptedEvent"
        ])
        expect(between(log, "AgentTurnStartedEvent", "SoftStopEvent")).toBeLessThan(25_000)
      })
    )
  })
})
