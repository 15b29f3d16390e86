/**
 * What the record of a run says when it has ended, however it ended.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { runLimits } from "../src/limits.ts"
import { naming } from "../testing/naming.ts"
import { eventually, type Json, scripted, type Story } from "../testing/platform.ts"
import { logOfRun, ofType } from "../testing/run-words.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"

const agentWith = (story: Story, rules: ReadonlyArray<Record<string, unknown>>) =>
  story.post("/agents", {
    name: "worker",
    prompt: "Work.",
    triggerType: "manual",
    executionMode: "execute",
    tools: ["graph.*"],
    model: scripted(rules)
  })

const look = { tool: "search_objects", arguments: {} }

/** A template that renders a text of so many sentences. */
const long = (times: number): string => `{% for i in (1..${times}) %}A summary without end. {% endfor %}`

const longText = (times: number): string => "A summary without end. ".repeat(times)

const begun = Effect.fnUntraced(function* (story: Story, agent: Json) {
  const { body } = yield* story.ask("POST", `/agents/${agent.id}/trigger?wait=false`)
  return body
})

/** How long a run took by its own record, in milliseconds. */
const lasted = (run: Json): number => Date.parse(run.completedAt) - Date.parse(run.startedAt)

layer(SharedServer.layer)((it) => {
  describe("Requirement: Agent Run Lifecycle Tracking", () => {
    it.effect(
      "S002-R08 S002-R09 S002-R10 S002-R11 S002-R12 Successful execution: running before, completed after, with summary, duration and completed_at",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* agentWith(story, [
            { when: "step == 0", say: "Looking.", calls: [look] },
            { say: "All is well.", latencyMs: 5_000 }
          ])
          const { id } = yield* begun(story, agent)
          const working = yield* eventually(story.get(`/runs/${id}`), (run) => run.stepCount === 1)
          expect(working).toMatchObject({
            status: "running",
            summary: null,
            completedAt: null,
            startedAt: expect.any(String)
          })
          const run = yield* asTimePasses(
            1_000,
            story.get(`/runs/${id}`),
            ({ status }) => status !== "running"
          )
          expect(run).toMatchObject({ status: "completed", summary: "All is well.", errorMessage: null })
          expect(run.durationMs).toBe(lasted(run))
          expect(run.durationMs).toBeGreaterThan(0)
        })
    )

    it.effect(
      "S002-R13 S002-R14 S002-R15 Failed execution: failed, with the error's description, duration and completed_at",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* agentWith(story, [
            { when: "step == 0", say: "Looking.", calls: [look] },
            { say: "Half an ans", fault: { kind: "cut", message: "The line went dead" } }
          ])
          const run = yield* story.post(`/agents/${agent.id}/trigger`)
          expect(run).toMatchObject({
            status: "failed",
            errorMessage: expect.stringContaining("The line went dead"),
            stepCount: 1,
            completedAt: expect.any(String)
          })
          expect(run.durationMs).toBe(lasted(run))
          const log = yield* logOfRun(story, run)
          expect(ofType(log, "AgentTurnFailedEvent")).toMatchObject([{ error: run.errorMessage }])
          expect(log.at(-1).type).toBe("SessionEndedEvent")
        })
    )

    it.effect(
      "S002-R16 S002-R17 Cancelled execution: cancelled, with what was said before as the summary",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* agentWith(story, [
            { when: "step == 0", say: "I have found the door.", calls: [look] },
            { when: "step == 1", calls: [look] },
            { when: "step == 2", say: "It is locked.", calls: [look] },
            { say: "Never said.", latencyMs: 60_000 }
          ])
          const { id } = yield* begun(story, agent)
          yield* eventually(story.get(`/runs/${id}`), (run) => run.stepCount === 3)
          const cancelled = yield* story.post(`/runs/${id}/cancel`)
          expect(cancelled).toMatchObject({
            status: "cancelled",
            summary: "I have found the door.\n\nIt is locked.",
            isSummaryTruncated: false,
            completedAt: expect.any(String)
          })
          expect(cancelled.durationMs).toBe(lasted(cancelled))
          // What its model would have said comes to nothing.
          yield* TestClock.adjust("2 minutes")
          expect(yield* story.get(`/runs/${id}`)).toEqual(cancelled)
          const log = yield* logOfRun(story, cancelled)
          expect(ofType(log, "AgentTurnInterruptedEvent")).toMatchObject([{ reason: "cancelled" }])
        })
    )

    it.effect(
      "S002-R17 what was said beyond what a summary holds is cut off, and the run says so, in its text too",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* agentWith(story, [
            { when: "step < 2", say: long(30_000), calls: [look] },
            { say: "Never said.", latencyMs: 60_000 }
          ])
          const { id } = yield* begun(story, agent)
          yield* eventually(story.get(`/runs/${id}`), (run) => run.stepCount === 2)
          const cancelled = yield* story.post(`/runs/${id}/cancel`)
          const said = [longText(30_000), longText(30_000)].join("\n\n")
          expect(said.length).toBeGreaterThan(runLimits.summaryMaxChars)
          expect(cancelled).toMatchObject({ status: "cancelled", isSummaryTruncated: true })
          expect(cancelled.summary.slice(0, runLimits.summaryMaxChars)).toBe(
            said.slice(0, runLimits.summaryMaxChars)
          )
          const mark = cancelled.summary.slice(runLimits.summaryMaxChars)
          expect(mark).toEqual(naming(runLimits.summaryMaxChars, said.length))
        })
    )

    it.effect(
      "S002-R05 S002-R10 the whole final text is the summary; a list tells its beginning, and that it is cut",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* agentWith(story, [{ say: long(2_000) }])
          const run = yield* story.post(`/agents/${agent.id}/trigger`)
          const whole = longText(2_000)
          expect(whole.length).toBeGreaterThan(runLimits.listedSummaryMaxChars)
          expect(run).toMatchObject({ status: "completed", summary: whole, isSummaryTruncated: false })
          expect(yield* story.get(`/runs/${run.id}`)).toEqual(run)
          const [listed] = (yield* story.get("/runs")).items
          expect(listed).toEqual({ ...run, summary: expect.any(String), isSummaryTruncated: true })
          const kept = runLimits.listedSummaryMaxChars
          expect(listed.summary.slice(0, kept)).toBe(whole.slice(0, kept))
          expect(listed.summary.slice(kept)).toEqual(naming(kept, whole.length))
        })
    )
  })
})
