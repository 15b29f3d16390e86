/**
 * One project's load is not another project's wait.
 *
 * The 20,000 events are put into the outbox by the owner of the database, in one
 * statement, as if they had been committed while no server ran: making them
 * through a door would take longer than the story.
 */
import { describe, expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, type Story } from "../testing/platform.ts"
import { newStoryHere, SharedServer } from "../testing/shared-server.ts"
import { endedRuns, entriesWhen, make, runsOf, saying, silentFor, watcher } from "../testing/story-words.ts"

const backlog = 20_000

/** Commits events of as many objects of their own. */
const commitEvents = (story: Story, count: number) =>
  ask(
    story.access,
    `insert into kb.graph_events (id, project_id, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
      actor_type, actor_id, root_event_id, depth)
    select event.id, $1::uuid, 'graphObject', 'Person', gen_random_uuid(), 1, 'created', '{}', '{"properties": {}}', 'user', 'owner', event.id, 0
    from (select gen_random_uuid() as id from generate_series(1, $2::int)) event`,
    [story.projectId, count]
  )

const undispatched = (story: Story) =>
  Effect.map(
    ask(
      story.access,
      "select count(*)::int from kb.graph_events where project_id = $1 and dispatched_at is null",
      [story.projectId]
    ),
    ([row]) => Number(row?.[0])
  )

/** Makes the n-th event of an idle project, and waits until the run that it wakes has ended. */
const wake = (story: Story, agent: Json, n: number) =>
  Effect.andThen(make(story, "Person"), endedRuns(story, agent, n))

layer(SharedServer.layer, { excludeTestServices: true })((it) => {
  describe("Fairness between projects", () => {
    it.effect("a project whose runs take all hands leaves some to a project that has none at work", () =>
      Effect.gen(function* () {
        const busy = yield* newStoryHere
        const idle = yield* newStoryHere
        const agent = yield* idle.post("/agents", watcher({ model: saying("Seen.") }))
        yield* wake(idle, agent, 1)
        const long = yield* busy.post(
          "/agents",
          watcher({
            model: silentFor(600_000),
            reactionConfig: { objectTypes: ["Person"], events: ["created"], concurrencyStrategy: "parallel" }
          })
        )
        yield* Effect.forEach(Array.from({ length: 24 }), () => make(busy, "Person"), { concurrency: 8 })
        yield* entriesWhen(busy, long, 24, () => true)
        const atWork = Effect.map(
          runsOf(busy, long),
          (runs) => runs.filter((run) => run.status === "running").length
        )
        yield* eventually(atWork, (count) => count >= 12)
        yield* wake(idle, agent, 2)
        expect(yield* atWork).toBeGreaterThanOrEqual(12)
        yield* busy.delete(`/agents/${long.id}`)
        for (const run of yield* runsOf(busy, long)) yield* busy.ask("POST", `/runs/${run.id}/cancel`)
      })
    )

    it.effect("another's single event does not wait for the 20,000 waiting events of one project", () =>
      Effect.gen(function* () {
        const busy = yield* newStoryHere
        const idle = yield* newStoryHere
        const agent = yield* idle.post("/agents", watcher({ model: saying("Seen.") }))
        yield* wake(idle, agent, 1)
        const swamped = yield* busy.post("/agents", watcher({ model: saying("Seen.") }))
        const queueing = yield* busy.post(
          "/agents",
          watcher({
            name: "queueing",
            model: saying("Seen."),
            reactionConfig: {
              objectTypes: ["Person"],
              events: ["created"],
              concurrencyStrategy: "queue",
              maxConcurrency: 4
            }
          })
        )
        yield* commitEvents(busy, backlog)
        yield* make(busy, "Person")
        yield* eventually(undispatched(busy), (count) => count < backlog)
        yield* wake(idle, agent, 2)
        // Most of them still wait when the run of the other is over.
        const left = yield* undispatched(busy)
        expect(left).toBeGreaterThan(backlog / 2)
        // The swamped project is not left behind either.
        for (const { id } of [swamped, queueing])
          yield* eventually(busy.get(`/runs?agentId=${id}&status=completed`), ({ items }) => items.length > 0)
      })
    )
  })
})
