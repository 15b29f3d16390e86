/**
 * A run whose provider is away waits for it and shows why; other failures of a model are failures.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ProviderFault } from "../testing/failing-provider.ts"
import {
  allWereHandled,
  endedOf,
  happen,
  outageAges,
  outageStory,
  reader,
  runsOf,
  unavailable,
  waitingOf
} from "../testing/outage-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json } from "../testing/platform.ts"
import { entriesOf, explained, feedOf, make } from "../testing/story-words.ts"

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

  it.live("S001-R24 with skip keeps what comes for its object meanwhile", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const reactionConfig = {
        events: ["created", "updated"],
        objectTypes: ["Person"],
        concurrencyStrategy: "skip"
      }
      const agent = yield* story.post("/agents", reader({ reactionConfig }))
      yield* provider.goAway(unavailable)
      const person = yield* make(story, "Person", { name: "Ada" })
      yield* waitingOf(story, agent, 1)
      for (const name of ["Ada L.", "Ada Lovelace"])
        yield* story.patch(`/objects/${person.id}`, { properties: { name } })
      const statuses = Effect.map(entriesOf(story, agent), (entries) => entries.map(({ status }) => status))
      expect(yield* eventually(statuses, ({ length }) => length === 3)).toEqual([
        "processing",
        "pending",
        "pending"
      ])
      yield* provider.comeBack
      yield* outageAges(story, 60)
      yield* eventually(statuses, (all) => all.every((status) => status === "completed"), 60_000)
      const runs = yield* endedOf(story, agent, 2)
      expect(runs.map((run) => run.trigger.events.length)).toEqual([2, 1])
    }).pipe(Effect.scoped)
  )

  it.live("of an agent that is disabled meanwhile keeps no other waiting", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const disabled = yield* story.post("/agents", reader({ name: "disabled" }))
      yield* provider.goAway(unavailable)
      yield* happen(story, 4)
      yield* waitingOf(story, disabled, 4)
      yield* story.patch(`/agents/${disabled.id}`, { enabled: false })
      const agent = yield* story.post("/agents", reader())
      yield* happen(story, 1)
      yield* waitingOf(story, agent, 1)
      // Those of the disabled agent are the next in the order of probes.
      yield* ask(story.access, "update kb.agent_runs set wait_tries = 9 where agent_id = $1", [agent.id])
      yield* provider.comeBack
      yield* outageAges(story, 60)
      const [run] = yield* endedOf(story, agent, 1)
      expect(run.status).toBe("completed")
      const others = yield* eventually(
        runsOf(story, disabled),
        (runs) => runs.every(({ status }) => status === "cancelled"),
        60_000
      )
      for (const { completedAt } of others)
        expect(Date.parse(completedAt)).toBeGreaterThanOrEqual(Date.parse(run.completedAt))
    }).pipe(Effect.scoped)
  )

  it.live("is paused, and does not wait, once its time is up", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const agent = yield* story.post("/agents", reader({ defaultTimeoutMs: 3_000 }))
      // It is silent until the run's time is up, and refuses the last request.
      yield* provider.goAway({ type: "silentFirst", status: 503 })
      yield* happen(story, 1)
      const [run] = yield* eventually(runsOf(story, agent), (runs) => runs[0]?.status === "paused", 40_000)
      expect(run).toMatchObject({ pauseReason: "timeout", waitingFor: null })
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

  it.live.each<readonly [string, ProviderFault, string]>([
    ["the provider refuses the request itself", { type: "status", status: 401 }, "HTTP 401"],
    ["a web server is at the address", { type: "page", status: 200 }, "instead of JSON; check the base URL"]
  ])("does not wait where %s", ([, fault, message]) =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const agent = yield* story.post("/agents", reader())
      yield* provider.goAway(fault)
      yield* happen(story, 1)
      const [run] = yield* endedOf(story, agent, 1)
      expect(run).toMatchObject({ status: "failed", failureReason: "model" })
      expect(run.errorMessage).toContain(message)
    }).pipe(Effect.scoped)
  )
})
