/**
 * How many requests a server has open at one model: the others wait for their turn, and nothing else waits with them.
 */
import { describe, expect, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { answered, newAssistant } from "../testing/chat-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { heldProvider } from "../testing/held-provider.ts"
import { eventually, type Json, newProject, startServer, type Story } from "../testing/platform.ts"

/** A server that has so many requests open at a model; the answers of the model `slow` are held back. */
const crowded = (limit: number) =>
  Effect.gen(function* () {
    const provider = yield* heldProvider((model) => model === "slow")
    const access = yield* freshDatabase
    const env = ConfigProvider.fromEnv({
      env: { OPENAI_COMPATIBLE_BASE_URL: provider.url, TROPISM_MODEL_CONCURRENCY: `${limit}` }
    })
    const doors = yield* Effect.provide(startServer(access), ConfigProvider.layer(env))
    return { provider, story: yield* newProject(doors, access), another: newProject(doors, access) }
  })

const modelOf = (name: string, settings: Json = {}) => ({ provider: "openai-compatible", name, ...settings })

const asker = (story: Story, name: string, model: Json, overrides: Json = {}) =>
  story.post("/agents", {
    name,
    prompt: `Greet {{ input.input }} for ${name}.`,
    triggerType: "manual",
    executionMode: "execute",
    tools: [],
    model,
    ...overrides
  })

/** So many runs of an agent, one after the other. */
const begin = (story: Story, agent: Json, count: number): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.forEach(Array.from({ length: count }), () =>
    story.post(`/agents/${agent.id}/trigger?wait=false`, { input: "it" })
  )

const ended = (story: Story, runs: ReadonlyArray<Json>): Effect.Effect<ReadonlyArray<Json>> =>
  eventually(
    Effect.forEach(runs, ({ id }) => story.get(`/runs/${id}`)),
    (found) => found.every(({ completedAt }) => completedAt !== null)
  )

/** The requests of the model `slow`, as a scrape finds them. */
const figures = (story: Story) =>
  Effect.map(story.send("GET", "/metrics"), ({ body }) => {
    const of = (name: string) =>
      Number(
        new RegExp(`^tropism_model_${name}\\{provider="openai-compatible",model="slow"\\} (\\d+)$`, "m").exec(
          body
        )?.[1]
      )
    return {
      inFlight: of("requests_in_flight"),
      waiting: of("requests_waiting"),
      limit: of("concurrency_limit")
    }
  })

const crowdOf = (story: Story, inFlight: number, waiting: number) =>
  eventually(figures(story), (seen) => seen.inFlight === inFlight && seen.waiting === waiting, 10_000)

describe("Requests to one model", () => {
  it.live("are as many at once as TROPISM_MODEL_CONCURRENCY says, and the others are shown as waiting", () =>
    Effect.gen(function* () {
      const { another, provider, story } = yield* crowded(2)
      const agent = yield* asker(story, "slow", modelOf("slow"))
      const runs = yield* begin(story, agent, 6)
      expect(yield* crowdOf(story, 2, 4)).toEqual({ inFlight: 2, waiting: 4, limit: 2 })
      const isAboutRequests = ({ check }: Json) => check === "model requests"
      expect((yield* story.get("/health")).findings.find(isAboutRequests)).toMatchObject({
        state: "ok",
        detail: expect.stringMatching(/\b4\b.*\b2\b/)
      })
      expect((yield* (yield* another).get("/health")).findings.find(isAboutRequests)).toBeUndefined()
      for (const left of [4, 2, 0]) {
        yield* eventually(
          Effect.sync(() => provider.open()),
          (open) => open === 2
        )
        yield* provider.answer(2)
        if (left > 0) yield* crowdOf(story, 2, left - 2)
      }
      expect((yield* ended(story, runs)).map(({ status }) => status)).toEqual(runs.map(() => "completed"))
      expect(provider.mostOpen()).toBe(2)
      expect(yield* crowdOf(story, 0, 0)).toEqual({ inFlight: 0, waiting: 0, limit: 2 })
    }).pipe(Effect.scoped)
  )

  it.live("are sent for one project after the other", () =>
    Effect.gen(function* () {
      const { another, provider, story } = yield* crowded(1)
      const other = yield* another
      const many = yield* begin(story, yield* asker(story, "many", modelOf("slow")), 5)
      yield* crowdOf(story, 1, 4)
      const few = yield* begin(other, yield* asker(other, "few", modelOf("slow")), 1)
      yield* crowdOf(story, 1, 5)
      for (let count = 1; count <= 6; count += 1) {
        yield* eventually(
          Effect.sync(() => provider.asked().length),
          (asked) => asked === count
        )
        yield* provider.answer(1)
      }
      yield* ended(story, many)
      yield* ended(other, few)
      expect(provider.asked().findIndex((text) => text.includes("few"))).toBeLessThanOrEqual(2)
    }).pipe(Effect.scoped)
  )

  it.live("of an agent are no more than its model's maxConcurrency, and those of others go on", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* crowded(4)
      const bounded = yield* asker(story, "bounded", modelOf("slow", { maxConcurrency: 1 }))
      const free = yield* asker(story, "free", modelOf("slow"))
      const runs = yield* begin(story, bounded, 3)
      yield* crowdOf(story, 1, 2)
      const others = yield* begin(story, free, 2)
      yield* crowdOf(story, 3, 2)
      yield* eventually(
        Effect.tap(figures(story), () => provider.answer(4)),
        ({ inFlight, waiting }) => inFlight + waiting === 0
      )
      for (const run of yield* ended(story, [...runs, ...others])) expect(run.status).toBe("completed")
      expect((yield* story.get(`/agents/${bounded.id}`)).model).toMatchObject({ maxConcurrency: 1 })
      expect(
        (yield* story.ask("POST", "/agents", {
          name: "none",
          prompt: "Hello",
          triggerType: "manual",
          model: modelOf("slow", { maxConcurrency: 0 })
        })).status
      ).toBe(422)
    }).pipe(Effect.scoped)
  )

  it.live("that wait are never sent once their run is cancelled or its time is up", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* crowded(1)
      yield* begin(story, yield* asker(story, "first", modelOf("slow")), 1)
      yield* crowdOf(story, 1, 0)
      const [cancelled] = yield* begin(story, yield* asker(story, "cancelled", modelOf("slow")), 1)
      yield* crowdOf(story, 1, 1)
      yield* story.post(`/runs/${cancelled.id}/cancel`)
      yield* crowdOf(story, 1, 0)
      const hurried = yield* asker(story, "hurried", modelOf("slow"), { defaultTimeoutMs: 1_000 })
      const [late] = yield* begin(story, hurried, 1)
      yield* crowdOf(story, 1, 1)
      // Its time is up while it waits; what it is asked then waits, too, until the grace is over.
      const log = yield* eventually(
        Effect.map(
          story.get(`/contexts/${late.contextName}/events?limit=100`),
          ({ items }) => items as ReadonlyArray<Json>
        ),
        (items) => items.some(({ type }) => type === "SoftStopEvent")
      )
      expect(log.length).toBeGreaterThan(0)
      yield* story.post(`/runs/${late.id}/cancel`)
      yield* crowdOf(story, 1, 0)
      expect(provider.asked()).toHaveLength(1)
      expect(yield* story.get(`/runs/${cancelled.id}`)).toMatchObject({ status: "cancelled" })
    }).pipe(Effect.scoped)
  )

  it.live("are fewer at once after the provider refused some as too many", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* crowded(4)
      yield* begin(story, yield* asker(story, "slow", modelOf("slow")), 4)
      yield* crowdOf(story, 4, 0)
      yield* provider.refuse
      yield* eventually(figures(story), ({ limit }) => limit === 2)
    }).pipe(Effect.scoped)
  )

  it.live("that are never answered hold up no agent with another model, and no conversation", () =>
    Effect.gen(function* () {
      const { provider, story } = yield* crowded(2)
      const stuck = yield* begin(story, yield* asker(story, "stuck", modelOf("slow")), 6)
      yield* crowdOf(story, 2, 4)
      const others = yield* begin(story, yield* asker(story, "quick", modelOf("fast")), 4)
      const assistant = yield* newAssistant(story, modelOf("fast"), { tools: [] })
      const { response } = yield* answered(story, { agentId: assistant.id, message: "Hello" })
      expect(response).toBe("Done.")
      for (const run of yield* ended(story, others)) expect(run.status).toBe("completed")
      expect(provider.asked()).toHaveLength(2)
      for (const { id } of stuck)
        expect(yield* story.get(`/runs/${id}`)).toMatchObject({ status: "running", completedAt: null })
    }).pipe(Effect.scoped)
  )
})
