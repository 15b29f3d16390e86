/**
 * Ends the processing entries of runs and releases the entries that waited for them.
 *
 * An entry that waits for the end of a run is parked, and the releaser skips it until the transaction that ends the run unparks it; no
 * notification is needed for that, so none can be lost. Parking an entry locks the live entry it waits for (`WaitingEntries.busy`), so
 * either this module sees the parked entry, or the parking transaction sees that the run has ended. A sub-run reports to its parent in the
 * same transaction, however it ended.
 */
import type { ContextName, NewEvent } from "@tropism/domain/context-event"
import type { AgentId, EntryId, ProjectId, RunId } from "@tropism/domain/ids"
import type { RunFailure, PauseReason, RunStatus } from "@tropism/domain/run"
import { beginningTold } from "@tropism/domain/text-beginning"
import { Effect, type Schema } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { Contexts } from "../contexts/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import { ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { runLimits } from "../limits.ts"
import { Notifier } from "../outbox/notifier.ts"
import { ToolCalls } from "../tools/tool-calls.ts"

/** A run that has stopped: ended or paused. */
export interface RestingRun {
  readonly id: RunId
  readonly parentRunId: RunId | null
}

/** The outcome of entries. */
export interface Ending {
  readonly status: "completed" | "failed" | "abandoned"
  readonly message: string | null
  /** The reason code; absent when nothing failed. */
  readonly failure?: RunFailure
  readonly reason?: string
  /** No retry policy applies. */
  readonly isFinal?: true
  /** A person caused this ending, so the entry does not become a dead letter. */
  readonly isWanted?: boolean
}

export const makeEntryCompletion = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const notifier = yield* Notifier
  const { openNextAttempts } = yield* makeNextAttempts
  const { report } = yield* makeReporting

  /** Ends the entries that the condition selects and returns their number. */
  const settle = Effect.fnUntraced(function* (which: Statement.Fragment, ending: Ending) {
    const { projectId } = yield* ProjectTransaction
    const isDead = ending.status !== "completed" && ending.isWanted !== true
    const ended = yield* sql<Line & { readonly id: EntryId }>`
      update kb.agent_processing_log set status = ${ending.status}, completed_at = now(), error_message = ${ending.message}, failure_reason = ${ending.failure ?? null},
        reason = coalesce(${ending.reason ?? null}, reason), dead_lettered_at = case when ${isDead}::boolean then now() end
      where id = any(array(
        select id from kb.agent_processing_log entry where entry.project_id = ${projectId} and ${which} order by id for no key update))
      returning id, agent_id, graph_object_id`
    if (ended.length > 0 && ending.status !== "completed" && ending.isFinal !== true)
      yield* openNextAttempts(ended.map(({ id }) => id))
    if (ended.length > 0 && (yield* letGo(ended))) yield* sql.afterCommit(notifier.signal("releases"))
    return ended.length
  })

  /** Unparks the first entry of each line; true when one of their agents has waiting entries. */
  const letGo = Effect.fnUntraced(function* (lines: ReadonlyArray<Line>) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* freeingLines(
      projectId,
      sql`select distinct line."agentId" as agent_id, line."graphObjectId" as graph_object_id
        from jsonb_to_recordset(${JSON.stringify(lines)}::text::jsonb) as line("agentId" uuid, "graphObjectId" uuid)`
    )
    return row?.hasWaiting === true
  })

  /** Does the same for the lines of runs whose entries the previous statement ended. */
  const freeing = (projectId: ProjectId, ids: ReadonlyArray<RunId>) =>
    freeingLines(
      projectId,
      sql`select distinct agent_id, graph_object_id from kb.agent_processing_log
        where run_id = any(${ids}::uuid[]) and status not in ('pending', 'processing')`
    )

  const freeingLines = (projectId: ProjectId, lines: Statement.Fragment) =>
    sql<{ hasWaiting: boolean }>`
      with line as (${lines}), freed as (
        update kb.agent_processing_log entry set parked = false
        where entry.id = any(array(
          select first.id from line cross join lateral (
            select next.id, next.parked from kb.agent_processing_log next
            where next.agent_id = line.agent_id and next.graph_object_id = line.graph_object_id
              and next.status = 'pending' and next.run_id is null
            order by next.object_version, next.attempt limit 1
          ) first where first.parked order by first.id
        )) and case when entry.run_id is null then entry.status = 'pending' else false end
      )
      select exists (
        select 1 from kb.agent_processing_log entry
        where entry.project_id = ${projectId} and entry.agent_id in (select agent_id from line)
          and entry.status = 'pending' and entry.run_id is null
      ) as has_waiting`

  /** Ends the entries of stopped runs and the calls that wait for those runs. */
  const settleRuns = Effect.fnUntraced(function* (runs: ReadonlyArray<RestingRun>, ending: Ending) {
    const ids = runs.map(({ id }) => id)
    yield* settle(
      sql`entry.run_id = any(${ids}::uuid[]) and entry.status in ('pending', 'processing')`,
      ending
    )
    yield* report(runs.flatMap(({ id, parentRunId }) => (parentRunId === null ? [] : [id])))
  })

  return { settle, settleRuns, letGo, freeing }
})

/** All entries of one agent and object. */
interface Line {
  readonly agentId: AgentId
  readonly graphObjectId: string
}

// Orders the attempts at one event and finds the next one.
//
// Skipped attempts do not count. The last other attempt decides: if it failed or was abandoned, it is a dead letter, unless a later attempt
// waits or a person cancelled it. Every statement that skips an attempt also updates the dead letter.

/** The attempts at an entry's event, and the number of the next. */
export interface Attempts {
  readonly id: EntryId
  /** The number of the next attempt. */
  readonly next: number
  /** The first attempt after the entry that was not skipped; null when the entry is the last of those. */
  readonly triedAs: number | null
  /** The number of tries, up to and including this entry. */
  readonly tries: number
}

export const makeAttempts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const ofSameEvent = (entry: Statement.Fragment, other: Statement.Fragment) => sql`
    ${other}.agent_id = ${entry}.agent_id and ${other}.graph_object_id = ${entry}.graph_object_id
      and ${other}.object_version = ${entry}.object_version and ${other}.event_type = ${entry}.event_type`

  /**
   * Runs an update that skips waiting entries (`entry`), marks the failures before them as dead letters again, and returns the number of
   * skipped ones.
   */
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

  /** Clears the dead-letter mark of entries that are retried, and of the earlier attempts. */
  const revive = Effect.fnUntraced(function* (ids: ReadonlyArray<EntryId>) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      update kb.agent_processing_log entry set dead_lettered_at = null
      where entry.dead_lettered_at is not null and entry.id = any(array(
        select before.id from kb.agent_processing_log revived
        join kb.agent_processing_log before on ${ofSameEvent(sql`revived`, sql`before`)} and before.attempt <= revived.attempt
        where revived.project_id = ${projectId} and revived.id = any(${ids}::uuid[])))`
  })

  /** Returns the attempts at the events of these entries, by entry id. */
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

// Opens the next attempt of failed entries, as their agent's retry policy allows.
//
// This is part of the transaction that ends the attempt, so a crash loses no attempt. The next attempt waits for its back-off like any
// waiting entry, and the releaser starts it; an entry without a next attempt is a dead letter.

const makeNextAttempts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids

  /** Opens the next attempts of entries that have just ended and clears the dead-letter mark of those that got one. */
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

// Reports the outcome of a sub-run to its parent.
//
// The transaction that stops the child also records the outcome of the spawning call, appends the event that the parent's model reads, and
// queues the parent again, so all of this happens or none of it. The call's state ensures that the outcome is reported once. A tainted
// child taints its parent. The child's rows are always locked before the parent's.

/** A child that has stopped, and the run that waits for it. */
interface Child {
  readonly id: RunId
  readonly agentName: string
  readonly contextName: ContextName
  readonly isTainted: boolean
  readonly status: RunStatus
  readonly pauseReason: PauseReason | null
  readonly summary: string | null
  readonly errorMessage: string | null
  readonly parentRunId: RunId
  readonly callId: string
  readonly tool: string
}

const makeReporting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const notifier = yield* Notifier
  const contexts = yield* Contexts
  const toolCalls = yield* ToolCalls

  /** Selects the children among these runs whose parents may still wait for them. */
  const awaited = (ids: ReadonlyArray<RunId>) => sql<Child>`
    select child.id, agent.name as agent_name, child.context_name, context.tainted_by is not null as is_tainted, child.status, child.pause_reason, child.summary, child.error_message, child.parent_run_id,
      call.call_id, coalesce(call.result ->> 'calledAs', call.tool) as tool
    from kb.agent_runs child
    join kb.agents agent on agent.id = child.agent_id
    join kb.tool_calls call on call.id = child.spawned_by
    join kb.contexts context on context.project_id = child.project_id and context.name = child.context_name
    where child.id = any(${ids}::uuid[]) and call.status = 'started' order by child.parent_run_id, child.id`

  /** Locks the parent if it has not ended. */
  const holdParent = Effect.fnUntraced(function* (id: RunId) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{ contextName: ContextName }>`
      select context_name from kb.agent_runs
      where id = ${id} and project_id = ${projectId} and status in ('queued', 'running', 'paused') for no key update`
    return row
  })

  /** Queues the parent once it waits for no other run. */
  const wake = Effect.fnUntraced(function* (id: RunId) {
    const woken = yield* sql`
      update kb.agent_runs set status = 'queued', pause_reason = null
      where id = ${id} and status = 'paused' and pause_reason = 'subAgents' and not exists (
        select 1 from kb.tool_calls call join kb.agent_runs child on child.spawned_by = call.id and child.parent_run_id = ${id}
        where call.run_id = ${id} and call.status = 'started')
      returning id`
    if (woken.length > 0) yield* sql.afterCommit(notifier.signal("runs"))
  })

  /** Reports the outcomes of stopped runs to their parents. */
  const report = Effect.fn("Runs.report")(function* (ids: ReadonlyArray<RunId>) {
    if (ids.length === 0) return
    for (const child of yield* awaited(ids)) {
      const parent = yield* holdParent(child.parentRunId)
      if (!parent) continue
      const { event, result, status } = outcomeOf(child)
      if (!(yield* toolCalls.end(child.parentRunId, child.callId, status, result))) continue
      const taint = child.isTainted ? [{ kind: "context", id: child.contextName } as const] : []
      yield* contexts.append(parent.contextName, [event], { taint })
      yield* wake(child.parentRunId)
    }
    yield* CrashPoint.hit("run.afterReport")
  })

  return { report }
})

/** Returns what the parent's model reads and how the call ends. */
const outcomeOf = (
  child: Child
): {
  readonly status: "completed" | "failed"
  readonly result: Schema.Json
  readonly event: NewEvent
} => {
  const { agentName: agent, callId, errorMessage, id: runId, pauseReason, status, tool } = child
  const told = { runId, agent, status, ...cut(child.summary ?? "") }
  if (status === "completed" || status === "paused") {
    const result = {
      ...told,
      ...(status === "paused" ? { pauseReason, note: "It was stopped before it was done." } : {})
    }
    return { status: "completed", result, event: { type: "ToolCallCompletedEvent", callId, tool, result } }
  }
  const reason = status === "cancelled" ? "childCancelled" : "childFailed"
  const fate = status === "cancelled" ? "was cancelled" : "failed"
  const error =
    errorMessage === null ? `The run of ${agent} ${fate}` : `The run of ${agent} ${fate}: ${errorMessage}`
  const result = { error, reason, ...told }
  return { status: "failed", result, event: { type: "ToolCallFailedEvent", callId, tool, error: result } }
}

/** Shortens a summary so that a parent with several children can read them all. */
const cut = (summary: string) => ({
  summary: beginningTold(summary, runLimits.reportMaxChars),
  ...(summary.length > runLimits.reportMaxChars ? { isTruncated: true } : {})
})
