/**
 * Opens the next attempt of entries that failed, where their agent's policy says so.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * It happens in the transaction in which the attempt ended, so no attempt is
 * lost with a program that dies. The next one waits for its back-off like any
 * work that waits, and the releaser begins it; what gets none is a dead letter.
 */
import type { EntryId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { Ids } from "../ids.ts"

export const makeNextAttempts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids

  /** Opens the next attempts of entries that have just ended, and takes the mark of a dead letter from those that got one. */
  const openNextAttempts = Effect.fnUntraced(function* (ended: ReadonlyArray<EntryId>) {
    const due = yield* sql<{ id: EntryId }>`
      select entry.id from kb.agent_processing_log entry join kb.agents agent on agent.id = entry.agent_id
      where entry.id = any(${ended}::uuid[]) and entry.attempt < (agent.retry_policy ->> 'maxAttempts')::int
        -- The provider's filter would stop the same answer again.
        and entry.failure_reason is distinct from 'contentFilter'
        and agent.enabled and agent.deleted_at is null and agent.trigger_type = 'reaction'
      order by entry.id`
    if (due.length === 0) return
    const next = yield* Effect.forEach(due, ({ id }) =>
      Effect.map(ids.next, (nextId) => ({ id: nextId, after: id }))
    )
    yield* sql`
      with opened as (
        insert into kb.agent_processing_log (id, project_id, agent_id, entity_type, graph_object_id, object_version, event_type, event_id, occurrence_id,
          attempt, exclusive, due_at, reason)
        select next.id, entry.project_id, entry.agent_id, entry.entity_type, entry.graph_object_id, entry.object_version, entry.event_type,
          entry.event_id, entry.occurrence_id, entry.attempt + 1, false,
          now() + make_interval(secs => (agent.retry_policy ->> 'backoffMs')::float8 * power(2, entry.attempt - 1) / 1000),
          format('Attempt %s of %s: it waits for the back-off of the agent''s retryPolicy.', entry.attempt + 1, agent.retry_policy ->> 'maxAttempts')
        from jsonb_to_recordset(${JSON.stringify(next)}::text::jsonb) as next(id uuid, after uuid)
        join kb.agent_processing_log entry on entry.id = next.after
        join kb.agents agent on agent.id = entry.agent_id
        on conflict do nothing returning id
      )
      update kb.agent_processing_log entry set dead_lettered_at = null
      from jsonb_to_recordset(${JSON.stringify(next)}::text::jsonb) as next(id uuid, after uuid), opened
      where opened.id = next.id and entry.id = next.after`
  })

  return { openNextAttempts }
})
