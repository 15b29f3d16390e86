/**
 * Finds a cause whose work may be taken back, and what of it is still going on.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * A run's work is also that of all runs below it. What an approved suggestion
 * changed is the work of the run that suggested it. Reads the records of later
 * stages and imports none of their code.
 */
import type { GraphEventId } from "@tropism/domain/ids"
import type { UndoCause } from "@tropism/domain/undo"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { objectNamed } from "../graph/object-names.ts"
import { onlyRow, ProjectTransaction } from "../database/database.ts"

/** A cause that is there. */
export interface FoundCause {
  readonly title: string
  /** The chain in which the undo is shown. */
  readonly rootEventId: GraphEventId | null
}

export const makeUndoCauses = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** `causing (id)`: the runs of a cause, as a part of a `with recursive`. */
  const causing = Effect.fnUntraced(function* (cause: UndoCause) {
    const { projectId } = yield* ProjectTransaction
    const first =
      cause.type === "run"
        ? sql`id = ${cause.runId}`
        : cause.type === "agentVersion"
          ? sql`agent_id = ${cause.agentId} and agent_version = ${cause.version}`
          : sql`root_event_id = ${cause.rootEventId}`
    return sql`causing as (
      select id from kb.agent_runs where project_id = ${projectId} and ${first}
      union
      select child.id from causing join kb.agent_runs child on child.parent_run_id = causing.id
    )`
  })

  const find = Effect.fnUntraced(function* (cause: UndoCause) {
    const { projectId } = yield* ProjectTransaction
    const ofProject = sql`project_id = ${projectId}`
    const rows = yield* cause.type === "run"
      ? sql<FoundCause>`
          select 'Undo a run of ' || agent.name as title, run.root_event_id from kb.agent_runs run join kb.agents agent on agent.id = run.agent_id
          where run.id = ${cause.runId} and run.${ofProject}`
      : cause.type === "agentVersion"
        ? sql<FoundCause>`
            select 'Undo ' || agent.name || ' version ' || version.version as title, null::uuid as root_event_id
            from kb.agent_versions version join kb.agents agent on agent.id = version.agent_id
            where version.agent_id = ${cause.agentId} and version.version = ${cause.version}::int and agent.${ofProject}`
        : sql<FoundCause>`
            select 'Undo the chain of ' || first.what as title, ${cause.rootEventId}::uuid as root_event_id from (
              select event.object_type || ' ' || coalesce(entity.subject ->> 'name', '…' || right(event.entity_id::text, 8)) || ' ' || event.type as what
              from kb.graph_events event
              left join lateral (
                select ${objectNamed(sql, sql`event.project_id`, sql`event.entity_id`)} as subject where event.entity_type = 'graphObject'
              ) entity on true
              where event.id = ${cause.rootEventId} and event.root_event_id = event.id and event.${ofProject}
              union all
              select 'a run of ' || agent.name from kb.agent_runs run join kb.agents agent on agent.id = run.agent_id
              where run.id = ${cause.rootEventId} and run.root_event_id = run.id and run.${ofProject}
            ) first limit 1`
    return rows[0]
  })

  /** How many runs of a cause may still write, and one of them. */
  const atWork = Effect.fnUntraced(function* (cause: UndoCause) {
    return yield* Effect.flatMap(
      sql<{ readonly count: number; readonly runId: string | null }>`
        with recursive ${yield* causing(cause)}
        select count(*)::int as count, min(run.id::text) as run_id from causing join kb.agent_runs run on run.id = causing.id
        where run.status in ('queued', 'running')`,
      onlyRow
    )
  })

  /** Whether anything in the graph was changed by a cause. */
  const hasChanged = Effect.fnUntraced(function* (cause: UndoCause) {
    const { changed } = yield* Effect.flatMap(
      sql<{ readonly changed: boolean }>`
        with recursive ${yield* causing(cause)}
        select exists (select 1 from causing join kb.graph_events event on event.run_id = causing.id) as changed`,
      onlyRow
    )
    return changed
  })

  /** How many suggestions of a cause wait. */
  const countSuggestions = Effect.fnUntraced(function* (cause: UndoCause) {
    const { count } = yield* Effect.flatMap(
      sql<{ readonly count: number }>`
        with recursive ${yield* causing(cause)}
        select count(*)::int as count from causing join kb.tasks task on task.run_id = causing.id
        where task.status = 'pending' and task.type like '%_suggestion'`,
      onlyRow
    )
    return count
  })

  /** Ends the suggestions of a cause that wait, and answers how many. */
  const expireSuggestions = Effect.fnUntraced(function* (
    cause: UndoCause,
    undo: { readonly number: bigint }
  ) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql`
      with recursive ${yield* causing(cause)}, open as (
        select task.id from causing join kb.tasks task on task.run_id = causing.id
        where task.status = 'pending' and task.type like '%_suggestion' order by task.id for update of task
      )
      update kb.tasks task set status = 'expired', resolved_at = now(),
        resolution_note = ${`What its run did was undone by task ${undo.number}`}
      from open where task.id = open.id and task.project_id = ${projectId} and task.status = 'pending' returning task.id`
    return rows.length
  })

  return { causing, find, atWork, hasChanged, countSuggestions, expireSuggestions }
})
