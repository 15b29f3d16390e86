/**
 * A run that a limit has stopped goes on when a person says so, under the same id and with its whole log.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import {
  addEvent,
  contentsOf,
  firstOf,
  logOf,
  logWith,
  newContext,
  noteTaker,
  quietLog,
  say,
  typesOf
} from "../testing/context-words.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { calling } from "../testing/story-words.ts"
import { beginAsking, reader, runLog } from "../testing/time-words.ts"

const taker = (overrides: Record<string, unknown> = {}) =>
  reader({}, { name: "taker", defaultTimeoutMs: null, maxSteps: 2, model: noteTaker, ...overrides })

/** Triggers an agent and answers its run, which rests. */
const paused = Effect.fnUntraced(function* (story: Story, overrides: Record<string, unknown> = {}) {
  const agent = yield* story.post("/agents", taker(overrides))
  const run = yield* story.post(`/agents/${agent.id}/trigger`, {})
  expect(run).toMatchObject({ status: "paused", pauseReason: "stepLimit", summary: "So far so good." })
  return { agent, run }
})

const resume = (story: Story, run: Json, body?: unknown) => story.ask("POST", `/runs/${run.id}/resume`, body)

const isOver = (run: Json) => run.status === "paused" || run.completedAt !== null

/** The run, once it has come to rest again. */
const atRest = (story: Story, run: Json) => eventually(story.get(`/runs/${run.id}`), isOver)

const notesOf = (story: Story) =>
  Effect.map(story.get("/objects?type=Note&limit=200"), (page) =>
    page.items.map(({ properties }: Json) => properties.name).toSorted()
  )

layer(SharedServer.layer)((it) => {
  describe("Requirement: Step Limit Enforcement", () => {
    it.effect(
      "S002-R45 a paused run keeps everything: it goes on under its id, with its log and steps afresh",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { run } = yield* paused(story)
          const before = yield* runLog(story, run)
          const answer = yield* resume(story, run)
          expect(answer).toMatchObject({ status: 200, body: { id: run.id, pauseReason: null } })
          expect(["queued", "running"]).toContain(answer.body.status)
          const again = yield* atRest(story, run)
          // Two steps and a summary, and then the same once more.
          expect(again).toMatchObject({ id: run.id, pauseReason: "stepLimit", stepCount: 6, agentVersion: 1 })
          expect(yield* notesOf(story)).toEqual(["1.0", "1.1", "2.0", "2.1"])
          const log = yield* runLog(story, run)
          expect(log.slice(0, before.length)).toEqual(before)
          expect(typesOf(log).slice(before.length, before.length + 3)).toEqual([
            "SessionStartedEvent",
            "RunResumedEvent",
            "AgentTurnStartedEvent"
          ])
          expect(firstOf(log, "RunResumedEvent")).toMatchObject({
            by: "admin",
            triggersAgentTurn: true,
            content: expect.stringMatching(/\S/)
          })
        })
    )

    it.effect("S002-R45 the agent reads what the person said, and what it had done", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { run } = yield* paused(story)
        yield* resume(story, run, { message: "That is enough." })
        expect(yield* atRest(story, run)).toMatchObject({
          status: "completed",
          summary: "You said: That is enough.",
          errorMessage: null,
          stepCount: 4
        })
      })
    )

    it.effect("what it may use from now on can be said, and is refused where it makes no sense", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { run } = yield* paused(story, { defaultTimeoutMs: 60_000 })
        for (const [body, pointer] of [
          [{ maxSteps: 0 }, "/maxSteps"],
          [{ timeoutMs: "soon" }, "/timeoutMs"],
          [{ timeoutMs: 0 }, "/timeoutMs"],
          [{ maxCostUsd: -1 }, "/maxCostUsd"],
          [{ message: "" }, "/message"],
          [{ message: "a\u0000b" }, "/message"],
          [{ steps: 3 }, "/steps"]
        ] as const) {
          const answer = yield* resume(story, run, body)
          expectProblem(answer, 422)
          expect(answer.body.errors[0].pointer).toBe(pointer)
        }
        expect(yield* story.get(`/runs/${run.id}`)).toEqual(run)
        // What is null is unsaid: the definition's timeout holds on.
        const answer = yield* resume(story, run, { maxSteps: 3, maxTokens: 1_000_000, timeoutMs: null })
        expect(answer.body.limits).toEqual({
          maxSteps: 3,
          timeoutMs: 60_000,
          maxTokens: 1_000_000,
          maxCostUsd: null
        })
        expect(yield* atRest(story, run)).toMatchObject({ pauseReason: "stepLimit", stepCount: 7 })
        expect(yield* notesOf(story)).toEqual(["1.0", "1.1", "2.0", "2.1", "2.2"])
      })
    )

    it.effect("the version of the agent that it began with stays", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, run } = yield* paused(story)
        yield* story.patch(`/agents/${agent.id}`, { model: scripted([{ say: "A new mind." }]), maxSteps: 9 })
        yield* resume(story, run)
        expect(yield* atRest(story, run)).toMatchObject({
          agentVersion: 1,
          pauseReason: "stepLimit",
          limits: { maxSteps: 2 }
        })
      })
    )

    it.effect("of ten who resume at once one does, and the log says so once", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { run } = yield* paused(story)
        const answers = yield* Effect.forEach(
          Array.from({ length: 10 }),
          () => resume(story, run, { message: "That is enough." }),
          { concurrency: 10 }
        )
        expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
        for (const answer of answers.filter(({ status }) => status !== 200)) {
          expectProblem(answer, 409)
          expect(answer.body.reason).toBe("state")
        }
        yield* atRest(story, run)
        expect(contentsOf(yield* runLog(story, run), "RunResumedEvent")).toEqual(["That is enough."])
      })
    )

    it.effect("a step limit that is reached again and again loses nothing, also across a cancel", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { run } = yield* paused(story)
        for (const stepCount of [6, 9]) {
          yield* resume(story, run)
          expect(yield* atRest(story, run)).toMatchObject({ pauseReason: "stepLimit", stepCount })
        }
        expect(yield* notesOf(story)).toEqual(["1.0", "1.1", "2.0", "2.1", "3.0", "3.1"])
        const cancelled = yield* story.post(`/runs/${run.id}/cancel`)
        const said = "So far so good."
        expect(cancelled).toMatchObject({
          status: "cancelled",
          summary: [said, said, said].join("\n\n"),
          stepCount: 9
        })
        const answer = yield* resume(story, run)
        expectProblem(answer, 409)
        expect(answer.body.reason).toBe("state")
        expect(yield* story.get(`/runs/${run.id}`)).toEqual(cancelled)
      })
    )
  })

  describe("Requirement: Timeout Enforcement", () => {
    it.effect(
      "a timeout that is said for the run takes precedence over the definition's, and counts afresh",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", reader({ say: "A part." }))
          const run = yield* beginAsking(story, agent)
          const path = `/runs/${run.id}`
          yield* asTimePasses(1_000, story.get(path), isOver)
          const answer = yield* resume(story, run, { timeoutMs: 20_000 })
          expect(answer.body.limits.timeoutMs).toBe(20_000)
          // The clock stands still until the turn has begun: its time counts from there.
          yield* logWith(story, run.contextName, "AgentTurnStartedEvent", 2)
          const again = yield* asTimePasses(1_000, story.get(path), isOver)
          expect(again).toMatchObject({ pauseReason: "timeout", stepCount: 2 })
          const log = yield* runLog(story, run)
          const at = (type: string) => Date.parse(log.findLast((event) => event.type === type).timestamp)
          const spent = at("SoftStopEvent") - at("AgentTurnStartedEvent")
          expect([spent >= 20_000, spent < 30_000]).toEqual([true, true])
        })
    )
  })

  describe("A run that is not stopped by a limit", () => {
    it.effect("is not resumed, and the answer says what to do instead", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post(
          "/agents",
          taker({
            model: calling({ tool: "create_object", arguments: { type: "Note", properties: {} } }),
            maxSteps: null
          })
        )
        const ended = yield* story.post(`/agents/${agent.id}/trigger`, {})
        const finished = yield* resume(story, ended)
        expectProblem(finished, 409)
        expect(finished.body.reason).toBe("state")
        const slow = yield* story.post("/agents", reader({}, { defaultTimeoutMs: null }))
        const running = yield* beginAsking(story, slow)
        expect((yield* resume(story, running)).body.reason).toBe("state")
        const turn = (stopped: boolean) =>
          story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, { stopped, reason: "An audit" })
        yield* turn(true)
        const stopped = yield* resume(story, running)
        expectProblem(stopped, 409)
        expect(stopped.body.reason).toBe("state")
        yield* turn(false)
        yield* story.post(`/runs/${running.id}/cancel`)
        expect((yield* resume(story, { id: "00000000-0000-7000-8000-000000000000" })).status).toBe(404)
      })
    )

    it.effect("of an agent that may not begin a run is not resumed either, and can be later", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, run } = yield* paused(story)
        yield* story.patch(`/agents/${agent.id}`, { enabled: false })
        const refused = yield* resume(story, run)
        expectProblem(refused, 409)
        expect(refused.body.reason).toBe("agentDisabled")
        expect(yield* story.get(`/runs/${run.id}`)).toEqual(run)
        yield* story.patch(`/agents/${agent.id}`, { enabled: true, maxPendingRuns: 1 })
        expect((yield* resume(story, run, { message: "That is enough." })).status).toBe(200)
        expect(yield* atRest(story, run)).toMatchObject({ status: "completed" })
      })
    )
  })

  describe("A conversation whose run a limit has stopped", () => {
    it.effect("goes on with the next message, which is answered by the same run", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* newContext(story, "talk", noteTaker, { maxSteps: 1 })
        yield* addEvent(story, "talk", "Begin")
        yield* eventually(story.get("/runs?status=paused"), (page) => page.items.length === 1)
        yield* addEvent(story, "talk", "That is enough.")
        yield* logWith(story, "talk", "AgentTurnCompletedEvent")
        const log = yield* quietLog(story, "talk")
        expect(contentsOf(log, "AssistantMessageEvent").at(-1)).toBe("You said: That is enough.")
        expect((yield* story.get("/runs")).items).toMatchObject([{ status: "completed", pauseReason: null }])
        expect(yield* logOf(story, "talk")).toEqual(log)
      })
    )

    it.effect(
      "refuses a message that nobody would answer, because the agent has as many runs as it may have",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const model = scripted([
            { when: "message contains 'slow'", say: "At last.", latencyMs: 600_000 },
            { when: "tools.size == 0", say: "So far so good." },
            { calls: [{ tool: "create_object", arguments: { type: "Note", properties: {} } }] }
          ])
          const agent = yield* newContext(story, "talk", model, { maxSteps: 1, maxPendingRuns: 1 })
          yield* addEvent(story, "talk", "Begin")
          yield* eventually(story.get("/runs?status=paused"), (page) => page.items.length === 1)
          yield* story.post("/contexts", { name: "elsewhere", agentId: agent.id })
          yield* addEvent(story, "elsewhere", "Be slow")
          const busy = yield* eventually(story.get("/runs?status=running"), (page) => page.items.length === 1)
          const log = yield* logOf(story, "talk")
          const refused = yield* say(story, "talk", "Go on")
          expectProblem(refused, 429)
          expect(refused.body.reason).toBe("pendingRuns")
          expect(yield* logOf(story, "talk")).toEqual(log)

          yield* story.post(`/runs/${busy.items[0].id}/cancel`)
          expect((yield* say(story, "talk", "Go on")).status).toBe(204)
        })
    )
  })
})
