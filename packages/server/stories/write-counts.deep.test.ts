/**
 * Rows written and transactions committed for a write, a reaction and a kept step.
 *
 * Counts and not times, so they hold on any machine: a feature that adds a row or a transaction to the hot path turns
 * this red, and whoever adds it decides whether it is worth that.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { Json, Story } from "../testing/platform.ts"
import { countedWrites } from "../testing/rows-read.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { calling, endedRuns, saying, watcher } from "../testing/story-words.ts"

const times = 40

type Counts = ReadonlyMap<string, number>

/** What each of them wrote between two counts: rows by table, and transactions. */
const between = (before: Counts, after: Counts) => {
  const each = (table: string): number => ((after.get(table) ?? 0) - (before.get(table) ?? 0)) / times
  const rows = [...after.keys()]
    .filter((table) => table !== "transactions")
    .map((table) => [table, Math.round(each(table))] as const)
    .filter(([, count]) => count > 0)
  return { rows: Object.fromEntries(rows.toSorted()), transactions: each("transactions") }
}

const wake = (story: Story, type: string) =>
  Effect.forEach(
    Array.from({ length: times }),
    (_, number) => story.post("/objects", { type, properties: { number } }),
    { concurrency: 16 }
  )

const woken = (story: Story, agent: Json, type: string, runs: number) =>
  Effect.andThen(wake(story, type), endedRuns(story, agent, runs))

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Writes on the hot path", () => {
    it.effect("rows and transactions of a write, a reaction and a step", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const reactingTo = (type: string, model: object) =>
          story.post(
            "/agents",
            watcher({ name: type, model, reactionConfig: { objectTypes: [type], events: ["created"] } })
          )
        const sayer = yield* reactingTo("Said", saying("Seen."))
        const caller = yield* reactingTo(
          "Called",
          calling({ tool: "search_objects", arguments: { type: "Person" } })
        )
        yield* wake(story, "Plain")
        yield* woken(story, sayer, "Said", times)
        yield* woken(story, caller, "Called", times)
        const start = yield* countedWrites(story)
        yield* wake(story, "Plain")
        const written = yield* countedWrites(story)
        yield* woken(story, sayer, "Said", 2 * times)
        const said = yield* countedWrites(story)
        yield* woken(story, caller, "Called", 2 * times)
        const called = yield* countedWrites(story)
        const [write, reaction, step] = [
          between(start, written),
          between(written, said),
          between(said, called)
        ]
        expect(write.rows).toEqual({ graph_events: 2, graph_object_versions: 1, graph_objects: 1 })
        const ofReaction = {
          ...write.rows,
          agent_processing_log: 3,
          agent_runs: 3,
          budgets: 4,
          context_events: 7,
          contexts: 3,
          model_calls: 1,
          passages: 2
        }
        expect(reaction.rows).toEqual(ofReaction)
        expect(step.rows).toEqual({
          ...ofReaction,
          agent_runs: 4,
          budgets: 7,
          context_events: 10,
          contexts: 5,
          model_calls: 2,
          tool_calls: 1
        })
        // One by one a write takes one, a reaction four and a step two more.
        expect(write.transactions).toBeLessThan(1)
        expect(reaction.transactions).toBeLessThan(2.5)
        expect(step.transactions - reaction.transactions).toBeLessThan(2)
      })
    )
  })
})
