/**
 * A database of which nothing is heard any more on the connections that are open, as behind a machine that lost its power:
 * the server goes on by new ones, and whoever asked meanwhile is told to come again.
 */
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { connect } from "../src/database/postgres-access.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { eventually, newProject, startServer } from "../testing/platform.ts"
import { expectProblem } from "../testing/problem-words.ts"
import { acquireSilentWay } from "../testing/silent-way.ts"

it.live(
  "a server whose connections fall silent goes on by new ones, those for wake-ups too",
  () =>
    Effect.gen(function* () {
      const access = yield* freshDatabase
      const way = yield* acquireSilentWay(access)
      const story = yield* newProject(yield* startServer({ ...way.access, embedded: false }), access)
      const write = story.ask("POST", "/objects", { type: "Thing", properties: {} })
      yield* eventually(write, ({ status }) => status === 201)
      const judge = yield* connect(access.ownerUrl)
      const listeners = judge
        .queryValues("select pid from pg_stat_activity where application_name = 'tropism wake-ups'")
        .pipe(
          Effect.map((rows) => rows.map(([pid]) => pid)),
          Effect.orDie
        )
      const [before] = yield* eventually(listeners, ({ length }) => length === 1)

      yield* way.fallSilent
      const refused = yield* write
      expectProblem(refused, 503)
      expect(refused.headers.get("retry-after")).toBe("1")
      yield* eventually(write, ({ status }) => status === 201)
      yield* eventually(story.send("GET", "/ready"), ({ status }) => status === 200)
      yield* eventually(listeners, (pids) => pids.some((pid) => pid !== before))
    }).pipe(Effect.scoped),
  120_000
)
