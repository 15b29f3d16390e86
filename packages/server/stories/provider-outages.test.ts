/**
 * A provider that is away for a moment: runs wait for it, and no event, agent or other model suffers.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ProviderFault } from "../testing/failing-provider.ts"
import {
  endedOf,
  happen,
  outageAges,
  outageStory,
  reader,
  runsOf,
  waitingOf
} from "../testing/outage-words.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { explained, make } from "../testing/story-words.ts"

const unavailable: ProviderFault = { type: "status", status: 503 }
const events = 40

/** Each event was handled by one run that completed, and nothing counts against the agent. */
const allWereHandled = Effect.fnUntraced(function* (
  story: Story,
  agent: Json,
  objects: ReadonlyArray<string>
) {
  const runs = yield* endedOf(story, agent, objects.length)
  expect(runs.map(({ status }) => status)).toEqual(objects.map(() => "completed"))
  expect(runs.map((run) => run.trigger.events[0].objectId).toSorted()).toEqual(objects.toSorted())
  expect(runs.map(({ attempt }) => attempt)).toEqual(objects.map(() => 1))
  const answers = yield* ask(
    story.access,
    "select run_id from kb.model_calls where project_id = $1 and answer_event is not null",
    [story.projectId]
  )
  expect(answers.length).toBe(objects.length)
  const { items } = yield* story.get(`/processing?agentId=${agent.id}&limit=100`)
  expect(items.map(({ attempt, status }: Json) => [attempt, status])).toEqual(
    objects.map(() => [1, "completed"])
  )
  expect(yield* story.get(`/agents/${agent.id}`)).toMatchObject({ enabled: true, disabledReason: null })
  const [row] = yield* ask(story.access, "select consecutive_failures from kb.agents where id = $1", [
    agent.id
  ])
  expect(row).toEqual([0])
})

describe("An outage of a provider is nobody's failure", () => {
  const faults: ReadonlyArray<readonly [string, ProviderFault]> = [
    ["answers 503", unavailable],
    ["refuses connections", { type: "closed" }],
    ["answers 429 without Retry-After", { type: "status", status: 429 }],
    ["breaks its answers off in the middle", { type: "cut" }]
  ]
  it.live.each(faults)("40 events while it %s all complete afterwards, once", ([, fault]) =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const agent = yield* story.post("/agents", reader())
      yield* provider.goAway(fault)
      const objects = yield* happen(story, events)
      yield* waitingOf(story, agent, events)
      yield* provider.comeBack
      yield* outageAges(story, 60)
      yield* allWereHandled(story, agent, objects)
    }).pipe(Effect.scoped)
  )

  it.live("asks a provider that answers 429 with Retry-After 90 no sooner, and then again", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const agent = yield* story.post("/agents", reader())
      const isOver = { type: "status", status: 429, headers: { "retry-after": "90" } } as const
      yield* provider.goAway(isOver)
      const objects = yield* happen(story, events)
      yield* waitingOf(story, agent, events)
      yield* provider.comeBack
      const asked = provider.requests.length
      yield* outageAges(story, 80)
      yield* happen(story, 1)
      yield* waitingOf(story, agent, events + 1)
      expect(provider.requests.length).toBe(asked)
      yield* outageAges(story, 10)
      const runs = yield* endedOf(story, agent, objects.length + 1)
      expect(runs.every(({ status }) => status === "completed")).toBe(true)
    }).pipe(Effect.scoped)
  )

  it.live("sends one probe at a time, and other models and agents go on meanwhile", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const away = yield* story.post("/agents", reader())
      const there = yield* story.post(
        "/agents",
        reader({
          name: "other",
          model: { provider: "openai-compatible", name: "other" },
          reactionConfig: { events: ["created"], objectTypes: ["Place"] }
        })
      )
      yield* provider.goAway(unavailable, "m")
      yield* happen(story, events)
      yield* waitingOf(story, away, events)
      const before = provider.requests.length
      yield* outageAges(story, 5)
      yield* eventually(
        Effect.sync(() => provider.requests.length),
        (count) => count > before
      )
      yield* waitingOf(story, away, events)
      expect(provider.requests.length).toBe(before + 1)
      const places = yield* happen(story, 10, "Place")
      yield* endedOf(story, there, places.length)
      expect((yield* runsOf(story, there)).map(({ status }) => status)).toEqual(places.map(() => "completed"))
      const working = yield* ask(
        story.access,
        "select count(*)::int from kb.agent_runs where agent_id = $1 and status = 'running'",
        [away.id]
      )
      expect(working).toEqual([[0]])
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
        const object = yield* make(story, "Person", { name: "Ada" })
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
        const { items } = yield* story.get(`/events?objectId=${object.id}`)
        expect(yield* explained(story, agent, items[0])).toMatchObject({
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

  it.live("fails a run after 24 hours with the provider's words, and blames no agent", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const agent = yield* story.post("/agents", reader({ disableAfterFailures: 1 }))
      yield* provider.goAway(unavailable)
      yield* happen(story, 3)
      yield* waitingOf(story, agent, 3)
      yield* outageAges(story, 86_400)
      const runs = yield* endedOf(story, agent, 3)
      for (const run of runs)
        expect(run).toMatchObject({
          status: "failed",
          failureReason: "model",
          errorMessage: expect.stringContaining("HTTP 503: Refused with 503")
        })
      expect(yield* story.get(`/agents/${agent.id}`)).toMatchObject({ enabled: true })
    }).pipe(Effect.scoped)
  )
})
