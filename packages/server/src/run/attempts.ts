/**
 * The attempts at one event, in their order: what was tried last, and what comes next.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * An attempt that was skipped tried nothing. So of the attempts that are not
 * skipped the last one decides: where it failed or was abandoned it is a dead
 * letter, unless an attempt after it waits or a person cancelled it. Whatever
 * skips an attempt says so in the same statement.
 */
import type { EntryId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"

/** What was tried at the event of an entry, and what may come next. */
export interface Attempts {
  readonly id: EntryId
  /** The number of the next attempt. */
  readonly next: number
  /** The first attempt after the entry that was not skipped; null when the entry is the last of those. */
  readonly triedAs: number | null
  /** How often was tried, up to the entry. */
  readonly tries: number
}

export const makeAttempts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const ofSameEvent = (entry: Statement.Fragment, other: Statement.Fragment) => sql`
    ${other}.agent_id = ${entry}.agent_id and ${other}.graph_object_id = ${entry}.graph_object_id
      and ${other}.object_version = ${entry}.object_version and ${other}.event_type = ${entry}.event_type`

  /** Runs an update of `entry` that skips what waits, lets what failed before it be a dead letter again, and answers how many it skipped. */
  const skipping = Effect.fnUntraced(function* (update: Statement.Fragment) {
    const [row] = yield* sql<{ count: number }>`
      with skipped as (
        ${update} returning entry.agent_id, entry.graph_object_id, entry.object_version, entry.event_type, entry.attempt
      ), given_back as (
        update kb.agent_processing_log entry set dead_lettered_at = now()
        where entry.id = any(array(
          select tried.id from skipped
          cross join lateral (
            select before.id, before.status, before.run_id from kb.agent_processing_log before
            where ${ofSameEvent(sql`skipped`, sql`before`)} and before.attempt < skipped.attempt and before.status <> 'skipped'
            order by before.attempt desc limit 1
          ) tried
          where skipped.attempt > 1 and tried.status in ('failed', 'abandoned')
            and not exists (select 1 from kb.agent_runs run where run.id = tried.run_id and run.cancelled_by is not null)))
      )
      select count(*)::int as count from skipped`
    return row?.count ?? 0
  })

  /** Takes the mark of a dead letter from entries that are tried again, and from those before them. */
  const revive = Effect.fnUntraced(function* (ids: ReadonlyArray<EntryId>) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      update kb.agent_processing_log entry set dead_lettered_at = null
      where entry.dead_lettered_at is not null and entry.id = any(array(
        select before.id from kb.agent_processing_log revived
        join kb.agent_processing_log before on ${ofSameEvent(sql`revived`, sql`before`)} and before.attempt <= revived.attempt
        where revived.project_id = ${projectId} and revived.id = any(${ids}::uuid[])))`
  })

  /** The attempts at the events of entries, by the ids of the entries. */
  const attemptsOf = Effect.fnUntraced(function* (ids: ReadonlyArray<EntryId>) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<Attempts>`
      select entry.id, max(other.attempt) + 1 as next,
        min(other.attempt) filter (where other.attempt > entry.attempt and other.status <> 'skipped') as tried_as,
        entry.attempt - (count(*) filter (where other.attempt < entry.attempt and other.status = 'skipped'))::int as tries
      from kb.agent_processing_log entry
      join kb.agent_processing_log other on ${ofSameEvent(sql`entry`, sql`other`)}
      where entry.project_id = ${projectId} and entry.id = any(${ids}::uuid[]) group by entry.id, entry.attempt`
    return new Map(rows.map((row) => [row.id, row]))
  })

  return { skipping, revive, attemptsOf }
})
