/**
 * What must happen now and then, on one server at a time.
 *
 * Flow: everything on the stairs below **cluster**
 *
 * A sweep takes an advisory lock for one transaction; a server that finds it
 * taken does nothing, because another is at it. Sweeps are safe to run twice, so
 * the lock saves work and guards nothing.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { share } from "../outbox/wake-ups.ts"
import { Endings } from "../run/endings.ts"

export class Sweeps extends Context.Service<
  Sweeps,
  {
    /** Sweeps for ever, at their intervals. */
    readonly run: Effect.Effect<never>
    /** Abandons processing entries that nobody works on; answers how many (S000-R19, R20). */
    readonly abandonStuck: Effect.Effect<number>
  }
>()("@tropism/server/cluster/Sweeps") {
  static readonly layer = Layer.effect(
    Sweeps,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const endings = yield* Endings

      /** Runs an effect unless another server is doing the same. */
      const alone = <A>(name: string, effect: Effect.Effect<A>, otherwise: A) =>
        orDie(
          sql.withTransaction(
            Effect.gen(function* () {
              const [row] = yield* sql<{
                taken: boolean
              }>`select pg_try_advisory_xact_lock(hashtextextended(${name}, 0)) as taken`
              return row?.taken === true ? yield* effect : otherwise
            })
          )
        )

      const stuck = Effect.gen(function* () {
        const projects = yield* orDie(
          sql<{
            projectId: ProjectId
          }>`select project_id from kb.projects_with_stuck_entries(${runLimits.stuckAfterMs / 1_000}::float8) as project_id`
        )
        const counts = yield* Effect.forEach(projects, ({ projectId }) =>
          share("Stuck detector", projectId, database.inProject(projectId, endings.abandonStuck))
        )
        return counts.reduce((sum, count) => sum + count, 0)
      })

      const abandonStuck = alone("tropism.stuck", stuck, 0)

      const detect = Effect.tap(abandonStuck, (count) =>
        count === 0
          ? Effect.void
          : Effect.logWarning(`${count} processing entries were stuck and are abandoned now`)
      ).pipe(
        Effect.catchCause((cause) => Effect.logError("The stuck detector failed and will try again", cause)),
        Effect.andThen(Effect.sleep(runLimits.stuckIntervalMs)),
        Effect.forever
      )

      return Sweeps.of({ run: detect, abandonStuck })
    })
  )
}
