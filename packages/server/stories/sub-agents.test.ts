/**
 * An agent hands tasks to others: what they are told, how long they may take, and what it learns of them.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { runLimits } from "../src/limits.ts"
import { ask } from "../testing/owner-rows.ts"
import { type Json, scripted, type Story } from "../testing/platform.ts"
import { naming } from "../testing/naming.ts"
import { logOfRun } from "../testing/run-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  begin,
  boss,
  childrenOf,
  childrenWhen,
  endedInTime,
  handOver,
  isEnded,
  isRunning,
  isWaiting,
  reportsOf,
  runNow,
  runThrough,
  runWhen,
  saysAfter,
  spawning,
  spawnsOf,
  waitingFor,
  worker
} from "../testing/sub-agent-words.ts"
import { callsOf, saying } from "../testing/story-words.ts"

const stepMs = 1_000

layer(SharedServer.layer)((it) => {
  describe("Requirement: Step Limit Enforcement", () => {
    it.effect("S002-R44 an agent spawns a sub-agent, and the run knows which run spawned it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const helper = yield* story.post("/agents", worker("helper", saying("I heard: {{ message }}")))
        const run = yield* handOver(story, [spawning("helper", { task: "Count the planets." })])
        const [child] = yield* childrenOf(story, run)
        expect(child).toMatchObject({
          agentId: helper.id,
          parentRunId: run.id,
          spawnDepth: 1,
          trigger: { type: "agent", input: { task: "Count the planets." } },
          rootEventId: run.rootEventId,
          depth: run.depth,
          status: "completed",
          summary: "I heard: Count the planets."
        })
        expect(run).toMatchObject({ parentRunId: null, spawnDepth: 0, status: "completed" })
        const result = { runId: child.id, agent: "helper", status: "completed", summary: child.summary }
        expect(reportsOf(run)).toEqual([{ tool: "spawn_agent", result, isError: false }])
        expect(yield* spawnsOf(story, run)).toMatchObject([{ status: "completed", result }])
        const told = (yield* logOfRun(story, run)).filter((event) => event.type.startsWith("ToolCall"))
        expect(told).toMatchObject([
          { type: "ToolCallStartedEvent", tool: "spawn_agent", waitsFor: "run" },
          { type: "ToolCallCompletedEvent", tool: "spawn_agent", result }
        ])
      })
    )

    it.effect("S002-R44 a sub-agent is told its prompt, with the input, and then the task", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const prompt = "You look at {{ input.planet | default: input }}."
        yield* story.post("/agents", worker("helper", saying("Done."), { prompt }))
        const run = yield* handOver(story, [
          spawning("helper", { task: "Look.", input: { planet: "Mars" } }),
          spawning("helper", { task: "Look around.", input: null })
        ])
        const children = yield* childrenOf(story, run)
        const words = yield* Effect.forEach(children, (child) =>
          Effect.map(logOfRun(story, child), (events) =>
            events.filter((event) => event.type === "UserMessageEvent").map((event) => event.content)
          )
        )
        expect(words).toEqual([
          ["You look at Mars.", "Look."],
          ["You look at Look around..", "Look around."]
        ])
        expect(children.map((child) => child.trigger.input)).toEqual([
          { task: "Look.", input: { planet: "Mars" } },
          { task: "Look around." }
        ])
      })
    )

    it.effect("S002-R44 the run that spawned waits, at rest, until its sub-agent has ended", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { children, run } = yield* waitingFor(story, saysAfter(5_000))
        expect(yield* spawnsOf(story, run)).toMatchObject([{ status: "started" }])
        const ended = yield* endedInTime(story, run)
        expect(ended).toMatchObject({ id: run.id, status: "completed" })
        expect(reportsOf(ended)).toMatchObject([{ result: { runId: children[0]?.id, summary: "Done." } }])
      })
    )

    it.effect(
      "several tasks of one message are worked on side by side, and the run goes on when all have ended",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* story.post("/agents", worker("slow", saysAfter(8_000, "Slow.")))
          yield* story.post("/agents", worker("quick", saysAfter(2_000, "Quick.")))
          const run = yield* begin(
            story,
            yield* boss(story, [
              spawning("slow"),
              { tool: "search_objects", arguments: {} },
              spawning("quick")
            ])
          )
          yield* childrenWhen(story, run, 2, isRunning)
          yield* runWhen(story, run, isWaiting)
          // What can be made at once has been made before it waits.
          expect((yield* callsOf(story, run)).map((call) => [call.tool, call.status])).toEqual([
            ["spawn_agent", "started"],
            ["search_objects", "completed"],
            ["spawn_agent", "started"]
          ])
          const leaseOfWait = yield* leaseOf(story, run)
          const [slow, quick] = yield* asTimePasses(
            stepMs,
            childrenOf(story, run),
            (children) => children[1]?.status === "completed"
          )
          expect([slow.status, quick.status]).toEqual(["running", "completed"])
          // One of two is not enough: nobody has taken the run up only to find that out.
          expect(yield* runNow(story, run)).toMatchObject({ status: "paused", pauseReason: "subAgents" })
          expect(yield* leaseOf(story, run)).toEqual(leaseOfWait)
          const ended = yield* endedInTime(story, run)
          expect(reportsOf(ended)).toHaveLength(3)
          const byCall = Object.fromEntries(
            (yield* spawnsOf(story, run)).map((call) => [call.arguments.agent, call.result.summary])
          )
          expect(byCall).toEqual({ slow: "Slow.", quick: "Quick." })
        })
    )

    it.effect("S002-R18 a sub-agent without maxSteps is asked to stop after 50 steps", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const busy = scripted([
          { when: "tools.size == 0", say: "I have taken {{ step }} steps." },
          { when: "step < 60", calls: [{ tool: "search_objects", arguments: { query: "{{ step }}" } }] },
          { say: "I was not stopped." }
        ])
        const helper = yield* story.post("/agents", worker("helper", busy))
        const run = yield* handOver(story, [spawning("helper")])
        const [child] = yield* childrenOf(story, run)
        expect(child).toMatchObject({
          status: "paused",
          pauseReason: "stepLimit",
          summary: "I have taken 50 steps.",
          stepCount: 51,
          limits: { maxSteps: 50 }
        })
        const stops = (yield* story.get(`/runs/${child.id}/events?limit=200&after=100`)).items
        expect(stops.filter((event: { type: string }) => event.type === "SoftStopEvent")).toMatchObject([
          { reason: "stepLimit" }
        ])
        expect(reportsOf(run)).toMatchObject([
          {
            result: { status: "paused", pauseReason: "stepLimit", summary: "I have taken 50 steps." },
            isError: false
          }
        ])
        // The same agent on its own has no bound (S002-R19).
        const alone = yield* runThrough(story, helper)
        expect(alone).toMatchObject({
          status: "completed",
          summary: "I was not stopped.",
          stepCount: 61,
          limits: { maxSteps: null }
        })
      })
    )
  })

  describe("Requirement: Timeout Enforcement", () => {
    it.effect(
      "S002-R29 a sub-agent has no later deadline than the run that waits for it, whatever it was given",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { children, run } = yield* waitingFor(
            story,
            saysAfter(600_000),
            [
              spawning("helper"),
              spawning("helper", { timeoutMs: 600_000 }),
              spawning("helper", { timeoutMs: 1_000 })
            ],
            { defaultTimeoutMs: 60_000 }
          )
          const deadlines = yield* Effect.forEach([run, ...children], ({ id }) =>
            Effect.map(
              ask(story.access, "select deadline_at from kb.agent_runs where id = $1", [id]),
              ([row]) => new Date(String(row?.[0])).getTime()
            )
          )
          const [own = 0, unbounded, longer, shorter = 0] = deadlines
          expect([unbounded, longer, shorter < own]).toEqual([own, own, true])
        })
    )

    it.effect("S002-R32 the timeout of the spawn takes precedence over that of the definition", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const model = scripted([
          { when: "tools.size == 0", say: "I was stopped." },
          { say: "Done.", latencyMs: 20_000 }
        ])
        const agents = [
          worker("patient", model, { defaultTimeoutMs: 600_000 }),
          worker("hasty", model, { defaultTimeoutMs: 1_000 })
        ]
        for (const agent of agents) yield* story.post("/agents", agent)
        const run = yield* begin(
          story,
          yield* boss(story, [
            spawning("patient", { timeoutMs: 5_000 }),
            spawning("hasty", { timeoutMs: 60_000 }),
            spawning("hasty")
          ])
        )
        yield* childrenWhen(story, run, 3, isRunning)
        const ended = yield* endedInTime(story, run)
        expect(ended.status).toBe("completed")
        const children = yield* childrenOf(story, run)
        expect(
          children.map(({ limits, pauseReason, summary }) => [limits.timeoutMs, pauseReason, summary])
        ).toEqual([
          [5_000, "timeout", "I was stopped."],
          [60_000, null, "Done."],
          [1_000, "timeout", "I was stopped."]
        ])
        const stop = (yield* logOfRun(story, children[0])).find((event) => event.type === "SoftStopEvent")
        const start = (yield* logOfRun(story, children[0])).find(
          (event) => event.type === "AgentTurnStartedEvent"
        )
        const tookMs = Date.parse(stop.timestamp) - Date.parse(start.timestamp)
        expect(tookMs).toBeGreaterThan(3_000)
        expect(tookMs).toBeLessThan(15_000)
      })
    )
  })

  describe("What a run learns of a sub-agent that did not get through", () => {
    it.effect("is why it failed, and it goes on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", worker("helper", { provider: "anthropic", name: "none" }))
        const run = yield* handOver(story, [spawning("helper")])
        const [child] = yield* childrenOf(story, run)
        expect(child.status).toBe("failed")
        const result = {
          error: expect.stringContaining(child.errorMessage),
          reason: "childFailed",
          runId: child.id,
          status: "failed"
        }
        expect(run.status).toBe("completed")
        expect(reportsOf(run)).toMatchObject([{ result, isError: true }])
        expect(yield* spawnsOf(story, run)).toMatchObject([{ status: "failed", result }])
      })
    )

    it.effect("is that a person cancelled it, and it goes on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { children, run } = yield* waitingFor(story, saysAfter(60_000))
        const [child] = children
        yield* story.post(`/runs/${child?.id}/cancel`)
        const ended = yield* runWhen(story, run, isEnded)
        expect(ended.status).toBe("completed")
        expect(reportsOf(ended)).toMatchObject([
          { isError: true, result: { reason: "childCancelled", status: "cancelled", runId: child?.id } }
        ])
      })
    )

    it.effect(
      "S002-R05 S002-R10 is the whole final text; one longer than a parent reads is cut, and says so",
      () =>
        Effect.gen(function* () {
          for (const [times, isCut] of [
            [1_500, false],
            [3_000, true]
          ] as const) {
            const story = yield* newStoryHere
            const say = `{% for i in (1..${times}) %}A summary without end. {% endfor %}`
            yield* story.post("/agents", worker("helper", scripted([{ say }])))
            const run = yield* handOver(story, [spawning("helper")])
            const said = "A summary without end. ".repeat(times)
            expect(said.length > runLimits.reportMaxChars).toBe(isCut)
            const [child] = yield* childrenOf(story, run)
            expect(yield* story.get(`/runs/${child?.id}`)).toMatchObject({ summary: said })
            const [call] = yield* spawnsOf(story, run)
            const { isTruncated = false, summary } = call.result
            expect(isTruncated).toBe(isCut)
            expect(summary.slice(0, runLimits.reportMaxChars)).toBe(said.slice(0, runLimits.reportMaxChars))
            const mark = summary.slice(runLimits.reportMaxChars)
            expect(mark).toEqual(isCut ? naming(runLimits.reportMaxChars, said.length) : "")
            expect(reportsOf(run)).toMatchObject([{ result: { summary } }])
          }
        })
    )
  })

  describe("The runs that a run spawned", () => {
    it.effect("are listed by the run above them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", worker("helper", saying("Done.")))
        const run = yield* handOver(story, [spawning("helper"), spawning("helper", { task: "More." })])
        const other = yield* handOver(story, [spawning("helper", { task: "Other." })])
        expect((yield* childrenOf(story, run)).map((child) => child.trigger.input.task)).toEqual([
          "Do your part, helper.",
          "More."
        ])
        expect(yield* childrenOf(story, other)).toHaveLength(1)
        expect((yield* story.get("/runs")).items).toHaveLength(5)
        const bad = yield* story.ask("GET", "/runs?parentRunId=nonsense")
        expect(bad.status).toBe(422)
      })
    )
  })
})

/** Until when the last worker that took a run had it: each claim sets it anew. */
const leaseOf = (story: Story, run: Json) =>
  ask(story.access, "select lease_expires_at::text from kb.agent_runs where id = $1", [run.id])
