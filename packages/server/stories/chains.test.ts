/**
 * What a chain may use, what it has used, and everything that came of one event.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answering, chainAtRest, chainOf, limitChains, linksOf, rootOf } from "../testing/chain-words.ts"
import { eventually, scripted } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { approve } from "../testing/suggestion-words.ts"
import { calling, entriesOf, isOver, make, runsOf, suggestionsOf, watcher } from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

const unlimited = { maxDepth: 16, maxRuns: 100, maxTokens: null, maxCostUsd: null }

/** A model that thinks for a minute before each of three steps, and makes an object in each of the first two. */
const threeSlowSteps = scripted([
  ...[0, 1].map((step) => ({
    when: `step == ${step}`,
    latencyMs: 60_000,
    say: `Step ${step}.`,
    calls: [{ tool: "create_object", arguments: { type: "Note", properties: { step } } }]
  })),
  { say: "Done.", latencyMs: 60_000 }
])

layer(SharedServer.layer)((it) => {
  describe("Requirement: a project says what its chains may use", () => {
    it.effect(
      "S001-R04 the caps have defaults, are changed one by one and go back to the default by null",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          expect(yield* story.get("/settings")).toEqual({ chainLimits: unlimited })
          const changed = yield* limitChains(story, { maxDepth: 3, maxCostUsd: 0.5 })
          expect(changed).toEqual({ chainLimits: { ...unlimited, maxDepth: 3, maxCostUsd: 0.5 } })
          expect(yield* limitChains(story, { maxTokens: 1_000, maxDepth: null })).toEqual({
            chainLimits: { ...unlimited, maxTokens: 1_000, maxCostUsd: 0.5 }
          })
          expect(yield* story.get("/settings")).toMatchObject({ chainLimits: { maxTokens: 1_000 } })
          expect(yield* story.patch("/settings", { chainLimits: null })).toEqual({ chainLimits: unlimited })
        })
    )

    it.effect("a cap that is none, or above what any project may have, is refused with its place", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const refused = [
          [{ maxDepth: 0 }, "/chainLimits/maxDepth"],
          [{ maxDepth: 101 }, "/chainLimits/maxDepth"],
          [{ maxRuns: 10_001 }, "/chainLimits/maxRuns"],
          [{ maxRuns: 2.5 }, "/chainLimits/maxRuns"],
          [{ maxTokens: -1 }, "/chainLimits/maxTokens"],
          [{ maxCostUsd: "much" }, "/chainLimits/maxCostUsd"],
          [{ maxMoney: 1 }, "/chainLimits/maxMoney"]
        ] as const
        for (const [chainLimits, pointer] of refused) {
          const answer = yield* story.ask("PATCH", "/settings", { chainLimits })
          expect([chainLimits, answer.status, answer.body.errors?.[0]?.pointer]).toEqual([
            chainLimits,
            422,
            pointer
          ])
        }
        expect(yield* story.get("/settings")).toEqual({ chainLimits: unlimited })
      })
    )
  })

  describe("Requirement: a chain can be read from its root", () => {
    it.effect(
      "S001-K01 events, runs and tasks stand in the order in which they came to be, page by page",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const writer = yield* answering(story, "Person", ["Note"])
          const suggester = yield* answering(story, "Note", ["Label"], { executionMode: "suggest" })
          const root = yield* rootOf(story, yield* make(story, "Person"))
          const [task] = yield* suggestionsOf(story, 1)
          yield* make(story, "Person", { name: "another root" })
          yield* suggestionsOf(story, 2)
          yield* approve(story, task)
          yield* chainAtRest(story, root)
          const chain = yield* chainOf(story, root)
          expect(chain.items.map((link: { type: string }) => link.type)).toEqual([
            "event",
            "run",
            "event",
            "run",
            "task",
            "event"
          ])
          expect(linksOf(chain, "event").map((event) => [event.objectType, event.depth])).toEqual([
            ["Person", 0],
            ["Note", 1],
            ["Label", 2]
          ])
          expect(linksOf(chain, "run").map((run) => [run.agentName, run.depth])).toEqual([
            [writer.name, 0],
            [suggester.name, 1]
          ])
          expect(linksOf(chain, "task")).toMatchObject([{ id: task.id, status: "completed", depth: 2 }])
          expect(chain).toMatchObject({
            rootEventId: root,
            rootEvent: { id: root, objectType: "Person" },
            counts: { events: 3, runs: 2, tasks: 1, refusals: 0 },
            use: { depth: 2, runs: 2 },
            limits: unlimited,
            stops: [],
            nextCursor: null
          })

          const paged: Array<unknown> = []
          let cursor: string | null = ""
          while (cursor !== null) {
            const page: { items: ReadonlyArray<unknown>; nextCursor: string | null } = yield* story.get(
              `/chains/${root}?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`
            )
            expect(page.items.length).toBeLessThanOrEqual(2)
            paged.push(...page.items)
            cursor = page.nextCursor
          }
          expect(paged).toEqual(chain.items)
        })
    )

    it.effect("a run that somebody starts by hand is a root too, and an event inside a chain is none", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const byHand = yield* story.post(
          "/agents",
          watcher({
            name: "by-hand",
            triggerType: "manual",
            reactionConfig: null,
            model: calling({ tool: "create_object", arguments: { type: "Person", properties: {} } })
          })
        )
        yield* answering(story, "Person", ["Note"])
        const run = yield* story.post(`/agents/${byHand.id}/trigger`)
        yield* eventually(story.get("/events"), (page) => page.items.length === 2)
        const chain = yield* chainAtRest(story, run.id)
        expect(chain).toMatchObject({ rootEvent: null, use: { depth: 2, runs: 1 }, counts: { runs: 2 } })
        const [ofPerson] = linksOf(chain, "event")
        const inside = yield* story.ask("GET", `/chains/${ofPerson.id}`)
        expect([inside.status, inside.body.detail]).toEqual([404, expect.stringContaining(run.id)])
        const elsewhere = yield* newStoryHere
        expect((yield* elsewhere.ask("GET", `/chains/${run.id}`)).status).toBe(404)
      })
    )
  })

  describe("Requirement: a run for events of several roots belongs to each of their chains", () => {
    it.effect("S001-K01 the chain of each root shows it and counts it as it is used", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* answering(story, "Person", ["Note"], {
          reactionConfig: { objectTypes: ["Person"], events: ["created"], batchSize: 3, maxWaitMs: 60_000 }
        })
        const people = yield* Effect.forEach([1, 2, 3], () => make(story, "Person"))
        const roots = yield* Effect.forEach(people, (person) => rootOf(story, person))
        const [run] = yield* eventually(runsOf(story, agent), ([first]) => first?.status === "completed")
        expect(run.trigger.events).toHaveLength(3)
        for (const root of roots) {
          const chain = yield* chainAtRest(story, root)
          expect(linksOf(chain, "run").map(({ id }) => id)).toEqual([run.id])
          expect(chain).toMatchObject({ use: { runs: 1 }, counts: { runs: 1 } })
        }
        const shown = yield* Effect.forEach(roots, (root) => chainOf(story, root))
        expect(shown.map((chain) => chain.counts.events).toSorted()).toEqual([1, 1, 2])
      })
    )

    it.effect("a run that a person asks for begins a chain of its own and is not of its event's", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const root = yield* rootOf(story, yield* make(story, "Person"))
        yield* eventually(chainOf(story, root), ({ rootEvent }) => rootEvent.position !== null)
        const agent = yield* answering(story, "Person", [])
        const { queued } = yield* story.post(`/agents/${agent.id}/batch-trigger`, { eventIds: [root] })
        const [{ runId }] = queued
        expect(yield* chainOf(story, root)).toMatchObject({ use: { runs: 0 }, counts: { runs: 0 } })
        expect(yield* chainOf(story, runId)).toMatchObject({ use: { runs: 1 }, counts: { runs: 1 } })
      })
    )

    it.effect(
      "S001-K01 what a person asked for is tried again in its own chain, however deep its event lies",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* limitChains(story, { maxDepth: 1 })
          yield* answering(story, "Person", ["Note"])
          const agent = yield* answering(story, "Note", [], {
            model: { provider: "anthropic", name: "none" },
            retryPolicy: { maxAttempts: 2, backoffMs: 0 }
          })
          const root = yield* rootOf(story, yield* make(story, "Person"))
          const { items } = yield* eventually(story.get("/events"), (page) =>
            page.items.some((event: { refusals: ReadonlyArray<unknown> }) => event.refusals.length === 1)
          )
          const { id } = items.find(({ objectType }: { objectType: string }) => objectType === "Note")
          const { queued } = yield* story.post(`/agents/${agent.id}/batch-trigger`, { eventIds: [id] })
          const [{ runId }] = queued
          const entries = yield* asTimePasses(
            1_000,
            entriesOf(story, agent),
            (found) => found.length === 2 && found.every(isOver)
          )
          expect(yield* chainOf(story, root)).toMatchObject({ use: { runs: 1 }, counts: { runs: 1 } })
          const asked = yield* chainOf(story, runId)
          expect(asked).toMatchObject({ use: { runs: 2 }, counts: { runs: 2 } })
          expect(linksOf(asked, "run")).toMatchObject([
            { id: runId, depth: 0 },
            { id: entries[1].runId, depth: 0 }
          ])
          yield* story.post(`/agents/${agent.id}/processing-log/${entries[1].id}/retry`)
          expect(yield* chainOf(story, runId)).toMatchObject({ use: { runs: 3 }, counts: { runs: 3 } })
        })
    )
  })

  describe("Requirement: tokens and money of a chain have a cap", () => {
    it.effect("each model request adds its tokens, and its money where the model has a price", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const price = { inputPerMillion: 3, outputPerMillion: 15 }
        const script = calling({ tool: "create_object", arguments: { type: "Note", properties: {} } })
        yield* answering(story, "Person", [], { model: { ...script, price } })
        yield* answering(story, "Note", [])
        const root = yield* rootOf(story, yield* make(story, "Person"))
        const noteRuns = eventually(chainAtRest(story, root), (chain) => linksOf(chain, "run").length === 2)
        const { items, use } = yield* noteRuns
        const [priced, free] = linksOf({ items }, "run")
        expect(priced.stepCount).toBe(2)
        expect(use).toMatchObject({
          inputTokens: priced.usage.inputTokens + free.usage.inputTokens,
          outputTokens: priced.usage.outputTokens + free.usage.outputTokens
        })
        expect(use.costUsd).toBeCloseTo(
          (priced.usage.inputTokens * 3 + priced.usage.outputTokens * 15) / 1_000_000,
          6
        )
      })
    )

    it.effect("S001-R04 a chain that has spent its tokens wakes nobody and asks no model any more", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxTokens: 1 })
        const writer = yield* answering(story, "Person", ["Note"])
        const reader = yield* answering(story, "Note", [])
        const root = yield* rootOf(story, yield* make(story, "Person"))
        const chain = yield* eventually(chainAtRest(story, root), ({ counts }) => counts.events === 2)
        const spent = chain.use.inputTokens + chain.use.outputTokens
        const reason = naming(spent, 1)
        expect(linksOf(chain, "event")[1].refusals).toEqual([
          { agentId: reader.id, rule: "chainTokens", reason }
        ])
        expect(chain.stops).toMatchObject([{ agentId: reader.id, rule: "chainTokens", reason }])
        const [run] = yield* runsOf(story, writer)
        expect(run).toMatchObject({
          status: "paused",
          pauseReason: "budget",
          stepCount: 1,
          errorMessage: reason
        })
        expect(yield* entriesOf(story, writer)).toMatchObject([{ status: "completed", reason }])
        expect(yield* entriesOf(story, reader)).toEqual([])
        const log = yield* story.get(`/runs/${run.id}/events`)
        expect(log.items.slice(-2)).toMatchObject([
          { type: "AgentTurnInterruptedEvent", reason: "budget" },
          { type: "SessionEndedEvent" }
        ])
      })
    )

    it.effect("S001-R04 a chain that has spent its money stops as well, and no price is no money", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxCostUsd: 0.000_001 })
        const free = yield* answering(story, "Person", ["Note"])
        const script = calling({ tool: "create_object", arguments: { type: "Label", properties: {} } })
        const priced = yield* answering(story, "Note", [], {
          model: { ...script, price: { inputPerMillion: 1, outputPerMillion: 1 } }
        })
        const reader = yield* answering(story, "Label", [])
        const root = yield* rootOf(story, yield* make(story, "Person"))
        const chain = yield* eventually(chainAtRest(story, root), ({ counts }) => counts.events === 3)
        expect(yield* runsOf(story, free)).toMatchObject([{ status: "completed" }])
        expect(yield* runsOf(story, priced)).toMatchObject([{ status: "paused", pauseReason: "budget" }])
        expect(chain.stops).toMatchObject([
          { agentId: reader.id, rule: "chainCost", reason: expect.stringContaining("of $0.000001") }
        ])
      })
    )

    it.effect("runs that are at work at once overrun a budget by one request each, and no more", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxTokens: 1 })
        const agents = yield* Effect.forEach([1, 2, 3, 4], (n) =>
          story.post("/agents", watcher({ name: `slow-${n}`, model: threeSlowSteps }))
        )
        yield* make(story, "Person")
        for (const agent of agents) {
          yield* eventually(runsOf(story, agent), (runs) => runs[0]?.status === "running")
        }
        const runs = yield* asTimePasses(
          20_000,
          Effect.map(
            Effect.forEach(agents, (agent) => runsOf(story, agent)),
            (found) => found.flat()
          ),
          (found) => found.every((run) => run.status === "paused")
        )
        expect(runs.map((run) => [run.pauseReason, run.stepCount])).toEqual(agents.map(() => ["budget", 1]))
      })
    )

    it.effect("a cap that is set while a run is at work holds from its next model request", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const agent = yield* story.post("/agents", watcher({ model: threeSlowSteps }))
        yield* make(story, "Person")
        yield* asTimePasses(20_000, runsOf(story, agent), ([run]) => run?.stepCount === 1)
        yield* limitChains(story, { maxTokens: 0 })
        const [run] = yield* asTimePasses(20_000, runsOf(story, agent), ([run]) => run?.status !== "running")
        expect(run).toMatchObject({
          status: "paused",
          pauseReason: "budget",
          summary: expect.stringMatching(/^Step [01]\.$/)
        })
        expect(run.stepCount).toBeLessThan(3)
        yield* limitChains(story, { maxTokens: null })
        yield* make(story, "Person")
        yield* asTimePasses(20_000, endedRunsOrNone(story, agent), (ended) => ended.length === 1)
      })
    )
  })
})

const endedRunsOrNone = (story: Parameters<typeof runsOf>[0], agent: Parameters<typeof runsOf>[1]) =>
  Effect.map(runsOf(story, agent), (runs) => runs.filter((run) => run.status === "completed"))
