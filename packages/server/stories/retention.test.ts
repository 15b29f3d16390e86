/**
 * The log does not grow for ever, and forgetting that something was done never does it again.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { runLimits } from "../src/limits.ts"
import { ask } from "../testing/owner-rows.ts"
import { startServer, type Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  endedRuns,
  entriesOf,
  entriesWhen,
  feedOf,
  make,
  runsOf,
  saying,
  silentFor,
  watcher
} from "../testing/story-words.ts"

/** Lets an agent's entries be as old as so many days. */
const age = (story: Story, ids: ReadonlyArray<string>, days: number) =>
  ask(
    story.access,
    `update kb.agent_processing_log set created_at = created_at - make_interval(days => $2::int),
       started_at = started_at - make_interval(days => $2::int), completed_at = completed_at - make_interval(days => $2::int),
       dead_lettered_at = dead_lettered_at - make_interval(days => $2::int) where id = any($1::uuid[])`,
    [ids, days]
  )

layer(SharedServer.layer)((it) => {
  describe("Risk: database bloat from the processing log", () => {
    it.effect(
      "S001-K02 ended entries older than 30 days are removed by themselves; younger and live ones stay",
      () =>
        Effect.gen(function* () {
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher({ model: saying("Done.") }))
          for (let count = 0; count < 3; count += 1) yield* make(story, "Person")
          const [first, second, third] = yield* entriesWhen(story, agent, 3)
          const busy = yield* story.post("/agents", watcher({ name: "busy", model: silentFor(600_000) }))
          yield* make(story, "Person")
          const [live] = yield* entriesWhen(story, busy, 1, (entry) => entry.status === "processing")
          yield* entriesWhen(story, agent, 4)
          // A run that rests keeps its entry in processing, however much time passes.
          const stopped = { stopped: true, reason: "A holiday" }
          yield* story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, stopped)
          yield* age(story, [first.id, second.id], 31)
          yield* age(story, [third.id], 29)
          yield* age(story, [live.id], 31)
          const left = yield* asTimePasses(
            runLimits.forgetIntervalMs,
            entriesOf(story, agent),
            (found) => found.length === 2
          )
          expect(left.map((entry) => entry.id)).toContain(third.id)
          expect((yield* entriesOf(story, busy)).map((entry) => entry.id)).toEqual([live.id])
          // The runs, which tell what was done, stay.
          expect(yield* runsOf(story, agent)).toHaveLength(4)
        })
    )

    it.effect(
      "S001-K02 what was forgotten is not handled again, neither by this server nor by one that starts",
      () =>
        Effect.gen(function* () {
          const { access } = yield* SharedServer
          const story = yield* newStoryHere
          const agent = yield* story.post("/agents", watcher())
          yield* make(story, "Person")
          const [entry] = yield* entriesWhen(story, agent, 1)
          yield* age(story, [entry.id], 31)
          yield* asTimePasses(
            runLimits.forgetIntervalMs,
            entriesOf(story, agent),
            (found) => found.length === 0
          )
          yield* startServer(access)
          // A later event passes through both dispatchers; the forgotten one does not come again.
          const next = yield* make(story, "Person")
          yield* feedOf(story, 2)
          const entries = yield* entriesWhen(story, agent, 1)
          expect(entries.map((found) => found.graphObjectId)).toEqual([next.id])
          expect(yield* endedRuns(story, agent, 2)).toHaveLength(2)
        })
    )
  })
})
