/**
 * Polls for due work, once for all loops, and notifies the loops that have some.
 *
 * Loops act on notifications, and one may be lost: a server dies after its commit, a message is dropped, a round fails. So each server
 * queries its rows every second, in one statement for all loops. The result is only the loops' names: each loop reads its due rows itself.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie } from "../database/database.ts"
import { outboxLimits, runLimits } from "../limits.ts"
import { survive, type Topic, Notifier } from "../outbox/notifier.ts"
import { tellBack } from "../outbox/outages.ts"
import { noteSweep } from "../telemetry/metrics.ts"

/** Queries for due work by loop; each matches the first query of that loop's round. */
const dueWork = {
  events: `from kb.projects_with_events()`,
  releases: `from kb.projects_with_waiting_entries() where due_at <= clock_timestamp()`,
  runs: `from kb.projects_with_queued_runs() union all select from kb.projects_with_lapsed_runs()`,
  schedules: `from kb.projects_with_due_schedules()`,
  sources: `from kb.projects_with_due_sources()`,
  backtests: `from kb.projects_with_backtests()`,
  deliveries: `from kb.projects_with_due_deliveries()`,
  waits: `from kb.projects_with_due_waits()`,
  providers: `from kb.routes_to_wake(${runLimits.providerWaitMaxMs / 1_000})`
} satisfies Partial<Record<Topic, string>>

const question = Object.entries(dueWork)
  .map(([topic, rows]) => `select '${topic}' as topic where exists (select ${rows})`)
  .join(" union all ")

export class WorkPoller extends Context.Service<
  WorkPoller,
  {
    /** Polls endlessly. */
    readonly run: Effect.Effect<never>
  }
>()("@tropism/server/cluster/WorkPoller") {
  static readonly layer = Layer.effect(
    WorkPoller,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const notifier = yield* Notifier

      const look = Effect.gen(function* () {
        const due = yield* orDie(sql.unsafe<{ topic: string }>(question))
        yield* tellBack
        yield* notifier.hear(due.map(({ topic }) => topic))
        yield* noteSweep("The lookout", yield* Clock.currentTimeMillis)
      })

      return WorkPoller.of({
        run: survive("WorkPoller", look, undefined).pipe(
          Effect.andThen(Effect.sleep(outboxLimits.lookIntervalMs)),
          Effect.forever,
          Effect.withSpan("WorkPoller")
        )
      })
    })
  )
}
