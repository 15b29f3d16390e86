/**
 * Leases: one statement keeps those of all runs at work, and none of them waits for another's row.
 */
import { expect, layer } from "@effect/vitest"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Database } from "../src/database/database.ts"
import { type Beat, Runs } from "../src/runs/run-store.ts"
import { holding, ask } from "../testing/owner-rows.ts"
import { eventually, type Story } from "../testing/platform.ts"
import { unserved } from "../testing/restarts.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { make, runsOf, silentFor, watcher } from "../testing/story-words.ts"

const secondMs = 1_000

/** Runs at work whose model does not answer, by their ids. */
const atWork = Effect.fnUntraced(function* (story: Story, count: number) {
  const agent = yield* story.post("/agents", watcher({ model: silentFor(600 * secondMs) }))
  for (let made = 0; made < count; made += 1) yield* make(story, "Person")
  const runs = yield* eventually(
    runsOf(story, agent),
    (found) => found.filter(({ status }) => status === "running").length === count
  )
  return runs.map(({ id }): string => id)
})

/** Ends the leases of a project in five seconds: a beat is seen by a later end. */
const shorten = (story: Story) =>
  ask(
    story.access,
    "update kb.agent_runs set lease_expires_at = now() + interval '5 seconds' where project_id = $1 and status = 'running'",
    [story.projectId]
  )

/** The runs whose lease a beat of their first attempt has extended since. */
const extended = (story: Story) =>
  Effect.map(
    ask(
      story.access,
      "select id from kb.agent_runs where project_id = $1 and attempt = 1 and lease_expires_at > now() + interval '10 seconds' order by id",
      [story.projectId]
    ),
    (rows) => rows.map(([id]) => id)
  )

layer(SharedServer.layer)((it) => {
  it.effect(
    "all of a project's are extended, but that of a row which somebody holds: its own is extended after that",
    () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ids = (yield* atWork(story, 6)).toSorted()
        const [held = "", ...others] = ids
        yield* shorten(story)
        const holder = yield* holding(
          story.access,
          `select 1 from kb.agent_runs where id = '${held}' for update`
        )
        expect(
          yield* asTimePasses(secondMs, extended(story), ({ length }) => length >= others.length)
        ).toEqual(others)
        yield* Effect.orDie(holder.query("rollback"))
        expect(yield* asTimePasses(secondMs, extended(story), ({ length }) => length === ids.length)).toEqual(
          ids
        )
      })
  )

  it.effect(
    "one that another attempt has ends this attempt at the next beat, and those of the others go on",
    () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        const ids = (yield* atWork(story, 4)).toSorted()
        const [lost = "", ...others] = ids
        yield* shorten(story)
        yield* ask(
          story.access,
          "update kb.agent_runs set attempt_token = gen_random_uuid(), lease_expires_at = now() + interval '1 second' where id = $1",
          [lost]
        )
        expect(
          yield* asTimePasses(secondMs, extended(story), ({ length }) => length >= others.length)
        ).toEqual(others)
        // Its lease runs out: nobody beats for it, and this server takes it over.
        const run = yield* asTimePasses(secondMs, story.get(`/runs/${lost}`), ({ attempt }) => attempt === 2)
        expect(run.status).toBe("running")
      })
  )

  it.effect("of runs of which nothing came for different times are extended together", () =>
    Effect.gen(function* () {
      const story = yield* newStoryHere
      yield* atWork(story, 3)
      const rows = yield* ask(
        story.access,
        "select id, attempt_token from kb.agent_runs where project_id = $1 order by id",
        [story.projectId]
      )
      const beats = rows.map(([id, attemptToken], index) => ({
        run: { id, attemptToken } as Beat["run"],
        quietMs: [0, 10_000, 1_500.5][index] ?? 0
      }))
      const extend = Effect.gen(function* () {
        const runs = yield* Runs
        return yield* (yield* Database).inProject(story.projectId as ProjectId, runs.heartbeat(beats, false))
      })
      const outcomes = yield* unserved(story.access, extend)
      expect([...outcomes.values()]).toEqual(["extended", "extended", "extended"])
    })
  )
})
