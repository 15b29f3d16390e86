/**
 * What becomes of what a server is at work on when it leaves.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { freeAddress } from "../testing/cluster-servers.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { eventSource } from "../testing/mcp-event-source.ts"
import { receiver, subscribing } from "../testing/mcp-receiver.ts"
import { ask } from "../testing/owner-rows.ts"
import { eventually, newProject, startServer, type Story, storyIn, storyKeys } from "../testing/platform.ts"
import { addSource, listener } from "../testing/source-words.ts"
import { entriesWhen, make, runsOf, silentFor, watcher } from "../testing/story-words.ts"

/** Keeps for how many runs there was a worker each time a server told the others that it is gone. */
const leavings = [
  `create table kb.story_leavings (held int not null)`,
  `create function kb.story_leaves() returns trigger language plpgsql security definer as $$ begin
    insert into kb.story_leavings select count(*) from kb.agent_runs where attempt_token is not null; return old; end $$`,
  `create trigger story_leaves before delete on kb_cluster.tropism_runners for each row execute function kb.story_leaves()`,
  `create trigger story_leaves after update on kb_cluster.workers for each row
    when (new.seen_at = '-infinity') execute function kb.story_leaves()`
]

describe("A run whose server leaves", () => {
  it.live("is handed back before the other servers of the cluster can miss its worker", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = { ...(yield* freshDatabase), embedded: false }
        for (const statement of leavings) yield* ask(access, statement)
        const leaving = yield* Scope.make()
        const start = Effect.flatMap(freeAddress, (at) =>
          startServer(access, [], undefined, undefined, storyKeys, at)
        )
        const story = yield* newProject(yield* Scope.provide(start, leaving), access)
        const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000) }))
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, ({ status }) => status === "processing")
        yield* Scope.close(leaving, Exit.void)
        expect(yield* ask(access, "select held from kb.story_leavings")).toEqual([[0], [0]])
        const here = storyIn(yield* start, access, story.projectId)
        const [run] = yield* eventually(runsOf(here, agent), ([found]) => found.attempt > 0)
        expect([run.status, run.attempt]).toEqual(["running", 1])
      })
    )
  )

  it.live("has one attempt less, also where a kill switch stops it before another server takes it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = yield* freshDatabase
        const leaving = yield* Scope.make()
        const story = yield* newProject(yield* Scope.provide(startServer(access), leaving), access)
        const agent = yield* story.post("/agents", watcher({ model: silentFor(600_000) }))
        yield* make(story, "Person")
        yield* entriesWhen(story, agent, 1, ({ status }) => status === "processing")
        yield* Scope.close(leaving, Exit.void)
        const attempts = ask(access, "select status, attempt from kb.agent_runs where project_id = $1", [
          story.projectId
        ])
        expect(yield* attempts).toEqual([["running", 0]])
        yield* ask(access, "insert into kb.kill_switches (reason, stopped_by) values ('A moment', 'ada')")

        const here = storyIn(yield* startServer(access), access, story.projectId)
        yield* eventually(runsOf(here, agent), ([run]) => run.status === "paused")
        expect(yield* attempts).toEqual([["paused", 0]])
        yield* here.send("PUT", "/api/kill-switch", { stopped: false })
        const [run] = yield* eventually(runsOf(here, agent), ([found]) => found.status === "running")
        expect(run.attempt).toBe(1)
      })
    )
  )
})

/** A server that leaves, and what it holds in a table when it has left. */
const leavesAt = Effect.fnUntraced(function* (
  table: string,
  waits: (
    story: Story
  ) => Effect.Effect<{ readonly isAsked: (times: number) => Effect.Effect<unknown> }, unknown, Scope.Scope>
) {
  const access = yield* freshDatabase
  const leaving = yield* Scope.make()
  const story = yield* newProject(yield* Scope.provide(startServer(access), leaving), access)
  const { isAsked } = yield* waits(story)
  yield* isAsked(1)
  const claimed = ask(access, `select claimed_until > now() from kb.${table}`)
  expect(yield* claimed).toEqual([[true]])
  yield* Scope.close(leaving, Exit.void)
  expect(yield* claimed).toEqual([[null]])
  yield* startServer(access)
  yield* isAsked(2)
})

describe("A question to a foreign server whose asker leaves", () => {
  it.live("is asked by the next server at once", () =>
    Effect.scoped(
      leavesAt(
        "mcp_event_sources",
        Effect.fnUntraced(function* (story) {
          const source = yield* eventSource()
          source.hold()
          yield* addSource(story, source.url)
          yield* story.post("/agents", listener())
          const asked = Effect.sync(() => source.asked.length)
          return { isAsked: (times: number) => eventually(asked, (count) => count === times) }
        })
      )
    )
  )
})

describe("A delivery of an event whose server leaves", () => {
  it.live("is done by the next server at once, under the same id", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const hook = yield* receiver()
        yield* leavesAt(
          "event_subscriptions",
          Effect.fnUntraced(function* (story) {
            yield* subscribing(story, hook.url)
            yield* hook.hold
            yield* story.post("/objects", { type: "Thing", key: "1" })
            return { isAsked: hook.until }
          })
        )
        const [first, again] = hook.events().map(({ body }) => body.eventId)
        expect(again).toBe(first)
      })
    )
  )
})
