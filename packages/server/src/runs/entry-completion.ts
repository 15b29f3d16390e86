/**
 * Ends the processing entries of runs, and lets go on what waited for them.
 *
 * An entry that waits for the end of a run is parked, and nobody looks at it
 * until this lets it go: in the transaction that ends the run, so nothing is
 * lost with a wake-up. Whoever parks an entry locks the live entry that it parks
 * it behind (`WaitingEntries.busy`); so either this sees the parked entry, or the
 * other sees that the run has ended. A run that another spawned reports to it here,
 * in the same transaction, however it came to rest.
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

/** A run that has come to rest. */
export interface RestingRun {
  readonly id: RunId
  readonly parentRunId: RunId | null
}

/** How entries end. */
export interface Ending {
  readonly status: "completed" | "failed" | "abandoned"
  readonly message: string | null
  /** Why, as one word; absent where nothing failed. */
  readonly failure?: RunFailure
  readonly reason?: string
  /** No policy tries it again. */
  readonly isFinal?: true
  /** A person wanted it so: nobody has to look at it, so it is no dead letter. */
  readonly isWanted?: boolean
}

export const makeEntryCompletion = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const notifier = yield* Notifier
  const { openNextAttempts } = yield* makeNextAttempts
  const { report } = yield* makeReporting

  /** Ends the entries that a condition names, and answers how many there were. */
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

  /** Lets the first parked entry of each line go on; true when an agent of them has anything waiting. */
  const letGo = Effect.fnUntraced(function* (lines: ReadonlyArray<Line>) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* freeingLines(
      projectId,
      sql`select distinct line."agentId" as agent_id, line."graphObjectId" as graph_object_id
        from jsonb_to_recordset(${JSON.stringify(lines)}::text::jsonb) as line("agentId" uuid, "graphObjectId" uuid)`
    )
    return row?.hasWaiting === true
  })

  /** The same for the lines of runs whose entries have ended in the statement before. */
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

  /** Ends what hangs on runs that have come to rest: their entries, and the calls that wait for them. */
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

// The attempts at one event, in their order: what was tried last, and what comes next.
//
// An attempt that was skipped tried nothing. So of the attempts that are not
// skipped the last one decides: where it failed or was abandoned it is a dead
// letter, unless an attempt after it waits or a person cancelled it. Whatever
// skips an attempt says so in the same statement.

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

// Opens the next attempt of entries that failed, where their agent's policy says so.
//
// It happens in the transaction in which the attempt ended, so no attempt is
// lost with a program that dies. The next one waits for its back-off like any
// work that waits, and the releaser begins it; what gets none is a dead letter.

const makeNextAttempts = Effect.gen(function* () {
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

// Tells a run what came of a run that it spawned.
//
// In the transaction in which the child comes to rest: the outcome of the call
// that spawned it, the event that tells the parent's model, and the parent's
// return to the queue are there with the child's end, or none is. The call's
// state decides that it is told once. What a tainted child says taints its
// parent. The child's rows are held before the
// parent's, always.

/** A child that has come to rest, and the run that waits for it. */
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

  /** The children among these runs whose parents may still wait for them. */
  const awaited = (ids: ReadonlyArray<RunId>) => sql<Child>`
    select child.id, agent.name as agent_name, child.context_name, context.tainted_by is not null as is_tainted, child.status, child.pause_reason, child.summary, child.error_message, child.parent_run_id,
      call.call_id, coalesce(call.result ->> 'calledAs', call.tool) as tool
    from kb.agent_runs child
    join kb.agents agent on agent.id = child.agent_id
    join kb.tool_calls call on call.id = child.spawned_by
    join kb.contexts context on context.project_id = child.project_id and context.name = child.context_name
    where child.id = any(${ids}::uuid[]) and call.status = 'started' order by child.parent_run_id, child.id`

  /** Holds the parent, if it has not ended. */
  const holdParent = Effect.fnUntraced(function* (id: RunId) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{ contextName: ContextName }>`
      select context_name from kb.agent_runs
      where id = ${id} and project_id = ${projectId} and status in ('queued', 'running', 'paused') for no key update`
    return row
  })

  /** Lets the parent go on, once it waits for no other run. */
  const wake = Effect.fnUntraced(function* (id: RunId) {
    const woken = yield* sql`
      update kb.agent_runs set status = 'queued', pause_reason = null
      where id = ${id} and status = 'paused' and pause_reason = 'subAgents' and not exists (
        select 1 from kb.tool_calls call join kb.agent_runs child on child.spawned_by = call.id and child.parent_run_id = ${id}
        where call.run_id = ${id} and call.status = 'started')
      returning id`
    if (woken.length > 0) yield* sql.afterCommit(notifier.signal("runs"))
  })

  /** Tells the parents of runs that have come to rest what came of them. */
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

/** What the parent's model reads, and how the call ends. */
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

/** A summary of a size that a parent with several children can read. */
const cut = (summary: string) => ({
  summary: beginningTold(summary, runLimits.reportMaxChars),
  ...(summary.length > runLimits.reportMaxChars ? { isTruncated: true } : {})
})
