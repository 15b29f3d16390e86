/**
 * An agent that is put to work on an object in the moment in which what waits for the same object gets its run.
 */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { freshDatabase } from "../testing/fresh-database.ts"
import { keptLines } from "../testing/kept-lines.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { eventually, newProject, startServer } from "../testing/platform.ts"
import { whenWaiting } from "../testing/server-connections.ts"
import { endedRuns, entriesOf, make, runsOf, watcher } from "../testing/story-words.ts"

it.live("S001-R24 what waits goes on waiting, behind the run at work, and nothing breaks", () =>
  Effect.scoped(
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const { logger, said } = keptLines()
      const story = yield* newProject(yield* startServer(access, [logger]), access)
      const rule = (debounceMs: number) => ({
        reactionConfig: {
          objectTypes: ["Person"],
          events: ["created", "updated"],
          concurrencyStrategy: "queue",
          debounceMs
        }
      })
      const agent = yield* story.post("/agents", watcher(rule(0)))
      const eve = yield* make(story, "Person", { age: 1 })
      yield* endedRuns(story, agent, 1)
      yield* story.patch(`/agents/${agent.id}`, rule(60_000))
      yield* story.patch(`/objects/${eve.id}`, { properties: { age: 2 } })
      const later = Effect.map(entriesOf(story, agent), (entries) =>
        entries.find(({ objectVersion }) => objectVersion === 2)
      )
      const waits = yield* eventually(later, (entry) => entry?.status === "pending")

      // Somebody whose transaction is still open has put the agent to work on the object.
      const atWork = (status: string) =>
        `update kb.agent_processing_log set status = '${status}' where agent_id = '${agent.id}' and object_version = 1`
      const other = yield* holding(access, atWork("processing"))
      yield* story.patch(`/agents/${agent.id}`, rule(1))
      yield* ask(access, "update kb.agent_processing_log set due_at = now() where id = $1", [waits?.id])
      yield* whenWaiting(access, 1)
      yield* other.query("commit")
      yield* eventually(later, (entry) => entry?.status === "pending" && entry.reason !== waits?.reason)
      expect(yield* runsOf(story, agent)).toHaveLength(1)

      yield* ask(access, atWork("completed"))
      yield* ask(access, "select kb.let_go_parked()")
      yield* endedRuns(story, agent, 2)
      expect(said).toEqual([])
    })
  )
)
