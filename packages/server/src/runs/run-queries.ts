/** Reads runs with the names of their agents. */
import { findMissing } from "@tropism/domain/agent-warning"
import type { Budget } from "@tropism/domain/budget"
import { microsPerDollar } from "@tropism/domain/chain"
import type { ContextName } from "@tropism/domain/context-event"
import type { AgentId, BacktestId, GraphEventId, ProjectId, RunId, UserId } from "@tropism/domain/ids"
import type { ProcessingEntry } from "@tropism/domain/processing"
import type { PauseReason, RunStatus, Trigger, LimitOverrides, Run, Usage } from "@tropism/domain/run"
import { limitsOf } from "@tropism/domain/run-limits"
import { builtInServers } from "@tropism/domain/tool-pattern"
import { findToolsTool } from "@tropism/domain/tools-in-use"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { objectNamed, asked, searchQuery } from "../graph/objects.ts"
import { runLimits } from "../limits.ts"
import { usageJson } from "./budgets.ts"
import { isStopped } from "./kill-switches.ts"
import { toldSummary } from "./run-texts.ts"

/** The filter of a list of runs; all conditions must hold. */
export interface RunFilter {
  readonly status?: ReadonlyArray<RunStatus> | undefined
  readonly agentId?: AgentId | undefined
  /** The run that spawned them. */
  readonly parentRunId?: RunId | undefined
  /** The backtest that they belong to; only real runs when absent. */
  readonly backtestId?: BacktestId | undefined
  readonly trigger?: ReadonlyArray<Trigger["type"]> | undefined
  /** The reader: selects runs in contexts of the project and in this person's own. */
  readonly readableBy?: UserId | undefined
  /** Created at or after `from`, and before `to`. */
  readonly from?: string | undefined
  readonly to?: string | undefined
  /** Words, or beginnings of words, that all occur in the summary. */
  readonly query?: string | undefined
}

/** The state of a run and nothing else. */
export interface LiveRun {
  readonly id: RunId
  readonly status: RunStatus
  readonly pauseReason: PauseReason | null
  /** It is queued while a kill switch is on. */
  readonly isHeldBack: boolean
}

/**
 * Selects the ids of a page of runs before a cursor, newest first.
 *
 * **Details** Each status is read separately in the order of its index, and the pages are merged: a list of rare statuses costs no more
 * than a list of all runs.
 */
export const pageOfRuns = (
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  { agentId, backtestId, from, parentRunId, query, readableBy, status, to, trigger }: RunFilter,
  before: string | undefined,
  limit: number
): Statement.Fragment => {
  const words = query === undefined ? undefined : (searchQuery(query) ?? "")
  const source = words === undefined ? sql`kb.agent_runs` : sql`kb.project_runs agent_runs`
  const page = (conditions: ReadonlyArray<Statement.Fragment>) =>
    sql`(select id from ${source} where ${sql.and([
      sql`project_id = ${projectId}`,
      backtestId === undefined ? sql`backtest_id is null` : sql`backtest_id = ${backtestId}`,
      ...(agentId === undefined ? [] : [sql`agent_id = ${agentId}`]),
      ...(parentRunId === undefined ? [] : [sql`parent_run_id = ${parentRunId}`]),
      ...(from === undefined ? [] : [sql`created_at >= ${from}::timestamptz`]),
      ...(to === undefined ? [] : [sql`created_at < ${to}::timestamptz`]),
      ...(words === undefined ? [] : [sql`words @@ ${asked(sql, words)}`]),
      ...(before === undefined ? [] : [sql`id < ${before}`]),
      ...(readableBy === undefined
        ? []
        : [
            // A scalar subquery instead of a join, which PostgreSQL would plan over all contexts.
            sql`coalesce((select context.owner is null or context.owner = ${readableBy} from kb.contexts context
              where context.project_id = agent_runs.project_id and context.name = agent_runs.context_name), true)`
          ]),
      ...conditions
    ])} order by id desc limit ${limit})`
  const pages = anyOf(status).flatMap((state) =>
    anyOf(trigger).map((type) =>
      page([
        ...(state === undefined ? [] : [sql`status = ${state}`]),
        ...(type === undefined ? [] : [sql`trigger_type = ${type}`])
      ])
    )
  )
  return sql.join(" union all ", false)(pages)
}

/** Returns the values to read one by one; a single undefined when there is no condition. */
const anyOf = <A>(values: ReadonlyArray<A> | undefined): ReadonlyArray<A | undefined> =>
  values === undefined ? [undefined] : [...new Set(values)]

/**
 * Selects the ids of the runs that a chain's events triggered, and of the run that began it.
 *
 * **Details** A run for events of several roots belongs to the chain of each, since each has counted it; the log entries of the chain's
 * events lead to it. A run that a person triggered begins a chain of its own, to which its later attempts belong.
 */
export const runsOfChain = (
  sql: SqlClient.SqlClient,
  projectId: ProjectId,
  root: GraphEventId | Statement.Fragment
) => sql`
  select id from kb.agent_runs where project_id = ${projectId} and root_event_id = ${root} and backtest_id is null
  union
  select run.id from kb.graph_events event
  join kb.agent_processing_log entry on entry.event_id = event.id
  join kb.agent_runs run on run.id = entry.run_id and run.root_event_id <> run.id
  where event.project_id = ${projectId} and event.root_event_id = ${root}
    and (entry.attempt = 1 or not exists (${askedRun(sql, sql`entry.id`)}))
  union
  select run.id from kb.agent_processing_log entry
  join kb.agent_processing_log later on later.agent_id = entry.agent_id and later.graph_object_id = entry.graph_object_id
    and later.object_version = entry.object_version and later.event_type = entry.event_type and later.attempt > entry.attempt
  join kb.agent_runs run on run.id = later.run_id and run.root_event_id <> run.id and run.project_id = ${projectId}
  where entry.run_id = ${root} and (${askedRun(sql, sql`later.id`)}) = entry.run_id`

/** Selects the tools of a version that are not built in. */
const foreignTools = (sql: SqlClient.SqlClient) => {
  const isForeign = `? (!(@ like_regex "^(${builtInServers.join("|")})[.]"))`
  const among = (list: string) =>
    sql`jsonb_path_query_array(version.definition, ${`${list}[*] ${isForeign}`}::jsonpath)`
  return sql`(${among("$.tools")} || ${among("$.steps[*].tools")})`
}

/** Selects runs with the names of their agents, what their versions allow, and the usage of each with all its sub-runs. */
const told = (sql: SqlClient.SqlClient, summary: Statement.Fragment) => sql`
  select run.id, run.agent_id, run.agent_version, run.status, run.pause_reason, run.wait_message,
    case when run.status = 'queued' and run.waits_for is not null then coalesce(outage.since, run.waits_since) end as wait_since,
    case when run.status = 'queued' then greatest(outage.next_try_at, run.waits_until) end as next_try_at, run.trigger, ${summary} as summary,
    length(run.summary) as summary_chars, run.error_message, run.failure_reason, run.finish_reason, run.cancelled_by,
    run.step_count, run.attempt, run.usage, run.cost_micros, run.limits, run.parent_run_id, run.backtest_id, run.spawn_depth, run.model,
    run.root_event_id, run.depth, run.context_name, run.created_at, run.started_at, run.completed_at, ${objectNamed(sql, sql`run.project_id`, sql`(run.trigger #>> '{events,0,objectId}')::uuid`)} as subject, agent.name as agent_name, (version.definition ->> 'maxSteps')::int as max_steps,
    ${foreignTools(sql)} as foreign_tools,
    -- Of most runs no list is read: their agents name no foreign tool.
    (select jsonb_agg(distinct tool ->> 'name') from kb.model_calls call
      join kb.tool_lists list on list.project_id = call.project_id and list.digest = call.tools_digest
      cross join jsonb_array_elements(list.tools) tool
      where call.run_id = run.id and ${foreignTools(sql)} <> '[]') as shown_tools,
    context.tainted_by, context.owner, (version.definition ->> 'defaultTimeoutMs')::int as default_timeout_ms, nullif(version.definition -> 'budget', 'null') as budget,
    case when spent.scope_id is not null then ${usageJson(sql, (column) => `spent.${column}`)} end as spent_usage, spent.cost_micros as spent_micros
  from kb.agent_runs run
  join kb.agents agent on agent.id = run.agent_id
  join kb.agent_versions version on version.agent_id = run.agent_id and version.version = run.agent_version
  left join kb.contexts context on context.project_id = run.project_id and context.name = run.context_name
  left join kb.provider_outages_here outage on outage.route = run.waits_for
  left join kb.budgets spent on spent.project_id = run.project_id and spent.scope = 'run' and spent.scope_id = run.id and spent.period = ''`

/** In a list, a run's summary is shortened. */
const toListed = (row: RunRow) => toRun(row, runLimits.listedSummaryMaxChars)

/** The queries of `Runs`. */
export const makeReading = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const listed = told(sql, sql`left(run.summary, ${runLimits.listedSummaryMaxChars + 1}::int)`)

  const select = (where: Statement.Fragment, limit: number) =>
    sql<RunRow>`
      ${listed} where ${where} order by run.id desc limit ${limit}`

  const get = Effect.fn("Runs.get")(function* (id: RunId) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<RunRow>`
      ${told(sql, sql`run.summary`)} where run.id = ${id} and run.project_id = ${projectId}`
    return row && toRun(row)
  }, orDie)

  const among = Effect.fn("Runs.among")(function* (ids: ReadonlyArray<RunId>) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* select(
      sql`run.id = any(${ids}::uuid[]) and run.project_id = ${projectId}`,
      ids.length
    )
    return rows.map(toListed)
  }, orDie)

  const list = Effect.fn("Runs.list")(function* (
    filter: RunFilter,
    before: string | undefined,
    limit: number
  ) {
    const { projectId } = yield* ProjectTransaction
    const page = pageOfRuns(sql, projectId, filter, before, limit)
    const rows = yield* select(sql`run.id in (${page})`, limit)
    return rows.map(toListed)
  }, orDie)

  const chain = Effect.fn("Runs.chain")(function* (
    rootEventId: GraphEventId,
    after: string | undefined,
    limit: number
  ) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<RunRow>`
      ${listed}
      where run.project_id = ${projectId} and run.id = any(array(${runsOfChain(sql, projectId, rootEventId)}))
        and run.id > ${after ?? "00000000-0000-0000-0000-000000000000"}::uuid
      order by run.id limit ${limit}`
    return rows.map(toListed)
  }, orDie)

  const saidBy = Effect.fn("Runs.saidBy")(function* (id: RunId, contextName: string) {
    const { projectId } = yield* ProjectTransaction
    // Only one run at a time works in a context, so answers without a run id belong to the run whose beginning precedes them.
    const rows = yield* sql<{ text: string; chars: number }>`
      select text, chars from (
        select number, text, sum(length(text)) over (order by number) - length(text) as before, (sum(length(text)) over ())::float8 as chars from (
          select number, payload ->> case when type = 'AssistantMessageEvent' then 'content' else 'partialText' end as text
          from kb.context_events
          where project_id = ${projectId} and context_name = ${contextName}
            and type in ('AssistantMessageEvent', 'SoftStopEvent', 'AgentTurnInterruptedEvent')
            and coalesce(payload ->> 'runId', ${id}) = ${id}
            and number > (select min(after_event) from kb.model_calls where project_id = ${projectId} and run_id = ${id})
        ) event where text <> ''
      ) said where before <= ${runLimits.summaryMaxChars} order by number`
    return { texts: rows.map(({ text }) => text), chars: rows[0]?.chars ?? 0 }
  }, orDie)

  const newestOn = Effect.fn("Runs.newestOn")(function* (name: ContextName) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<LiveRun>`
      select id, status, pause_reason, status = 'queued' and ${isStopped(sql)} as is_held_back from kb.agent_runs where project_id = ${projectId} and id = coalesce(
        (select id from kb.agent_runs where project_id = ${projectId} and context_name = ${name} and status in ('queued', 'running', 'paused')),
        (select id from kb.agent_runs where project_id = ${projectId} and context_name = ${name} and trigger_type = 'context' order by id desc limit 1))`
    return row
  }, orDie)

  return { get, among, list, chain, saidBy, newestOn }
})

// Finds the chain and the person for retries of a run that a person triggered.
//
// A run that a person triggered is the root of its chain, whatever chain its event belongs to. Its later attempts continue that chain,
// because the event may already be at the maximum depth of its own chain. An attempt by the retry policy belongs to the person of the
// previous attempt; a person's own retry belongs to that person.

/** Selects the newest run, up to this entry's attempt, that a person triggered; no row when there is none. */
export const askedRun = (sql: SqlClient.SqlClient, entryId: Statement.Fragment) => sql`
  select asked.id from kb.agent_processing_log tried
  join kb.agent_processing_log before on before.agent_id = tried.agent_id and before.graph_object_id = tried.graph_object_id
    and before.object_version = tried.object_version and before.event_type = tried.event_type and before.attempt <= tried.attempt
  join kb.agent_runs asked on asked.id = before.run_id and asked.root_event_id = asked.id
  where tried.id = ${entryId} order by before.attempt desc limit 1`

/**
 * Selects the run after which the agent's retry policy opened an entry; no row when a person opened it.
 *
 * **Details** The policy opens the next attempt in the transaction that ends the previous one, so both have the same timestamp. There is at
 * most one such run; the limit keeps PostgreSQL from joining whole tables when many entries are queried.
 */
export const failedRun = (sql: SqlClient.SqlClient, entryId: Statement.Fragment) => sql`
  select run.user_id from kb.agent_processing_log opened
  join kb.agent_processing_log before on before.agent_id = opened.agent_id and before.graph_object_id = opened.graph_object_id
    and before.object_version = opened.object_version and before.event_type = opened.event_type and before.attempt = opened.attempt - 1
    and before.completed_at = opened.created_at
  join kb.agent_runs run on run.id = before.run_id
  where opened.id = ${entryId} limit 1`

// Decodes the database rows of runs.

interface RunRow extends Omit<
  Run,
  | "createdAt"
  | "startedAt"
  | "completedAt"
  | "durationMs"
  | "taintedBy"
  | "missingTools"
  | "costUsd"
  | "total"
  | "limits"
  | "isSummaryTruncated"
  | "waitingFor"
> {
  /** The last provider failure of a queued run; null when it does not wait for a provider. */
  readonly waitMessage: string | null
  readonly waitSince: Date | null
  readonly nextTryAt: Date | null
  /** The length of the whole summary, of which the row may hold only the beginning. */
  readonly summaryChars: number | null
  readonly costMicros: bigint
  /** The usage of the run with all its sub-runs; null before the first use. */
  readonly spentUsage: Usage | null
  readonly spentMicros: bigint | null
  /** The run's own limits, and those of its agent's version. */
  readonly limits: LimitOverrides | null
  readonly maxSteps: number | null
  readonly defaultTimeoutMs: number | null
  readonly budget: Budget | null
  readonly taintedBy: Run["taintedBy"] | null
  /** The external tools that the agent's version names, and the names of all tools that the model was offered. */
  readonly foreignTools: ReadonlyArray<string>
  readonly shownTools: ReadonlyArray<string> | null
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly completedAt: Date | null
}

/** The duration is wall-clock time from the first claim to the end; a summary is cut at `summaryMaxChars`. */
const toRun = (row: RunRow, summaryMaxChars?: number): Run => ({
  id: row.id,
  agentId: row.agentId,
  agentName: row.agentName,
  agentVersion: row.agentVersion,
  status: row.status,
  pauseReason: row.pauseReason,
  waitingFor:
    row.waitSince === null
      ? null
      : {
          reason: "provider",
          since: row.waitSince.toISOString(),
          message: row.waitMessage ?? "",
          nextTryAt: row.nextTryAt?.toISOString() ?? null
        },
  trigger: row.trigger,
  subject: row.subject,
  ...toldSummary(row, summaryMaxChars),
  errorMessage: row.errorMessage,
  failureReason: row.failureReason,
  finishReason: row.finishReason,
  cancelledBy: row.cancelledBy,
  stepCount: row.stepCount,
  attempt: row.attempt,
  usage: row.usage,
  costUsd: Number(row.costMicros) / microsPerDollar,
  total: {
    usage: row.spentUsage ?? row.usage,
    costUsd: Number(row.spentMicros ?? row.costMicros) / microsPerDollar
  },
  limits: limitsOf(row, row.parentRunId !== null, row.limits),
  parentRunId: row.parentRunId,
  backtestId: row.backtestId,
  spawnDepth: row.spawnDepth,
  model: row.model,
  rootEventId: row.rootEventId,
  depth: row.depth,
  contextName: row.contextName,
  owner: row.owner,
  taintedBy: row.taintedBy ?? [],
  missingTools:
    // With the tool search, every tool of the agent can be found.
    row.stepCount === 0 || row.shownTools?.includes(findToolsTool) === true
      ? []
      : findMissing(
          row.foreignTools,
          (row.shownTools ?? []).map((name) => name.replace("__", "."))
        ),
  createdAt: row.createdAt.toISOString(),
  startedAt: row.startedAt?.toISOString() ?? null,
  completedAt: row.completedAt?.toISOString() ?? null,
  durationMs: row.startedAt && row.completedAt ? row.completedAt.getTime() - row.startedAt.getTime() : null
})

export interface EntryRow extends Omit<
  ProcessingEntry,
  "eventId" | "dueAt" | "deadLetteredAt" | "startedAt" | "completedAt" | "createdAt"
> {
  /** Null for an entry about an occurrence, which has `occurrenceId` instead. */
  readonly eventId: ProcessingEntry["eventId"] | null
  readonly occurrenceId: ProcessingEntry["eventId"] | null
  readonly dueAt: Date | null
  readonly deadLetteredAt: Date | null
  readonly startedAt: Date | null
  readonly completedAt: Date | null
  readonly createdAt: Date
}

/** Selects an entry's columns with the name of its object. */
export const entryTold = (sql: SqlClient.SqlClient, entry: Statement.Fragment): Statement.Fragment =>
  sql`${entry}.*, case when ${entry}.entity_type = 'graphObject' then ${objectNamed(sql, sql`${entry}.project_id`, sql`${entry}.graph_object_id`)} end as subject`

export const toEntry = (row: EntryRow): ProcessingEntry => ({
  id: row.id,
  agentId: row.agentId,
  entityType: row.entityType,
  graphObjectId: row.graphObjectId,
  subject: row.subject,
  objectVersion: row.objectVersion,
  eventType: row.eventType,
  // The database ensures that exactly one of the two is set.
  eventId: row.eventId ?? (row.occurrenceId as ProcessingEntry["eventId"]),
  attempt: row.attempt,
  status: row.status,
  runId: row.runId,
  reason: row.reason,
  dueAt: row.dueAt?.toISOString() ?? null,
  deadLetteredAt: row.deadLetteredAt?.toISOString() ?? null,
  errorMessage: row.errorMessage,
  failureReason: row.failureReason,
  startedAt: row.startedAt?.toISOString() ?? null,
  completedAt: row.completedAt?.toISOString() ?? null,
  createdAt: row.createdAt.toISOString()
})
