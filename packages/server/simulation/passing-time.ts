/**
 * Time that passes for the database: leases run out, entries grow old, schedules fall due.
 *
 * PostgreSQL's clock is real and a simulation takes less than a second, so time
 * is made to pass through the owner's access. A lease that nobody renewed for
 * half a minute of the simulation's own time has run out, whoever held it.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { dispatchLimits, runLimits } from "../src/limits.ts"

/** Lets every lease of the project run out at once. */
export const lapseLeases = Effect.fnUntraced(function* (projectId: ProjectId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    update kb.agent_runs set lease_expires_at = now() - interval '1 second'
    where project_id = ${projectId} and status = 'running' and lease_expires_at > now()`
})

/** Lets the leases of a worker run out that died long enough ago. */
export const lapseLeasesOf = Effect.fnUntraced(function* (workerId: string) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    update kb.agent_runs set lease_expires_at = now() - interval '1 second'
    where worker_id = ${workerId} and status = 'running' and lease_expires_at > now()`
})

/** Lets far more than five minutes pass in which nobody did anything. */
export const passNight = Effect.fnUntraced(function* (projectId: ProjectId) {
  const sql = yield* SqlClient.SqlClient
  const age = `${2 * runLimits.stuckAfterMs} milliseconds`
  yield* sql`
    update kb.agent_runs set lease_expires_at = least(lease_expires_at, now()) - ${age}::interval
    where project_id = ${projectId} and status = 'running'`
  yield* sql`
    update kb.agent_processing_log set started_at = started_at - ${age}::interval
    where project_id = ${projectId} and status = 'processing'`
})

/** Lets every schedule of the project fall due. */
export const reachSchedules = Effect.fnUntraced(function* (projectId: ProjectId) {
  const sql = yield* SqlClient.SqlClient
  yield* sql`
    update kb.agent_schedules set next_fire_at = least(next_fire_at, now() - interval '1 second')
    where project_id = ${projectId}`
})

interface Lease {
  readonly value: string
  readonly sinceMs: number
}

/** Watches the leases for ever and lets those run out that nobody renews. */
export const watchLeases = Effect.fnUntraced(function* (projectId: ProjectId) {
  const sql = yield* SqlClient.SqlClient
  const seen = new Map<string, Lease>()
  while (true) {
    yield* Effect.sleep(runLimits.heartbeatIntervalMs)
    const nowMs = yield* Clock.currentTimeMillis
    const rows = yield* sql<{ id: string; value: string }>`
      select id, lease_expires_at::text as value from kb.agent_runs
      where project_id = ${projectId} and status = 'running' and lease_expires_at > now() order by id`
    for (const { id, value } of rows) {
      const lease = seen.get(id)
      if (lease?.value !== value) seen.set(id, { value, sinceMs: nowMs })
      else if (nowMs - lease.sinceMs >= runLimits.leaseMs) {
        yield* sql`
          update kb.agent_runs set lease_expires_at = now() - interval '1 second'
          where id = ${id} and status = 'running' and lease_expires_at::text = ${value}`
      }
    }
  }
})

/** Waits until the project has nothing left to do; false when that takes too long. */
export const drained = Effect.fnUntraced(function* (projectId: ProjectId, withinMs: number) {
  const sql = yield* SqlClient.SqlClient
  for (let passedMs = 0; passedMs < withinMs; passedMs += dispatchLimits.sweepIntervalMs) {
    const [row] = yield* sql<{ isOpen: boolean }>`
      select exists (select from kb.graph_events where project_id = ${projectId} and dispatched_at is null)
        or exists (select from kb.agent_runs where project_id = ${projectId} and status in ('queued', 'running')) as is_open`
    if (row?.isOpen === false) return true
    yield* Effect.sleep(dispatchLimits.sweepIntervalMs)
  }
  return false
})
