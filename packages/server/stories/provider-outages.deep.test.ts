/**
 * A provider that is away for seconds and for minutes: no event is lost, no agent is blamed, no other model is slower.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { type ProviderFault, failingProvider } from "../testing/failing-provider.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startMortal } from "../testing/mortal-servers.ts"
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
import { eventually, type Json, newProject, type Story, storyIn } from "../testing/platform.ts"
import { begin, boss, isEnded, runWhen, spawning } from "../testing/sub-agent-words.ts"

const events = 40

/** An agent that reacts to each new place, and whose provider stays. */
const elsewhere = reader({
  name: "elsewhere",
  model: { provider: "openai", name: "other" },
  reactionConfig: { events: ["created"], objectTypes: ["Place"] }
})

/** How long a number of events takes an agent that has had others before. */
const timeOf = Effect.fnUntraced(function* (story: Story, agent: Json, count: number, all = count) {
  const beganMs = performance.now()
  yield* happen(story, count, "Place")
  const runs = yield* endedOf(story, agent, all)
  expect(runs.map(({ status }) => status)).toEqual(runs.map(() => "completed"))
  return performance.now() - beganMs
})

/** Requests in a row that met the outage, as the circuit breaker counts them. */
const failuresOf = (story: Story) =>
  Effect.map(ask(story.access, "select coalesce(max(failures), 0)::int from kb.provider_outages"), ([row]) =>
    Number(row?.[0])
  )

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

  it.live("streams that go silent are given up after the pause of the definition", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const model = { provider: "openai-compatible", name: "m", silenceTimeoutMs: 1_000 }
      const agent = yield* story.post("/agents", reader({ model }))
      yield* provider.goAway({ type: "halfOpen" })
      const beganMs = performance.now()
      const objects = yield* happen(story, 5)
      yield* waitingOf(story, agent, 5)
      expect(performance.now() - beganMs).toBeLessThan(60_000)
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

  it.live.each<readonly [string, number, string]>([
    ["a rate limit without Retry-After", 429, "completed"],
    ["a server's failure", 503, "failed"]
  ])("a run that met %s again and again while the model answered others: %i, %s", ([, status, ending]) =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      const agent = yield* story.post("/agents", reader())
      yield* provider.goAway({ type: "status", status })
      yield* happen(story, 1)
      const [waiting] = yield* waitingOf(story, agent, 1)
      // It waits since before this outage, for the ninth time.
      yield* ask(
        story.access,
        "update kb.agent_runs set wait_tries = 9, waits_since = waits_since - interval '1 hour' where id = $1",
        [waiting.id]
      )
      yield* outageAges(story, 60)
      if (ending === "completed") {
        yield* eventually(
          ask(story.access, "select wait_tries from kb.agent_runs where id = $1", [waiting.id]),
          ([row]) => Number(row?.[0]) > 9,
          30_000
        )
        yield* provider.comeBack
        yield* outageAges(story, 60)
      }
      const [run] = yield* endedOf(story, agent, 1)
      expect(run.status).toBe(ending)
    }).pipe(Effect.scoped)
  )

  const minutes: ReadonlyArray<readonly [string, ProviderFault]> = [
    ...faults,
    ["leaves its streams half open until the network ends them", { type: "halfOpen" }],
    ["answers 429 with Retry-After", { type: "status", status: 429, headers: { "retry-after": "90" } }]
  ]
  it.live.each(minutes)(
    "40 events while it %s for ten minutes complete within their time, and another provider's agent is not slower",
    ([, fault]) =>
      Effect.gen(function* () {
        const { provider, story } = yield* outageStory
        const agent = yield* story.post("/agents", reader({ defaultTimeoutMs: 60_000 }))
        const neighbour = yield* story.post("/agents", elsewhere)
        const before = yield* timeOf(story, neighbour, 10)
        yield* provider.goAway(fault)
        const objects = yield* happen(story, events)
        const allWait = eventually(
          Effect.andThen(provider.tear, runsOf(story, agent)),
          (runs) => runs.filter(({ waitingFor }) => waitingFor !== null).length === events,
          60_000
        )
        yield* allWait
        let failures = yield* failuresOf(story)
        // Past each pause between probes, and past the Retry-After.
        for (let seconds = 0; seconds < 600; seconds += 100) {
          yield* outageAges(story, 100)
          const failed = failures
          failures = yield* eventually(
            Effect.andThen(provider.tear, failuresOf(story)),
            (count) => count > failed,
            60_000
          )
          yield* allWait
          // One probe at a time.
          expect(yield* failuresOf(story)).toBe(failed + 1)
        }
        expect(yield* timeOf(story, neighbour, 10, 20)).toBeLessThan(3 * before + 2_000)
        yield* provider.comeBack
        yield* outageAges(story, 100)
        yield* allWereHandled(story, agent, objects)
        expect(provider.requests.filter(({ failed }) => !failed).length).toBe(events)
      }).pipe(Effect.scoped),
    300_000
  )

  it.live(
    "a server that is killed while runs wait, and one that is killed as its probe asks, lose nothing",
    () =>
      Effect.gen(function* () {
        const provider = yield* failingProvider
        const access = yield* freshDatabase
        const start = startMortal(access, undefined, { OPENAI_COMPATIBLE_BASE_URL: provider.url })
        const first = yield* start
        const { projectId } = yield* newProject(first, access)
        const story = storyIn(first, access, projectId)
        const agent = yield* story.post("/agents", reader())
        yield* provider.goAway(unavailable)
        const objects = yield* happen(story, 5)
        yield* waitingOf(story, agent, 5)
        yield* first.kill
        const second = yield* start
        yield* second.dieAt("run.afterClaim", 1)
        yield* outageAges(story, 60)
        yield* second.died
        yield* provider.comeBack
        // Before the third starts: the leases of its own attempts stay.
        yield* ask(access, "update kb.agent_runs set lease_expires_at = now() where status = 'running'")
        const third = storyIn(yield* start, access, projectId)
        yield* outageAges(third, 300)
        const runs = yield* endedOf(third, agent, objects.length)
        expect(runs.map(({ status }) => status)).toEqual(objects.map(() => "completed"))
        expect(provider.requests.filter(({ failed }) => !failed).length).toBe(objects.length)
      }).pipe(Effect.scoped)
  )

  it.live("the time of a run that waits for a sub-agent stands still while that one's provider is away", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* outageStory
      yield* story.post("/agents", reader({ name: "helper", triggerType: "manual", reactionConfig: null }))
      const lead = yield* boss(story, [spawning("helper")], { defaultTimeoutMs: 60_000 })
      yield* provider.goAway(unavailable)
      const run = yield* begin(story, lead)
      const [helper] = yield* eventually(
        Effect.map(story.get(`/runs?parentRunId=${run.id}`), ({ items }) => items),
        (children) => children.some(({ waitingFor }: Json) => waitingFor !== null)
      )
      // An hour passes for every deadline that still counts.
      yield* ask(story.access, "update kb.agent_runs set deadline_at = deadline_at - interval '1 hour'")
      yield* provider.comeBack
      yield* outageAges(story, 60)
      expect(yield* runWhen(story, run, isEnded)).toMatchObject({ status: "completed" })
      expect(yield* story.get(`/runs/${helper.id}`)).toMatchObject({ status: "completed", summary: "Done." })
    }).pipe(Effect.scoped)
  )
})
