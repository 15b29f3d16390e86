/**
 * What a simulation has left in the database: every row of its project.
 *
 * Read through the owner's access when nobody works any more. The checkers look
 * at these values and at nothing else.
 */
import type { PgConnection } from "@effect/sql-pg"
import type { AgentDefinition } from "@tropism/domain/agent"
import { type ChainLimits, defineChainLimits } from "@tropism/domain/chain"
import { contextEventId, decodeEvent, type LoggedEvent } from "@tropism/domain/context-event"
import type { NotedRefusal } from "@tropism/domain/graph"
import type { AgentId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import type { KeptEvent } from "@tropism/domain/replay"
import type { LimitOverrides } from "@tropism/domain/run"
import type { Taint } from "@tropism/domain/taint"
import { Effect, type Schema, String as Text } from "effect"
import type { Lender } from "./line.ts"
import { reviewQueries, type ReviewRows } from "./review-rows.ts"

export interface Authored {
  readonly actorType: "user" | "agent" | "system"
  readonly actorId: string | null
  readonly approvedBy: string | null
  readonly runId: string | null
  readonly toolCallId: string | null
  readonly taskId: string | null
}

export interface EntityRow {
  readonly id: string
  readonly type: string
  readonly properties: Properties
  readonly untrusted: ReadonlyArray<string>
  readonly version: number
  readonly isDeleted: boolean
}

export interface ObjectRow extends EntityRow {
  /** The versions behind the first that set a property which is there; null where none was changed since. */
  readonly propertyVersions: Readonly<Record<string, number>> | null
}

export interface VersionRow extends Authored {
  readonly objectId: string
  readonly version: number
  readonly type: "created" | "updated" | "deleted"
  readonly properties: Properties
  readonly untrusted: ReadonlyArray<string>
  readonly eventId: string
}

export interface EventRow extends Authored {
  readonly id: string
  /** Its place in the feed. */
  readonly place: number | null
  readonly entityType: "graphObject" | "relationship"
  readonly objectType: string
  readonly entityId: string
  readonly version: number
  readonly type: "created" | "updated" | "deleted"
  readonly changedProperties: ReadonlyArray<string>
  readonly snapshot: { readonly properties: Properties; readonly version: number }
  readonly rootEventId: string
  readonly depth: number
  /** The agents whose work it takes back. */
  readonly undoes: ReadonlyArray<AgentId>
  readonly refusals: ReadonlyArray<NotedRefusal>
  readonly createdAt: Date
}

export interface AgentRow {
  readonly id: string
  readonly isDeleted: boolean
  /** All that it ever was, the oldest first. */
  readonly definitions: ReadonlyArray<
    Pick<
      AgentDefinition,
      | "budget"
      | "defaultTimeoutMs"
      | "enabled"
      | "executionMode"
      | "flowType"
      | "hybridPolicy"
      | "model"
      | "reactionConfig"
      | "reviewPolicy"
      | "steps"
      | "triggerType"
    >
  >
}

export interface RunRow {
  readonly id: string
  readonly agentId: string
  readonly agentVersion: number
  readonly status: string
  readonly pauseReason: string | null
  readonly parentRunId: string | null
  /** The call that spawned it. */
  readonly spawnedBy: string | null
  /** The runs above it. */
  readonly ancestors: ReadonlyArray<string>
  readonly limits: LimitOverrides | null
  /** The backtest that it belongs to. */
  readonly backtestId: string | null
  readonly trigger: {
    readonly type: string
    readonly events?: ReadonlyArray<{ readonly id: string }>
    readonly mcpEvents?: ReadonlyArray<{ readonly id: string }>
    readonly delivery?: { readonly id: string }
  }
  readonly contextName: string
  readonly rootEventId: string
  readonly depth: number
  readonly summary: string | null
  readonly errorMessage: string | null
  readonly cancelledBy: string | null
  readonly stepCount: number
  readonly usage: { readonly inputTokens: number; readonly outputTokens: number }
  readonly attempt: number
  readonly attemptsBeforeStep: number
  readonly dueAt: Date | null
  readonly createdAt: Date
  readonly startedAt: Date | null
  /** Whether a request of its to a model failed: its clock may have stood still then. */
  readonly metFailure: boolean
  readonly completedAt: Date | null
}

export interface EntryRow {
  readonly id: string
  readonly agentId: string
  readonly graphObjectId: string
  readonly objectVersion: number
  readonly eventType: string
  readonly eventId: string
  readonly attempt: number
  readonly status: string
  readonly runId: string | null
  readonly reason: string | null
  readonly deadLetteredAt: Date | null
  readonly createdAt: Date
  readonly completedAt: Date | null
}

export interface ContextRow {
  readonly name: string
  readonly agentId: string
  readonly forkedFrom: string | null
  readonly forkedAt: number | null
  readonly lastEventNumber: number
  readonly owner: string | null
  /** Whether what is said there can be recalled elsewhere. */
  readonly isRemembered: boolean
  readonly taintedBy: ReadonlyArray<Taint> | null
}

/** The words of a message or of a summary, as they are found again. */
export interface PassageRow {
  readonly contextName: string
  readonly number: number
}

export interface FileRow {
  readonly digest: string
  /** Of the bytes as they are. */
  readonly trueDigest: string
  /** Users; '' is everybody in the project. */
  readonly readers: ReadonlyArray<string>
}

export interface ContextEventRow {
  readonly contextName: string
  readonly number: number
  readonly event: LoggedEvent
  /** The event as the log gives it. */
  readonly json: KeptEvent
}

export interface CallRow {
  readonly id: string
  readonly runId: string
  readonly contextName: string
  readonly callId: string
  readonly status: string
  readonly decision: string | null
  readonly promotionId: string | null
  readonly tool: string
  readonly arguments: Schema.Json
  readonly result: unknown
}

/** What a chain, a run or an agent has spent, in all its days. */
export interface BudgetRow {
  readonly scope: "chain" | "run" | "agent" | "backtest"
  readonly scopeId: string
  readonly runs: number
  readonly inputTokens: number
  readonly outputTokens: number
}

/** A source of a foreign server's events. */
export interface SourceRow {
  readonly id: string
  readonly cursor: string | null
}

export interface ListenerRow {
  readonly agentId: string
  readonly sourceId: string
}

/** What a foreign server told; `eventId` is its own. */
export interface OccurrenceRow {
  readonly id: string
  readonly sourceId: string
  readonly eventId: string
}

/** Somebody who is told of events at an address of his own. */
export interface SubscriptionRow {
  readonly id: string
}

export interface Rows extends ReviewRows {
  readonly subscriptions: ReadonlyArray<SubscriptionRow>
  readonly sources: ReadonlyArray<SourceRow>
  readonly listeners: ReadonlyArray<ListenerRow>
  readonly occurrences: ReadonlyArray<OccurrenceRow>
  readonly objects: ReadonlyArray<ObjectRow>
  readonly relationships: ReadonlyArray<EntityRow>
  readonly versions: ReadonlyArray<VersionRow>
  readonly relationshipVersions: ReadonlyArray<VersionRow>
  readonly events: ReadonlyArray<EventRow>
  readonly agents: ReadonlyArray<AgentRow>
  readonly runs: ReadonlyArray<RunRow>
  readonly entries: ReadonlyArray<EntryRow>
  readonly contexts: ReadonlyArray<ContextRow>
  readonly contextEvents: ReadonlyArray<ContextEventRow>
  readonly passages: ReadonlyArray<PassageRow>
  readonly files: ReadonlyArray<FileRow>
  readonly calls: ReadonlyArray<CallRow>
  readonly budgets: ReadonlyArray<BudgetRow>
  readonly chainLimits: ChainLimits
  readonly lastPosition: number
  readonly lastTaskNumber: number
}

/** Each query answers the columns of one of the rows above; `$1` is the project. */
const queries = {
  ...reviewQueries,
  objects: `select id, type, properties, untrusted, property_versions, version, deleted_at is not null as is_deleted from kb.graph_objects where project_id = $1`,
  relationships: `select id, type, properties, untrusted, version, deleted_at is not null as is_deleted from kb.graph_relationships where project_id = $1`,
  versions: `select * from kb.graph_object_versions where project_id = $1 order by object_id, version`,
  relationshipVersions: `select *, relationship_id as object_id from kb.graph_relationship_versions where project_id = $1 order by relationship_id, version`,
  events: `select *, position::int as place from kb.graph_events where project_id = $1 order by entity_id, version`,
  agents: `select id, deleted_at is not null as is_deleted,
      (select json_agg(definition order by version) from kb.agent_versions where agent_id = agent.id) as definitions
    from kb.agents agent where project_id = $1 order by id`,
  runs: `select *, exists (select from kb.model_calls call where call.run_id = run.id and call.error is not null) as met_failure
    from kb.agent_runs run where project_id = $1 order by id`,
  entries: `select id, agent_id, entity_type, graph_object_id, object_version, event_type, coalesce(event_id, occurrence_id) as event_id, attempt,
      status, run_id, reason, due_at, dead_lettered_at, exclusive, parked, error_message, started_at, completed_at, created_at
    from kb.agent_processing_log where project_id = $1 order by id`,
  sources: `select id, cursor from kb.mcp_event_sources where project_id = $1`,
  subscriptions: `select id from kb.event_subscriptions where project_id = $1`,
  listeners: `select agent_id, source_id from kb.agent_mcp_events where project_id = $1`,
  occurrences: `select id, source_id, event_id from kb.mcp_occurrences where project_id = $1 order by number`,
  contexts: `select name, agent_id, last_event_number, forked_from, forked_at, owner, is_remembered, tainted_by from kb.contexts where project_id = $1`,
  contextEvents: `select * from kb.context_events where project_id = $1 order by context_name, number`,
  passages: `select context_name, number from kb.passages where project_id = $1`,
  files: `select digest, encode(sha256(bytes), 'hex') as true_digest,
      array(select reader from kb.attachment_readers reader where reader.project_id = file.project_id and reader.digest = file.digest) as readers
    from kb.attachments file where project_id = $1`,
  calls: `select * from kb.tool_calls where project_id = $1 order by id`,
  budgets: `select scope, scope_id, sum(runs)::int as runs, sum(input_tokens)::float8 as input_tokens, sum(output_tokens)::float8 as output_tokens
    from kb.budgets where project_id = $1 group by scope, scope_id`,
  counters: `select last_position::int as last_position, last_number::int as last_task_number, settings->'chainLimits' as chain_limits
    from kb.feeds join kb.task_counters using (project_id) join kb.projects on id = project_id where project_id = $1`
}

/** Reads the rows of one project through a connection of the owner. */
export const readRowsWith = (connection: PgConnection.PgConnection, projectId: string) =>
  Effect.gen(function* () {
    const read = <A>(name: keyof typeof queries) =>
      Effect.map(connection.query(queries[name], [projectId]), (result): ReadonlyArray<A> =>
        result.rows.map((row) => inCamelCase(row) as A)
      )
    const [counters] = yield* read<Pick<Rows, "lastPosition" | "lastTaskNumber" | "chainLimits">>("counters")
    const contextEvents = yield* read<StoredEvent>("contextEvents")
    const rows: Rows = {
      denials: yield* read<Rows["denials"][number]>("denials"),
      tasks: yield* read<Rows["tasks"][number]>("tasks"),
      todos: yield* read<Rows["todos"][number]>("todos"),
      todoCounters: yield* read<Rows["todoCounters"][number]>("todoCounters"),
      revisions: yield* read<Rows["revisions"][number]>("revisions"),
      promotions: yield* read<Rows["promotions"][number]>("promotions"),
      reviews: yield* read<Rows["reviews"][number]>("reviews"),
      undoItems: yield* read<Rows["undoItems"][number]>("undoItems"),
      backtests: yield* read<Rows["backtests"][number]>("backtests"),
      backtestEvents: yield* read<Rows["backtestEvents"][number]>("backtestEvents"),
      wouldBes: yield* read<Rows["wouldBes"][number]>("wouldBes"),
      objects: yield* read<ObjectRow>("objects"),
      relationships: yield* read<EntityRow>("relationships"),
      versions: yield* read<VersionRow>("versions"),
      relationshipVersions: yield* read<VersionRow>("relationshipVersions"),
      events: yield* read<EventRow>("events"),
      agents: yield* read<AgentRow>("agents"),
      runs: yield* read<RunRow>("runs"),
      sources: yield* read<SourceRow>("sources"),
      listeners: yield* read<ListenerRow>("listeners"),
      subscriptions: yield* read<SubscriptionRow>("subscriptions"),
      occurrences: yield* read<OccurrenceRow>("occurrences"),
      entries: yield* read<EntryRow>("entries"),
      contexts: yield* read<ContextRow>("contexts"),
      contextEvents: contextEvents.map(toContextEvent),
      passages: yield* read<PassageRow>("passages"),
      files: yield* read<FileRow>("files"),
      calls: yield* read<CallRow>("calls"),
      budgets: yield* read<BudgetRow>("budgets"),
      chainLimits: defineChainLimits(counters?.chainLimits ?? {}),
      lastPosition: counters?.lastPosition ?? 0,
      lastTaskNumber: counters?.lastTaskNumber ?? 0
    }
    return rows
  })

/** Reads the rows of a project whose simulation is over, and ends its schedules and sources: the next one's time begins anew. */
export const readRows = (lender: Lender, projectId: string) =>
  Effect.acquireUseRelease(
    Effect.promise(lender.borrow),
    (connection) =>
      Effect.tap(readRowsWith(connection, projectId), () =>
        Effect.andThen(
          connection.query("delete from kb.agent_schedules where project_id = $1", [projectId]),
          connection.query("update kb.mcp_event_sources set due_at = null where project_id = $1", [projectId])
        )
      ),
    (connection) => Effect.sync(() => lender.takeBack(connection))
  )

const inCamelCase = (row: object): unknown =>
  Object.fromEntries(Object.entries(row).map(([name, value]) => [Text.snakeToCamel(name), value]))

interface StoredEvent {
  readonly contextName: string
  readonly number: number
  readonly type: string
  readonly payload: object
  readonly parentEventId: string | null
  readonly triggersAgentTurn: boolean
  readonly createdAt: Date
}

const toContextEvent = (row: StoredEvent): ContextEventRow => {
  const json: KeptEvent = {
    ...row.payload,
    type: row.type,
    id: contextEventId(row.contextName, row.number),
    timestamp: row.createdAt.toISOString(),
    agentName: row.contextName,
    parentEventId: row.parentEventId,
    triggersAgentTurn: row.triggersAgentTurn
  }
  return { contextName: row.contextName, number: row.number, event: decodeEvent(json), json }
}
