/**
 * When a run that handed tasks over comes to an end, so does everything below it; while it waits, nobody gives it up.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { outboxLimits, runLimits } from "../src/limits.ts"
import { firstOf } from "../testing/context-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { logOfRun } from "../testing/run-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  begin,
  boss,
  childrenOf,
  childrenWhen,
  endedInTime,
  handingOver,
  isEnded,
  isRunning,
  isWaiting,
  reportsOf,
  runNow,
  runWhen,
  saysAfter,
  spawning,
  spawnsOf,
  waitingFor,
  worker
} from "../testing/sub-agent-words.ts"
import { callsOf, entriesOf, make } from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

const longMs = 60_000

/** A boss, two middles and four leaves, of which each leaf thinks for a minute: all of them at rest or in the middle of a request. */
const newTree = Effect.fnUntraced(function* (story: Story) {
  yield* story.post("/agents", worker("leaf", saysAfter(longMs)))
  const middle = handingOver(spawning("leaf"), spawning("leaf", { task: "The other part." }))
  yield* story.post("/agents", worker("middle", middle, { subAgents: ["leaf"] }))
  const agent = yield* boss(story, [spawning("middle"), spawning("middle", { task: "The rest." })])
  const top = yield* begin(story, agent)
  const middles = yield* childrenWhen(story, top, 2, isWaiting)
  const leaves = (yield* Effect.forEach(middles, (run) => childrenWhen(story, run, 2, isRunning))).flat()
  yield* runWhen(story, top, isWaiting)
  return { agent, top, middles, leaves, below: [...middles, ...leaves] }
})

/** A boss that waits for one helper, and a leaf that rests at its limit below the other, a middle that has completed. */
const newOrphan = Effect.fnUntraced(function* (story: Story) {
  yield* story.post("/agents", worker("slow", saysAfter(longMs)))
  const endless = scripted([
    { when: "tools.size == 0", say: "I was stopped." },
    { calls: [{ tool: "search_objects", arguments: { query: "{{ step }}" } }] }
  ])
  yield* story.post("/agents", worker("leaf", endless, { maxSteps: 1 }))
  yield* story.post("/agents", worker("middle", handingOver(spawning("leaf")), { subAgents: ["leaf"] }))
  const top = yield* begin(story, yield* boss(story, [spawning("middle"), spawning("slow")]))
  const [middle] = yield* childrenWhen(story, top, 2)
  expect(yield* runWhen(story, middle, isEnded)).toMatchObject({ status: "completed" })
  const [leaf] = yield* childrenOf(story, middle)
  expect(leaf).toMatchObject({ status: "paused", pauseReason: "stepLimit" })
  yield* runWhen(story, top, isWaiting)
  return { top, leaf }
})

/** What a program leaves that cancels a run and dies before it comes to those below. */
const endByHand = (story: Story, run: Json) =>
  ask(
    story.access,
    "update kb.agent_runs set status = 'cancelled', pause_reason = null, completed_at = now() where id = $1",
    [run.id]
  )

const statusesOf = (story: Story, runs: ReadonlyArray<Json>) =>
  Effect.map(
    Effect.forEach(runs, (run) => runNow(story, run)),
    (found) => found.map(({ status }) => status)
  )

/** Lets so much time pass, and a little more, as another agent's run tells it. */
const pass = Effect.fnUntraced(function* (story: Story, ms: number) {
  const clock = yield* story.post("/agents", worker("clock", saysAfter(ms + 5_000)))
  yield* endedInTime(story, yield* begin(story, clock))
})

/** The outcomes of the calls that a log tells, by call. */
const outcomesOf = (events: ReadonlyArray<Json>) =>
  Object.groupBy(
    events.filter(({ type }) => type === "ToolCallCompletedEvent" || type === "ToolCallFailedEvent"),
    ({ callId }) => callId
  )

layer(SharedServer.layer)((it) => {
  describe("Cancelling a run", () => {
    it.effect("cancels everything below it before the answer, also in the middle of a model request", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { below, leaves, top } = yield* newTree(story)
        expect((yield* story.post(`/runs/${top.id}/cancel`)).status).toBe("cancelled")
        expect(yield* statusesOf(story, below)).toEqual(below.map(() => "cancelled"))
        for (const run of leaves) expect((yield* runNow(story, run)).errorMessage).toBeTypeOf("string")
        expect((yield* spawnsOf(story, top)).map(({ status }) => status)).toEqual(["abandoned", "abandoned"])

        // The leaves' models answer when nobody wants it any more.
        const logs = yield* Effect.forEach([top, ...below], (run) => logOfRun(story, run))
        yield* pass(story, longMs)
        expect(yield* Effect.forEach([top, ...below], (run) => logOfRun(story, run))).toEqual(logs)
        for (const log of logs)
          for (const outcomes of Object.values(outcomesOf(log))) expect(outcomes).toHaveLength(1)
      })
    )

    it.effect("in the middle of a tree lets the run above it go on", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { middles, top } = yield* newTree(story)
        yield* story.post(`/runs/${middles[0]?.id}/cancel`)
        expect(yield* statusesOf(story, yield* childrenOf(story, middles[0]))).toEqual([
          "cancelled",
          "cancelled"
        ])
        expect(yield* runNow(story, top)).toMatchObject({ status: "paused", pauseReason: "subAgents" })
        const ended = yield* endedInTime(story, top)
        expect(ended.status).toBe("completed")
        expect(reportsOf(ended).map(({ result }) => result.status)).toEqual(
          expect.arrayContaining(["cancelled", "completed"])
        )
      })
    )

    it.effect("ends what rests at a limit below a run that has completed, and nobody resumes it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { leaf, top } = yield* newOrphan(story)
        yield* story.post(`/runs/${top.id}/cancel`)
        expect(yield* runNow(story, leaf)).toMatchObject({
          status: "cancelled",
          errorMessage: expect.any(String)
        })
        expect((yield* story.ask("POST", `/runs/${leaf.id}/resume`, { maxSteps: 9 })).status).toBe(409)
      })
    )

    it.effect("also where the program died before it came to it: a sweep finds it", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { leaf, top } = yield* newOrphan(story)
        yield* endByHand(story, top)
        yield* asTimePasses(
          runLimits.stuckIntervalMs,
          runNow(story, leaf),
          ({ status }) => status === "cancelled"
        )
      })
    )

    it.effect(
      "whose program died before it came to the runs below is finished after the lookout's next look",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const { below, top } = yield* newTree(story)
          yield* endByHand(story, top)
          yield* asTimePasses(outboxLimits.lookIntervalMs, statusesOf(story, below), (statuses) =>
            statuses.every((status) => status === "cancelled")
          )
        })
    )
  })

  describe("A run that fails", () => {
    it.effect("takes everything below it along", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", worker("helper", saysAfter(longMs)))
        const same = { tool: "search_objects", arguments: { query: "again" } }
        const run = yield* begin(
          story,
          yield* boss(story, [spawning("helper"), ...Array.from({ length: 5 }, () => same)])
        )
        const ended = yield* runWhen(story, run, isEnded)
        const failure = firstOf(yield* logOfRun(story, run), "AgentTurnFailedEvent")
        expect([ended.status, failure.reason]).toEqual(["failed", "doomLoop"])
        const [child] = yield* childrenWhen(story, run, 1, isEnded)
        expect(child).toMatchObject({
          status: "cancelled",
          errorMessage: "The run that spawned it failed"
        })
        expect(yield* spawnsOf(story, run)).toMatchObject([{ status: "abandoned" }])
      })
    )

    it.effect("because its agent was disabled does so, too", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { agent, middles, top } = yield* newTree(story)
        yield* story.patch(`/agents/${agent.id}`, { enabled: false })
        // One of its sub-agents ends, so it would go on, once the other has ended.
        for (const middle of middles) yield* story.post(`/runs/${middle.id}/cancel`)
        const ended = yield* runWhen(story, top, isEnded)
        expect(ended).toMatchObject({ status: "cancelled", errorMessage: naming("boss") })
      })
    )
  })

  describe("A run that waits for its sub-agents", () => {
    const stoppable = (calls: ReadonlyArray<ReturnType<typeof spawning>>) =>
      scripted([
        { when: "tools.size == 0", say: "I could not wait any longer." },
        { when: "step == 0", calls },
        { say: "{{ results | json }}" }
      ])

    it.effect("is asked to stop when its time is up, and its sub-agents are ended", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const calls = [spawning("helper"), spawning("helper", { task: "More." })]
        const { run } = yield* waitingFor(story, saysAfter(longMs), calls, {
          model: stoppable(calls),
          defaultTimeoutMs: 600_000
        })
        yield* ask(
          story.access,
          "update kb.agent_runs set deadline_at = now() - interval '1 second' where id = $1",
          [run.id]
        )
        const stopped = yield* asTimePasses(
          outboxLimits.lookIntervalMs,
          runNow(story, run),
          ({ pauseReason, status }) => status === "paused" && pauseReason === "timeout"
        )
        expect(stopped.summary).toBe("I could not wait any longer.")
        const children = yield* childrenOf(story, run)
        expect(children).toMatchObject(
          Array.from({ length: 2 }, () => ({
            status: "cancelled",
            errorMessage: expect.any(String)
          }))
        )
        expect((yield* spawnsOf(story, run)).map(({ status }) => status)).toEqual(["abandoned", "abandoned"])
        const events = yield* logOfRun(story, run)
        expect(Object.values(outcomesOf(events))).toMatchObject(
          Array.from({ length: 2 }, () => [{ type: "ToolCallFailedEvent", error: { reason: "softStop" } }])
        )
        const types = events.map(({ type }) => type)
        expect(types.filter((type) => type === "SoftStopEvent")).toHaveLength(1)
        expect(types.indexOf("SoftStopEvent")).toBeLessThan(types.indexOf("ToolCallFailedEvent"))
      })
    )

    it.effect("keeps its processing entry, and the stuck detector leaves it alone", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* story.post("/agents", worker("helper", saysAfter(longMs)))
        const agent = yield* boss(story, [spawning("helper")], {
          triggerType: "reaction",
          reactionConfig: { objectTypes: ["Start"], events: ["created"] }
        })
        yield* make(story, "Start")
        const [run] = yield* eventually(
          Effect.map(story.get(`/runs?agentId=${agent.id}`), ({ items }) => items),
          (runs) => runs.some(isWaiting)
        )
        yield* childrenWhen(story, run, 1, isRunning)
        yield* ask(
          story.access,
          "update kb.agent_processing_log set started_at = now() - interval '1 hour' where run_id = $1",
          [run.id]
        )
        yield* ask(
          story.access,
          "update kb.agent_runs set lease_expires_at = now() - interval '1 hour' where id = $1",
          [run.id]
        )
        // Long enough for the detector to look, and not for the helper to end.
        yield* pass(story, runLimits.stuckIntervalMs)
        expect(yield* runNow(story, run)).toMatchObject({ status: "paused", pauseReason: "subAgents" })
        expect(yield* entriesOf(story, agent)).toMatchObject([{ status: "processing", runId: run.id }])
        const ended = yield* endedInTime(story, run)
        expect(ended.status).toBe("completed")
        expect(yield* entriesOf(story, agent)).toMatchObject([{ status: "completed", runId: run.id }])
      })
    )

    it.effect("is stopped with all the others by a kill switch, and goes on with them", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const { below, leaves, middles, top } = yield* newTree(story)
        yield* story.ask("PUT", "/kill-switch", { stopped: true, reason: "A rehearsal" })
        expect(yield* statusesOf(story, leaves)).toEqual(leaves.map(() => "paused"))
        yield* story.ask("PUT", "/kill-switch", { stopped: false })
        const ended = yield* endedInTime(story, top)
        expect(ended.status).toBe("completed")
        expect(yield* statusesOf(story, below)).toEqual(below.map(() => "completed"))
        expect(reportsOf(ended)).toHaveLength(2)
        const calls = yield* Effect.forEach([top, ...middles], (run) => callsOf(story, run))
        expect(calls.flat().map(({ status }) => status)).toEqual(Array.from({ length: 6 }, () => "completed"))
      })
    )
  })
})
