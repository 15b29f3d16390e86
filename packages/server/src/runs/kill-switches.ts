/**
 * The switches that stop every agent of a project, or of the server, and whatever else reaches others by itself.
 *
 * A row is a switch that is on. Row-level security shows a project's transaction
 * its own switch and the server's and nothing else, so `isStopped` is a whole
 * question in one word of a statement that is made anyway. A switch is on from
 * its commit; in a statement after it the runs at work lose their attempt tokens,
 * so none of them can write once `stop` has answered. It is off in the transaction
 * in which what it stopped is queued.
 */
import type { ProjectId, RunId, UserId } from "@tropism/domain/ids"
import type { Stop } from "@tropism/domain/kill-switch"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { poolLimits } from "../database/limits.ts"
import { Notifier } from "../outbox/notifier.ts"

/** The condition, in a project's transaction, that a switch is on. */
export const isStopped = (sql: SqlClient.SqlClient) => sql`exists (select 1 from kb.kill_switches)`

/** Held by a claim until it commits, so that a switch which was turned on meanwhile waits for the runs that it claims. */
export const announceClaim = (sql: SqlClient.SqlClient) =>
  sql`select pg_advisory_xact_lock_shared(hashtextextended('tropism.claims', 0))`

/** Waits for the claims that may not have seen the switches as they are now. */
const awaitClaims = (sql: SqlClient.SqlClient) =>
  sql`select pg_advisory_xact_lock(hashtextextended('tropism.claims', 0))`

export class KillSwitches extends Context.Service<
  KillSwitches,
  {
    /** What stops the agents of this project: its own switch, else the server's. */
    readonly find: Effect.Effect<Stop | undefined, never, ProjectTransaction>
    /** The server's own switch, when it is on. */
    readonly ofServer: Effect.Effect<Stop | undefined>
    /** Turns a switch on, of a project or (null) of the server, and answers when no agent can write any more. */
    readonly stop: (projectId: ProjectId | null, reason: string, by: UserId) => Effect.Effect<void>
    /** Turns a switch off; what it stopped goes on, unless another switch is on. */
    readonly release: (projectId: ProjectId | null) => Effect.Effect<void>
    /** Lets every run follow the switches as they are now, and answers how many had to. */
    readonly follow: Effect.Effect<number>
  }
>()("@tropism/server/run/KillSwitches") {
  static readonly layer = Layer.effect(
    KillSwitches,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const notifier = yield* Notifier

      const newest = (rows: ReadonlyArray<SwitchRow>): Stop | undefined => rows[0] && toStop(rows[0])

      const find = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        return newest(
          yield* sql<SwitchRow>`
            select * from kb.kill_switches where project_id is null or project_id = ${projectId} order by project_id nulls last limit 1`
        )
      }).pipe(orDie)

      const ofServer = sql<SwitchRow>`select * from kb.kill_switches where project_id is null`.pipe(
        Effect.map(newest),
        orDie
      )

      /** In a transaction of the project whose switch it is; the server's belongs to none. It may be broken off for the sake of another. */
      const within = <A, E>(projectId: ProjectId | null, effect: Effect.Effect<A, E>) =>
        projectId === null
          ? sql.withTransaction(effect).pipe(Effect.retry({ times: poolLimits.clashRetries }))
          : database.inProject(projectId, effect)

      /** Lets every run follow in one transaction with what is changed of the switches: between the two a run that was stopped would count nowhere. */
      const followBehind = Effect.fnUntraced(function* <E>(
        projectId: ProjectId | null,
        change: Effect.Effect<unknown, E>
      ) {
        const following = Effect.gen(function* () {
          // The claims first, before any row of a switch or a run: whoever claims holds them while it takes runs.
          yield* awaitClaims(sql)
          yield* change
          return yield* sql<{ id: RunId }>`select id from kb.follow_kill_switches() as id`
        })
        const rows = yield* within(projectId, following)
        for (const { id } of rows) {
          yield* notifier.signal(`run:${id}`)
          yield* notifier.signal(`taken:${id}`)
        }
        if (rows.length > 0) yield* notifier.signal("runs")
        return rows.length
      }, orDie)

      const follow = followBehind(null, Effect.void)

      const stop = Effect.fn("KillSwitches.stop")(function* (
        projectId: ProjectId | null,
        reason: string,
        by: UserId
      ) {
        yield* within(
          projectId,
          sql`
            insert into kb.kill_switches (project_id, reason, stopped_by) values (${projectId}, ${reason}, ${by})
            on conflict (project_id) do update set reason = excluded.reason, stopped_by = excluded.stopped_by, stopped_at = now()`
        )
        yield* follow
        yield* Effect.logWarning("A kill switch was turned on", { projectId, reason, by })
      }, orDie)

      const release = Effect.fn("KillSwitches.release")(function* (projectId: ProjectId | null) {
        yield* followBehind(
          projectId,
          sql`delete from kb.kill_switches where project_id is not distinct from ${projectId}::uuid`
        )
        // What waited meanwhile is due for whoever looks.
        yield* Effect.forEach(
          ["releases", "runs", "schedules", "sources", "deliveries"] as const,
          notifier.signal
        )
        yield* Effect.logWarning("A kill switch was turned off", { projectId })
      }, orDie)

      return KillSwitches.of({ find, ofServer, stop, release, follow })
    })
  )
}

interface SwitchRow {
  readonly projectId: ProjectId | null
  readonly reason: string
  readonly stoppedBy: UserId
  readonly stoppedAt: Date
}

const toStop = (row: SwitchRow): Stop => ({
  scope: row.projectId === null ? "server" : "project",
  reason: row.reason,
  stoppedBy: row.stoppedBy,
  stoppedAt: row.stoppedAt.toISOString()
})
