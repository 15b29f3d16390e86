/**
 * Every step of an entry that the lifecycle names happens, and no other does.
 */
import { describe, expect, layer } from "@effect/vitest"
import { entryTransitions } from "@tropism/domain/processing"
import { Effect } from "effect"
import { ask } from "../testing/owner-rows.ts"
import { eventually, type Json, slots, type Story } from "../testing/platform.ts"
import { asTimePasses, newStoryHere, SharedServer } from "../testing/shared-server.ts"
import {
  entriesOf,
  entriesWhen,
  feedOf,
  isOver,
  make,
  saying,
  silentFor,
  watcher
} from "../testing/story-words.ts"

/** Lets the database note every change of an entry's status, whoever makes it. */
const watchSteps = (story: Story) =>
  Effect.forEach(
    [
      "create table kb.seen_steps (step text not null)",
      `create function kb.see_step() returns trigger language plpgsql security definer as $$ begin
         if tg_op = 'UPDATE' and (old.status <> new.status or old.started_at is not null and new.status = 'processing') then
           insert into kb.seen_steps values (old.status || ' → ' || new.status);
         end if; return new; end $$`,
      "create trigger see_step after update on kb.agent_processing_log for each row execute function kb.see_step()"
    ],
    (statement) => ask(story.access, statement)
  )

const seenSteps = (story: Story): Effect.Effect<ReadonlyArray<unknown>> =>
  Effect.map(ask(story.access, "select distinct step from kb.seen_steps order by step"), (rows) =>
    rows.flat()
  )

layer(SharedServer.layer)((it) => {
  describe("Decision: processing log for idempotency", () => {
    it.effect("S001-R18 an entry takes the steps of its lifecycle and no others", () =>
      Effect.gen(function* () {
        const story = yield* newStoryHere
        yield* watchSteps(story)
        const agent = yield* story.post("/agents", watcher({ name: "holds", model: silentFor(600_000) }))
        yield* make(story, "Person")
        const [held] = yield* entriesWhen(story, agent, 1, (entry) => entry.status === "processing")
        const giveToDead = (attempt: number) =>
          ask(
            story.access,
            `update kb.agent_runs set attempt_token = gen_random_uuid(), attempt = $2, lease_expires_at = now() - interval '1 second' where id = $1`,
            [held.runId, attempt]
          )
        // Taken over by another worker, and then given up.
        yield* giveToDead(1)
        yield* asTimePasses(1_000, story.get(`/runs/${held.runId}`), (run: Json) => run.attempt === 2)
        yield* giveToDead(3)
        yield* asTimePasses(1_000, entriesOf(story, agent), ([entry]) => entry.status === "abandoned")
        yield* story.patch(`/agents/${agent.id}`, { enabled: false })

        // Completed, and failed.
        const done = yield* story.post("/agents", watcher({ name: "done", model: saying("Done.") }))
        const fails = yield* story.post(
          "/agents",
          watcher({ name: "fails", model: { provider: "anthropic", name: "none" } })
        )
        yield* make(story, "Person")
        for (const one of [done, fails]) yield* entriesWhen(story, one, 1)

        // At rest because of a kill switch, and cancelled.
        yield* story.patch(`/agents/${fails.id}`, { enabled: false })
        yield* story.patch(`/agents/${done.id}`, { model: silentFor(600_000) })
        yield* make(story, "Person")
        const [, queued] = yield* eventually(
          entriesOf(story, done),
          (found) => found[1]?.status === "processing"
        )
        const turn = (stopped: boolean) =>
          story.send("PUT", `/api/projects/${story.projectId}/kill-switch`, { stopped, reason: "Hold" })
        yield* turn(true)
        yield* story.post(`/runs/${queued.runId}/cancel`)

        // Waiting for the switch when its agent is disabled.
        yield* make(story, "Person")
        yield* feedOf(story, 4)
        yield* story.patch(`/agents/${done.id}`, { enabled: false })
        yield* turn(false)
        yield* asTimePasses(
          1_000,
          entriesOf(story, done),
          (found) => found.length === 3 && found.every(isOver)
        )

        // Cancelled in the queue: there is one more than the server works on at once.
        const cancelled = yield* story.post(
          "/agents",
          watcher({ name: "cancelled", model: silentFor(600_000) })
        )
        const people = slots + 1
        yield* Effect.forEach(Array.from({ length: people }), () => make(story, "Person"))
        const entries = yield* eventually(
          entriesOf(story, cancelled),
          (found) =>
            found.length === people &&
            found.some((entry) => entry.status === "pending") &&
            found.some((entry) => entry.status === "processing")
        )
        const waiting = entries.findLast((entry) => entry.status === "pending")
        yield* story.post(`/runs/${waiting.runId}/cancel`)
        yield* story.patch(`/agents/${cancelled.id}`, { enabled: false })
        yield* Effect.forEach(yield* entriesOf(story, cancelled), (entry) =>
          isOver(entry) ? Effect.void : story.ask("POST", `/runs/${entry.runId}/cancel`)
        )
        const table = Object.entries(entryTransitions).flatMap(([from, tos]) =>
          tos.map((to) => `${from} → ${to}`)
        )
        expect(yield* seenSteps(story)).toEqual(table.toSorted())
      })
    )
  })
})
