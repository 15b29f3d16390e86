/**
 * Two servers of a database restore the same dump at the same moment: each makes a project, one after the other.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { linesOf } from "../testing/import-words.ts"
import { holding } from "../testing/owner-rows.ts"
import { type Doors, eventually, type Json, newStory, startServer, storyIn } from "../testing/platform.ts"
import { askAsServer } from "../testing/server-connections.ts"

const dumped = Effect.gen(function* () {
  const story = yield* newStory
  for (const key of ["ada", "bob"]) yield* story.post("/objects", { type: "Person", key, properties: {} })
  const { body } = yield* story.send("GET", `/api/projects/${story.projectId}/dump`)
  return String(body)
})

/** The last line of a restore's answer. */
const restored = ({ send }: Doors, dump: string): Effect.Effect<Json> =>
  Effect.map(send("POST", "/api/restore", dump, { "content-type": "application/octet-stream" }), (answer) =>
    linesOf(answer).at(-1)
  )

/** Waits until so many restores stand still: before a row that is locked, or because it is another one's turn. */
const whenStanding = (access: PostgresAccess, count: number) =>
  eventually(
    askAsServer(
      access,
      `select 1 from pg_stat_activity where datname = current_database()
        and (wait_event_type = 'Lock' or (state = 'idle in transaction' and query like '%tropism.restores%'))`
    ),
    (standing) => standing.length >= count
  )

describe("Requirement: a restore answers with a project, also while another server restores the same dump", () => {
  it.live("the first has the ids of the dump, and the second ids of its own", () =>
    Effect.gen(function* () {
      const dump = yield* dumped
      const access = yield* freshDatabase
      const servers = [yield* startServer(access), yield* startServer(access)] as const
      // Whoever has written objects stands before their events.
      const owner = yield* holding(access, "lock table kb.graph_events in share mode")
      const restores = yield* Effect.forEach(servers, (server) => Effect.forkScoped(restored(server, dump)))
      yield* whenStanding(access, 2)
      yield* owner.query("rollback")
      const answers = yield* Effect.forEach(restores, (each) => Fiber.join(each))
      expect(answers).toMatchObject([{ type: "finished" }, { type: "finished" }])
      expect(answers.map(({ keptIds }) => keptIds).toSorted()).toEqual([false, true])
      for (const { project } of answers) {
        const { items } = yield* storyIn(servers[0], access, project.id).get("/objects")
        expect(items.map(({ key }: Json) => key).toSorted()).toEqual(["ada", "bob"])
      }
    })
  )
})
