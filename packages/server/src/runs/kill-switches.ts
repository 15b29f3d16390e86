/**
 * Manages the switches that stop every agent, and every delivery to the outside, of a project or of the server.
 *
 * A row is a switch that is on. Row-level security shows a project's transaction only its own switch and the server's, so `isStopped` needs
 * no filter inside another statement. A switch takes effect at its commit; the next statement removes the attempt tokens of running runs,
 * so none of them can write once `stop` has returned. Turning a switch off queues what it stopped in the same transaction.
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

/** Every claim holds this lock until its commit; a switch turned on meanwhile waits for the runs that are being claimed. */
export const announceClaim = (sql: SqlClient.SqlClient) =>
  sql`select pg_advisory_xact_lock_shared(hashtextextended('tropism.claims', 0))`

/** Waits for claims that may not have seen the current switches. */
const awaitClaims = (sql: SqlClient.SqlClient) =>
  sql`select pg_advisory_xact_lock(hashtextextended('tropism.claims', 0))`

export class KillSwitches extends Context.Service<
  KillSwitches,
  {
    /** Returns the switch that stops this project's agents: its own, otherwise the server's. */
    readonly find: Effect.Effect<Stop | undefined, never, ProjectTransaction>
    /** Returns the server's own switch when it is on. */
    readonly ofServer: Effect.Effect<Stop | undefined>
    /** Turns on a switch of a project or (null) of the server and returns when no agent can write any more. */
    readonly stop: (projectId: ProjectId | null, reason: string, by: UserId) => Effect.Effect<void>
    /** Turns a switch off; what it stopped resumes unless another switch is on. */
    readonly release: (projectId: ProjectId | null) => Effect.Effect<void>
    /** Applies the current switches to every run and returns the number of runs changed. */
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

      /**
       * Runs in a transaction of the switch's project; the server's switch belongs to none. PostgreSQL may choose it as a deadlock victim.
       */
      const within = <A, E>(projectId: ProjectId | null, effect: Effect.Effect<A, E>) =>
        projectId === null
          ? sql.withTransaction(effect).pipe(Effect.retry({ times: poolLimits.clashRetries }))
          : database.inProject(projectId, effect)

      /**
       * Changes a switch and applies it to every run in one transaction; between two transactions a stopped run would be counted nowhere.
       */
      const followBehind = Effect.fnUntraced(function* <E>(
        projectId: ProjectId | null,
        change: Effect.Effect<unknown, E>
      ) {
        const following = Effect.gen(function* () {
          // Wait for claims before locking any row of a switch or a run: a claim holds this lock while it locks runs.
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
        // Notify every poller that stopped work is due again.
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
