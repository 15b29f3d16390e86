/**
 * What the record of a run says when it has ended, however it ended.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
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
            { say: "Never said.", latencyMs: 60_000 }
          ])
          const { id } = yield* begun(story, agent)
          yield* eventually(story.get(`/runs/${id}`), (run) => run.stepCount === 1)
          const cancelled = yield* story.post(`/runs/${id}/cancel`)
          expect(cancelled).toMatchObject({
            status: "cancelled",
            summary: "I have found the door.",
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
  })
})
