/**
 * Agents that wake each other, or themselves, come to an end, whichever way the loop goes.
 */
import { describe, expect, it as alone, layer } from "@effect/vitest"
import { Effect } from "effect"
import { answering, chainAtRest, chainOf, limitChains, linksOf, rootOf } from "../testing/chain-words.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { eventually, newProject, scripted, startServer } from "../testing/platform.ts"
import { whileServing } from "../testing/restarts.ts"
import { clerk, passUntil, periodsBefore, runDueAt } from "../testing/schedule-words.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { approve } from "../testing/suggestion-words.ts"
import {
  calling,
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  isOver,
  make,
  runsOf,
  suggestionsOf,
  watcher
} from "../testing/story-words.ts"
import { naming } from "../testing/naming.ts"

/** What a cap says of a chain that it ended. */
const stoppedBy = (rule: string, reached: number) => ({
  rule,
  reason: naming(reached)
})

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Risk: infinite loops from agent changes", () => {
    it.effect("S001-K01 A → B → A is allowed, and ends at the depth that the project sets", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxDepth: 5 })
        const ping = yield* answering(story, "Ping", ["Pong"])
        const pong = yield* answering(story, "Pong", ["Ping"])
        const root = yield* rootOf(story, yield* make(story, "Ping"))
        const chain = yield* eventually(chainAtRest(story, root), ({ stops }) => stops.length > 0)
        expect(chain).toMatchObject({ use: { depth: 5, runs: 5 }, counts: { events: 6, refusals: 1 } })
        expect(linksOf(chain, "run").map((run) => run.agentName)).toEqual(
          [ping, pong, ping, pong, ping].map((agent) => agent.name)
        )
        expect(chain.stops).toEqual([
          {
            eventId: linksOf(chain, "event").at(-1).id,
            agentId: pong.id,
            ...stoppedBy("chainDepth", 5)
          }
        ])
      })
    )

    it.effect("S001-K01 a bomb in which each event makes two ends at the cap of runs, exactly", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxRuns: 7 })
        const bomb = yield* answering(story, "Node", ["Node", "Node"])
        const root = yield* rootOf(story, yield* make(story, "Node"))
        const chain = yield* eventually(chainAtRest(story, root), ({ counts }) => counts.events === 15)
        // Seven woke it, each made two; the other eight say why they did not.
        expect(chain).toMatchObject({ use: { runs: 7 }, counts: { events: 15, runs: 7, refusals: 8 } })
        expect(chain.stops).toHaveLength(8)
        for (const stop of chain.stops)
          expect(stop).toMatchObject({ agentId: bomb.id, ...stoppedBy("chainRuns", 7) })
        expect(yield* runsOf(story, bomb)).toHaveLength(7)
        expect(yield* entriesOf(story, bomb)).toHaveLength(7)
      })
    )

    it.effect("S001-K01 an agent that deletes an object and makes it again ends as well", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxDepth: 6 })
        const phoenix = yield* story.post(
          "/agents",
          watcher({
            name: "phoenix",
            reactionConfig: {
              objectTypes: ["Bird"],
              events: ["created", "deleted"],
              ignoreSelfTriggered: false,
              // With skip it is still at work on the bird that it has just deleted.
              concurrencyStrategy: "parallel"
            },
            model: scripted([
              {
                when: 'step == 0 and input.event.type == "created"',
                calls: [{ tool: "delete_object", arguments: { objectId: "{{ input.object.id }}" } }]
              },
              {
                when: "step == 0",
                calls: [
                  { tool: "create_object", arguments: { type: "Bird", key: "phoenix", properties: {} } }
                ]
              },
              { say: "Done." }
            ])
          })
        )
        const bird = yield* story.post("/objects", { type: "Bird", key: "phoenix" })
        const chain = yield* eventually(
          chainAtRest(story, yield* rootOf(story, bird)),
          ({ stops }) => stops.length > 0
        )
        expect(linksOf(chain, "event").map((event) => event.type)).toEqual([
          "created",
          "deleted",
          "created",
          "deleted",
          "created",
          "deleted",
          "created"
        ])
        expect(chain.stops).toMatchObject([{ agentId: phoenix.id, ...stoppedBy("chainDepth", 6) }])
      })
    )

    it.effect("S001-K01 a loop that a schedule begins ends at the caps of each fire", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxDepth: 3 })
        const model = calling({ tool: "create_object", arguments: { type: "Tick", properties: {} } })
        const clock = yield* story.post("/agents", clerk("*/5 * * * *", { model }))
        yield* answering(story, "Tick", ["Tock"])
        yield* answering(story, "Tock", ["Tick"])
        for (const periods of [2, 1]) {
          const due = periodsBefore(clock.nextFireAt, periods, 300_000)
          yield* passUntil(story.access, clock, due)
          const fired = yield* runDueAt(story, clock, due)
          const chain = yield* eventually(chainAtRest(story, fired.id), ({ stops }) => stops.length > 0)
          expect(chain).toMatchObject({
            rootEvent: null,
            use: { depth: 3, runs: 2 },
            counts: { events: 3, runs: 3 },
            stops: [stoppedBy("chainDepth", 3)]
          })
        }
      })
    )

    it.effect("S001-K01 a loop through suggestions goes on with each approval, and ends at the cap", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxDepth: 4 })
        yield* answering(story, "Ask", ["Answer"], { executionMode: "suggest" })
        yield* answering(story, "Answer", ["Ask"], { executionMode: "suggest" })
        const root = yield* rootOf(story, yield* make(story, "Ask"))
        for (const _ of Array.from({ length: 4 })) {
          const [task] = yield* suggestionsOf(story, 1)
          expect((yield* approve(story, task)).status).toBe(200)
        }
        const chain = yield* eventually(chainAtRest(story, root), ({ stops }) => stops.length > 0)
        expect(linksOf(chain, "task").map((task) => [task.status, task.depth])).toEqual([
          ["completed", 1],
          ["completed", 2],
          ["completed", 3],
          ["completed", 4]
        ])
        expect(chain.stops).toMatchObject([stoppedBy("chainDepth", 4)])
        expect((yield* story.get("/tasks?status=pending")).items).toEqual([])
      })
    )

    it.effect("S001-K01 a retry takes a place in the chain, and at the cap there is none", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxRuns: 2 })
        const agent = yield* story.post(
          "/agents",
          watcher({ model: { provider: "anthropic", name: "none" } })
        )
        yield* make(story, "Person")
        const retry = (entry: { readonly id: string }) =>
          story.ask("POST", `/agents/${agent.id}/processing-log/${entry.id}/retry`)
        const [first] = yield* entriesWhen(story, agent, 1)
        expect((yield* retry(first)).status).toBe(201)
        const [, second] = yield* entriesWhen(story, agent, 2)
        expect(yield* retry(second)).toMatchObject({
          status: 409,
          body: { detail: naming(2) }
        })
        expect(yield* runsOf(story, agent)).toHaveLength(2)
      })
    )

    it.effect(
      "S001-K01 a loop through batches ends: a run belongs to the deepest chain among its events",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* limitChains(story, { maxDepth: 3 })
          const batches = (heard: string) => ({
            reactionConfig: {
              objectTypes: [heard],
              events: ["created"],
              batchSize: 2,
              maxWaitMs: 60_000,
              ignoreSelfTriggered: false
            }
          })
          yield* answering(story, "Seed", ["Seed", "Seed"], batches("Seed"))
          yield* make(story, "Seed")
          yield* make(story, "Seed")
          const feed = yield* eventually(story.get("/events?limit=200"), ({ items }) =>
            items.some((event: { refusals: ReadonlyArray<unknown> }) => event.refusals.length > 0)
          )
          const stopped = feed.items.find(
            (event: { refusals: ReadonlyArray<unknown> }) => event.refusals.length > 0
          )
          const chain = yield* chainAtRest(story, stopped.rootEventId)
          expect(chain.use.depth).toBe(3)
          expect(chain.stops).toMatchObject([stoppedBy("chainDepth", 3), stoppedBy("chainDepth", 3)])
        })
    )

    it.effect(
      "S001-K01 tries that a policy repeats take places too, and end at the cap with the reason",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* limitChains(story, { maxRuns: 2 })
          const agent = yield* story.post(
            "/agents",
            watcher({
              model: { provider: "anthropic", name: "none" },
              retryPolicy: { maxAttempts: 5, backoffMs: 0 }
            })
          )
          const person = yield* make(story, "Person")
          const root = yield* rootOf(story, person)
          const chain = yield* eventually(chainAtRest(story, root), ({ stops }) => stops.length > 0)
          expect(chain).toMatchObject({ use: { runs: 2 }, counts: { runs: 2 } })
          expect(chain.stops).toMatchObject([{ agentId: agent.id, ...stoppedBy("chainRuns", 2) }])
          const entries = yield* entriesWhen(story, agent, 3)
          expect(entries.map((entry) => [entry.attempt, entry.status])).toEqual([
            [1, "failed"],
            [2, "failed"],
            [3, "skipped"]
          ])
          expect(yield* story.get(`/agents/${agent.id}/explain?eventId=${root}`)).toMatchObject({
            outcome: "refused",
            rule: "chainRuns"
          })
        })
    )

    it.effect(
      "S001-K01 each item of a batch that a person triggers begins a chain, and each chain ends",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          yield* limitChains(story, { maxDepth: 3 })
          const pings = [yield* make(story, "Ping"), yield* make(story, "Ping")]
          yield* feedOf(story, 2)
          const ping = yield* answering(story, "Ping", ["Pong"])
          yield* answering(story, "Pong", ["Ping"])
          const { queued } = yield* story.post(`/agents/${ping.id}/batch-trigger`, {
            objectIds: pings.map((object) => object.id)
          })
          expect(queued).toHaveLength(2)
          for (const { runId } of queued) {
            const chain = yield* eventually(chainAtRest(story, runId), ({ stops }) => stops.length > 0)
            expect(chain).toMatchObject({
              rootEvent: null,
              use: { depth: 3 },
              counts: { events: 3, runs: 3 },
              stops: [stoppedBy("chainDepth", 3)]
            })
          }
        })
    )

    it.effect("a chain that is stopped stops no other", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxRuns: 1 })
        const agent = yield* answering(story, "Node", ["Node"])
        const roots = yield* Effect.forEach([1, 2, 3], () =>
          Effect.flatMap(make(story, "Node"), (node) => rootOf(story, node))
        )
        for (const root of roots) {
          const chain = yield* eventually(chainAtRest(story, root), ({ stops }) => stops.length > 0)
          expect(chain).toMatchObject({ use: { runs: 1 }, counts: { events: 2 } })
        }
        expect(yield* endedRuns(story, agent, 3)).toHaveLength(3)
      })
    )
  })

  describe("Goal: no infinite loop arises, whatever else happens", () => {
    it.effect("S001-R04 many events of one chain at once take no more places than there are", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* limitChains(story, { maxRuns: 4 })
        const readers = yield* Effect.forEach([1, 2, 3], (n) =>
          answering(story, "Leaf", [], { name: `reader-${n}` })
        )
        const leaves = Array.from({ length: 6 }, () => "Leaf")
        yield* answering(story, "Root", leaves)
        const root = yield* rootOf(story, yield* make(story, "Root"))
        yield* feedOf(story, 7)
        const chain = yield* chainAtRest(story, root)
        // One run for the root, so three are left for eighteen that would begin.
        expect(chain).toMatchObject({ use: { runs: 4 }, counts: { runs: 4, refusals: 15 } })
        const runs = yield* Effect.forEach(readers, (reader) => runsOf(story, reader))
        expect(runs.flat()).toHaveLength(3)
      })
    )
  })
})

describe("Goal: no infinite loop arises, whatever else happens", () => {
  alone.live(
    "S001-R04 two servers that dispatch and release at once take no more places than there are",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const access = yield* freshDatabase
          const story = yield* newProject(yield* startServer(access), access)
          yield* startServer(access)
          yield* limitChains(story, { maxRuns: 7 })
          const heard = { objectTypes: ["Leaf"], events: ["created"] }
          // Half of the readers are woken by a dispatcher, the others by a releaser.
          const readers = yield* Effect.forEach([1, 2, 3, 4], (n) =>
            answering(story, "Leaf", [], {
              name: `reader-${n}`,
              reactionConfig: n % 2 === 0 ? heard : { ...heard, maxConcurrency: 1 }
            })
          )
          yield* answering(
            story,
            "Root",
            Array.from({ length: 10 }, () => "Leaf")
          )
          const root = yield* rootOf(story, yield* make(story, "Root"))
          const entries = Effect.map(
            Effect.forEach(readers, (reader) => entriesOf(story, reader)),
            (found) => found.flat()
          )
          yield* feedOf(story, 11)
          yield* eventually(entries, (found) => found.every(isOver))
          const chain = yield* eventually(chainAtRest(story, root), ({ counts }) => counts.events === 11)
          // One run for the root, so six are left for forty that would begin.
          expect(chain).toMatchObject({ use: { runs: 7 }, counts: { runs: 7, refusals: 34 } })
        })
      )
  )

  alone.live("S001-R04 what a chain has used is there after a restart", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const before = yield* Effect.scoped(
          Effect.gen(function* () {
            const story = yield* newProject(yield* startServer(access), access)
            yield* limitChains(story, { maxRuns: 2 })
            yield* answering(story, "Ask", ["Answer"], { executionMode: "suggest" })
            yield* answering(story, "Answer", ["Ask"], { executionMode: "suggest" })
            const root = yield* rootOf(story, yield* make(story, "Ask"))
            const [task] = yield* suggestionsOf(story, 1)
            yield* chainAtRest(story, root)
            return { projectId: story.projectId, root, task, use: (yield* chainOf(story, root)).use }
          })
        )
        expect(before.use.runs).toBe(1)
        const after = yield* whileServing(access, before.projectId, (story) =>
          Effect.gen(function* () {
            expect((yield* chainOf(story, before.root)).use).toEqual(before.use)
            yield* approve(story, before.task)
            const [second] = yield* suggestionsOf(story, 1)
            yield* approve(story, second)
            return yield* eventually(chainAtRest(story, before.root), ({ stops }) => stops.length > 0)
          })
        )
        expect(after).toMatchObject({
          use: { depth: 2, runs: 2 },
          stops: [stoppedBy("chainRuns", 2)]
        })
        expect(after.use.inputTokens).toBeGreaterThan(before.use.inputTokens)
      })
    )
  )
})
