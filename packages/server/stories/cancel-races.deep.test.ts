/**
 * A cancel against the end of the run itself, again and again: one of them wins, once.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { isQuiet } from "../testing/context-words.ts"
import { eventually, type Json, scripted } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { inTier } from "../testing/tier.ts"
import { silentFor } from "../testing/story-words.ts"
import { begin, runLog } from "../testing/time-words.ts"

const rounds = inTier(50, 50, 500)

const terminal = new Set(["AgentTurnCompletedEvent", "AgentTurnInterruptedEvent", "AgentTurnFailedEvent"])

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Requirement: Agent Run Lifecycle Tracking", () => {
    it.effect(
      `S002-R09, R16 ${rounds} cancels against ${rounds} completions: each run has one end, and all tell the same`,
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", {
            name: "racer",
            prompt: "Run.",
            triggerType: "manual",
            tools: [],
            model: scripted([{ say: "Done." }])
          })
          const slow = yield* story.post("/agents", {
            name: "slow",
            prompt: "Run.",
            triggerType: "manual",
            tools: [],
            model: silentFor(600_000)
          })
          const races = yield* Effect.forEach(
            Array.from({ length: rounds }, (_, index) => index),
            (index) =>
              Effect.gen(function* () {
                const run = yield* begin(story, index === 0 ? slow : agent)
                const look = story.get(`/runs/${run.id}`)
                // The first is cancelled surely and the second completes surely; of the others some come before the worker has the run, some in its middle, some too late.
                if (index === 1) yield* eventually(look, (now) => now.completedAt !== null)
                else yield* Effect.repeat(look, { times: index % 3 })
                return { run, cancelled: yield* story.ask("POST", `/runs/${run.id}/cancel`) }
              }),
            { concurrency: 16 }
          )
          yield* eventually(story.get("/runs?limit=200"), isQuiet, 30_000)
          const ends = yield* Effect.forEach(
            races,
            ({ cancelled, run }) =>
              Effect.gen(function* () {
                const now = yield* story.get(`/runs/${run.id}`)
                const log = yield* runLog(story, run)
                const turnEnds = log.filter(({ type }: Json) => terminal.has(type))
                const isCancelled = cancelled.status === 200
                expect([cancelled.status, now.status]).toEqual(
                  isCancelled ? [200, "cancelled"] : [409, "completed"]
                )
                if (isCancelled) expect(now).toEqual(cancelled.body)
                // One that was cancelled before its turn began has none to end.
                const hasTurn = log.some(({ type }: Json) => type === "AgentTurnStartedEvent")
                expect(turnEnds.map(({ reason, type }: Json) => reason ?? type)).toEqual(
                  hasTurn ? [isCancelled ? "cancelled" : "AgentTurnCompletedEvent"] : []
                )
                return `${now.status}${hasTurn ? "" : " before it began"}`
              }),
            { concurrency: 8 }
          )
          // Both sides won some.
          expect(ends).toHaveLength(rounds)
          expect(new Set(ends)).toContain("cancelled")
          expect(new Set(ends)).toContain("completed")
        }),
      300_000
    )
  })
})
