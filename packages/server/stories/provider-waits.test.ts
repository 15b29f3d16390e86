/**
 * A run whose provider is away waits for it and shows why; other failures of a model are failures.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  allWereHandled,
  endedOf,
  happen,
  outageAges,
  outageStory,
  reader,
  unavailable,
  waitingOf
} from "../testing/outage-words.ts"
import { type Json } from "../testing/platform.ts"
import { explained, feedOf, make } from "../testing/story-words.ts"

describe("A run whose provider is away", () => {
  it.live("goes on by itself when the provider is back", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const agent = yield* story.post("/agents", reader({ disableAfterFailures: 1 }))
      yield* provider.goAway(unavailable)
      const objects = yield* happen(story, 3)
      yield* waitingOf(story, agent, 3)
      yield* provider.comeBack
      yield* outageAges(story, 60)
      yield* allWereHandled(story, agent, objects)
    }).pipe(Effect.scoped)
  )

  it.live(
    "shows with the run, its explanation, the health and the metrics what is waited for, since when and until when",
    () =>
      Effect.gen(function* () {
        const { provider, story } = yield* outageStory
        const agent = yield* story.post("/agents", reader())
        yield* provider.goAway({ type: "status", status: 429, headers: { "retry-after": "3600" } })
        const beganMs = Date.now()
        yield* make(story, "Person", { name: "Ada" })
        const [waiting] = yield* waitingOf(story, agent, 1)
        const run = yield* story.get(`/runs/${waiting.id}`)
        expect(run).toMatchObject({
          status: "queued",
          pauseReason: null,
          errorMessage: null,
          failureReason: null,
          waitingFor: { reason: "provider", message: expect.stringContaining("HTTP 429: Refused with 429") }
        })
        expect(Date.parse(run.waitingFor.since)).toBeGreaterThan(beganMs - 1_000)
        expect(Date.parse(run.waitingFor.nextTryAt) - Date.parse(run.waitingFor.since)).toBeGreaterThan(
          3_590_000
        )
        const [event] = yield* feedOf(story, 1)
        expect(yield* explained(story, agent, event)).toMatchObject({
          outcome: "woke",
          reason: expect.stringContaining("HTTP 429")
        })
        const health = yield* story.get("/health")
        const finding = health.findings.find(({ check }: Json) => check === "provider")
        expect(finding).toMatchObject({
          state: "warn",
          detail: expect.stringContaining(run.waitingFor.since)
        })
        expect(finding.detail).not.toContain("127.0.0.1")
        const { body } = yield* story.send("GET", "/metrics")
        expect(body).toMatch(/^tropism_provider_outages 1$/m)
        expect(body).toMatch(/^tropism_waiting_runs\{reason="provider"\} 1$/m)
        expect(body).toMatch(/^tropism_queued_runs 0$/m)
      }).pipe(Effect.scoped)
  )

  it.live("lets a waiting run be cancelled, and tells another project nothing", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const agent = yield* story.post("/agents", reader())
      yield* provider.goAway(unavailable)
      yield* happen(story, 1)
      const [waiting] = yield* waitingOf(story, agent, 1)
      const other = yield* story.send("POST", "/api/projects", { name: "Another" })
      const health = yield* story.send("GET", `/api/projects/${other.body.id}/health`)
      expect(health.body.findings.some(({ check }: Json) => check === "provider")).toBe(false)
      yield* story.post(`/runs/${waiting.id}/cancel`)
      expect(yield* story.get(`/runs/${waiting.id}`)).toMatchObject({ status: "cancelled", waitingFor: null })
    }).pipe(Effect.scoped)
  )

  it.live("does not wait where the provider refuses the request itself", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const agent = yield* story.post("/agents", reader())
      yield* provider.goAway({ type: "status", status: 401 })
      yield* happen(story, 1)
      const [run] = yield* endedOf(story, agent, 1)
      expect(run).toMatchObject({ status: "failed", failureReason: "model" })
    }).pipe(Effect.scoped)
  )
})
