/**
 * Time that passes: leases run out, entries grow old, schedules fall due, and at the end everything is done.
 *
 * A leap is time in which nobody came to do anything, as when a whole machine
 * stood still: every heartbeat is late. Time that only passes gives everybody
 * their turn in between, so that only the dead miss their heartbeats.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { outboxLimits, runLimits } from "../src/limits.ts"
import type { WorldClock } from "./world-clock.ts"

/** Long enough for a lease to run out. */
export const leaseLapseMs = runLimits.leaseMs + 1_000

/** Far longer than an entry may look stuck. */
export const nightMs = 2 * runLimits.stuckAfterMs

/** Lets time pass in which the living have their turns. */
export const pass = Effect.fnUntraced(function* (clock: WorldClock, ms: number) {
  const step = runLimits.heartbeatIntervalMs - 1_000
  for (let left = ms; left > 0; left -= step) {
    clock.leap(Math.min(step, left))
    yield* Effect.sleep(1)
  }
})

/** Looks that are taken before time is made to pass faster. */
const patientLooks = 3

/** Waits until the project has nothing left to do; false when that takes too long. */
export const drained = Effect.fnUntraced(function* (
  clock: WorldClock,
  projectId: ProjectId,
  mostLooks: number,
  /** The end of the cursor of every source that has been told all, where there are any. */
  toldAll?: string
) {
  const sql = yield* SqlClient.SqlClient
  for (let look = 1; look <= mostLooks; look++) {
    const [row] = yield* sql<{ isOpen: boolean }>`
      select exists (select from kb.graph_events where project_id = ${projectId} and dispatched_at is null)
        or exists (select from kb.agent_runs where project_id = ${projectId} and (status in ('queued', 'running')
          or status = 'paused' and pause_reason in ('question', 'subAgents')))
        or exists (select from kb.mcp_event_sources where project_id = ${projectId} and due_at is not null
          and coalesce(cursor, '') not like '%' || ${toldAll ?? ""})
        or exists (select from kb.event_subscriptions subscription join kb.feeds feed on feed.project_id = subscription.project_id
          where subscription.project_id = ${projectId} and subscription.position < feed.last_position)
        or exists (select from kb.backtests where project_id = ${projectId} and status in ('queued', 'running'))
        or exists (select from kb.projects_with_due_waits() due where due = ${projectId})
        or exists (select from kb.agent_processing_log where project_id = ${projectId} and status in ('pending', 'processing')) as is_open`
    if (row?.isOpen === false) return true
    yield* Effect.sleep(outboxLimits.lookIntervalMs)
    if (look % patientLooks === 0) yield* pass(clock, leaseLapseMs)
  }
  return false
})
