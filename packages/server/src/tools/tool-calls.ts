/**
 * Records tool calls: who, what, when and the outcome.
 *
 * **Invariant** A call is recorded once, in the transaction of its effect: a second call with the same id finds the
 * record and has no second effect.
 */
import type { Picture } from "@tropism/domain/attachment"
import type { Coerced } from "@tropism/domain/coerced"
import type { ContextName, NewEvent } from "@tropism/domain/context-event"
import { madeCall, type MadeCall } from "@tropism/domain/defined-tool"
import type { WaitsFor } from "@tropism/domain/event-base"
import type {
  AgentId,
  ObjectId,
  ProjectId,
  PromotionId,
  RelationshipId,
  RunId,
  ToolCallId,
  UserId
} from "@tropism/domain/ids"
import type { ToolCall } from "@tropism/domain/message"
import type { TaintSource } from "@tropism/domain/taint"
import { type Evidence, evidenceBounds } from "@tropism/domain/task"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import type { Terms } from "../contexts/appending.ts"
import { lastId, orDie, ProjectTransaction } from "../database/database.ts"
import type { ChangeRefused } from "../graph/change-refused.ts"
import { Ids } from "../ids.ts"
import { toolLimits } from "../limits.ts"
import type { RunPrincipal } from "./principal.ts"

/**
 * Status of a call.
 *
 * **Details** `started`: made, without an outcome yet. `unknown`: made, and its outcome cannot be known. `abandoned`: the run
 * no longer waits for its outcome.
 */
export type CallStatus = "started" | "completed" | "failed" | "refused" | "unknown" | "abandoned"

export interface ToolCallRow {
  readonly id: ToolCallId
  readonly runId: RunId | null
  readonly agentId: AgentId | null
  readonly userId: UserId | null
  readonly contextName: ContextName | null
  readonly callId: string
  readonly tool: string
  readonly arguments: Schema.Json
  /** The model's original arguments, when they were repaired. */
  readonly coerced: Coerced | null
  readonly status: CallStatus
  readonly decision: GateDecision | null
  /** The promotion that let a hybrid agent act without sufficient confidence. */
  readonly promotionId: PromotionId | null
  readonly result: Schema.Json
  /** The versions shown to the model. */
  readonly reads: ReadonlyArray<Read>
  /** For a client's call: the time limit in milliseconds. */
  readonly answerWithinMs?: number | undefined
}

/** A call answered by a client, and that client. */
export interface ClientCall {
  readonly runId: RunId
  readonly tool: string
  readonly status: CallStatus
  readonly answeredBy: UserId | null
}

/** A call that waits for a client, and whether it is overdue. */
export interface AwaitedCall {
  readonly callId: string
  readonly tool: string
  readonly isOverdue: boolean
}

export interface RecordedCall extends Omit<ToolCallRow, "answerWithinMs"> {
  readonly createdAt: string
  /** When its outcome arrived. */
  readonly completedAt: string | null
  readonly durationMs: number | null
}

type Asked<A> = Effect.Effect<A, never, ProjectTransaction>

export class ToolCalls extends Context.Service<
  ToolCalls,
  {
    readonly keep: (call: ToolCallRow) => Asked<void>
    /** The same as a fragment of the append that logs the call. */
    readonly keeping: (projectId: ProjectId, call: ToolCallRow) => Statement.Fragment
    /** Records the outcome of a started call; false when it has one. */
    readonly end: (
      runId: RunId,
      callId: string,
      status: Exclude<CallStatus, "started">,
      result: Schema.Json,
      answeredBy?: UserId
    ) => Asked<boolean>
    /** The newest client-tool call with this id in a context's own log. */
    readonly findClientCall: (name: ContextName, callId: string) => Asked<ClientCall | undefined>
    /** The open client calls of a run, oldest first. */
    readonly awaited: (runId: RunId) => Asked<ReadonlyArray<AwaitedCall>>
    /** Runs with an overdue client call, longest wait first. */
    readonly overdue: (
      limit: number
    ) => Asked<ReadonlyArray<{ readonly runId: RunId; readonly contextName: ContextName }>>
    readonly find: (runId: RunId, callId: string) => Asked<RecordedCall | undefined>
    /** The calls of a run, newest first. */
    readonly list: (
      runId: RunId,
      before: string | undefined,
      limit: number
    ) => Asked<ReadonlyArray<RecordedCall>>
    /** A person's own calls and those made in their name, newest first. */
    readonly ofUser: (
      userId: UserId,
      before: string | undefined,
      limit: number
    ) => Asked<ReadonlyArray<RecordedCall>>
    /**
     * Returns the newest 200 object versions shown to the run, newest first: those of its calls, after them those that woke it.
     * `wokenBy` is oldest first.
     */
    readonly evidence: (runId: RunId, wokenBy: ReadonlyArray<Evidence>) => Asked<ReadonlyArray<Evidence>>
    /** Newest version of an entity that the run's calls have shown; undefined when none did. */
    readonly lastRead: (runId: RunId, id: ObjectId | RelationshipId) => Asked<number | undefined>
  }
>()("@tropism/server/tool/ToolCalls") {
  static readonly layer = Layer.effect(
    ToolCalls,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const insertion = (projectId: ProjectId, call: ToolCallRow) => sql`
        insert into kb.tool_calls (id, project_id, run_id, agent_id, user_id, context_name, call_id, tool, arguments, coerced, status, decision, promotion_id, result, reads,
          completed_at, answer_due_at)
        select ${call.id}::uuid, ${projectId}::uuid, ${call.runId}::uuid, ${call.agentId}::uuid, ${call.userId}::text, ${call.contextName}::text, ${call.callId}::text,
          ${call.tool}::text, ${JSON.stringify(call.arguments)}::text::jsonb,
          ${call.coerced === null ? null : JSON.stringify(call.coerced)}::text::jsonb, ${call.status}::text, ${call.decision}::text, ${call.promotionId}::uuid,
          ${JSON.stringify(call.result)}::text::jsonb, ${JSON.stringify(call.reads)}::text::jsonb,
          case when ${call.status === "started"}::boolean then null else clock_timestamp() end,
          clock_timestamp() + make_interval(secs => ${call.answerWithinMs ?? null}::float8 / 1000)`

      const keep = Effect.fn("ToolCalls.keep")(function* (call: ToolCallRow) {
        const { projectId } = yield* ProjectTransaction
        yield* insertion(projectId, call)
      }, orDie)

      const keeping = (projectId: ProjectId, call: ToolCallRow) =>
        sql`recorded as (${insertion(projectId, call)} from appended)`

      const end = Effect.fn("ToolCalls.end")(function* (
        runId: RunId,
        callId: string,
        status: Exclude<CallStatus, "started">,
        result: Schema.Json,
        answeredBy?: UserId
      ) {
        const { projectId } = yield* ProjectTransaction
        const ended = yield* sql`
          update kb.tool_calls set status = ${status}, result = ${JSON.stringify(result)}::text::jsonb, completed_at = now(),
            answered_by = ${answeredBy ?? null}
          where project_id = ${projectId} and run_id = ${runId} and call_id = ${callId} and status = 'started' returning id`
        return ended.length > 0
      }, orDie)

      const findClientCall = Effect.fn("ToolCalls.findClientCall")(function* (
        name: ContextName,
        callId: string
      ) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<ClientCall>`
          select run_id, tool, status, answered_by from kb.tool_calls
          where project_id = ${projectId} and context_name = ${name} and call_id = ${callId} and answer_due_at is not null
          order by id desc limit 1`
        return row
      }, orDie)

      const awaited = Effect.fn("ToolCalls.awaited")(function* (runId: RunId) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<AwaitedCall>`
          select call_id, tool, answer_due_at <= clock_timestamp() as is_overdue from kb.tool_calls
          where project_id = ${projectId} and run_id = ${runId} and status = 'started' and answer_due_at is not null order by id`
      }, orDie)

      const overdue = Effect.fn("ToolCalls.overdue")(function* (limit: number) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<{ readonly runId: RunId; readonly contextName: ContextName }>`
          select run_id, context_name from kb.tool_calls
          where project_id = ${projectId} and status = 'started' and answer_due_at <= now()
          group by run_id, context_name order by min(answer_due_at) limit ${limit}`
      }, orDie)

      const find = Effect.fn("ToolCalls.find")(function* (runId: RunId, callId: string) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<StoredRow>`
          select * from kb.tool_calls where project_id = ${projectId} and run_id = ${runId} and call_id = ${callId}`
        return row && toRecord(row)
      }, orDie)

      const list = Effect.fn("ToolCalls.list")(function* (
        runId: RunId,
        before: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<StoredRow>`
          select * from kb.tool_calls where project_id = ${projectId} and run_id = ${runId}
            and id < ${before ?? lastId} order by id desc limit ${limit}`
        return rows.map(toRecord)
      }, orDie)

      const ofUser = Effect.fn("ToolCalls.ofUser")(function* (
        userId: UserId,
        before: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<StoredRow>`
          select * from kb.tool_calls where project_id = ${projectId} and user_id = ${userId}
            and id < ${before ?? lastId} order by id desc limit ${limit}`
        return rows.map(toRecord)
      }, orDie)

      const evidence = Effect.fn("ToolCalls.evidence")(function* (
        runId: RunId,
        wokenBy: ReadonlyArray<Evidence>
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<Evidence>`
          select object_id, type, version from (
            select distinct on (object_id, version) read ->> 'objectId' as object_id, read ->> 'type' as type,
              (read ->> 'version')::int as version, call.id as call_id
            from (
              select id, reads from kb.tool_calls where project_id = ${projectId} and run_id = ${runId} and reads <> '[]'
              order by id desc limit ${evidenceBounds.maxReads}
            ) call, jsonb_array_elements(reads) read
            where read -> 'objectId' is not null
            order by object_id, version, call.id desc
          ) newest order by call_id desc limit ${evidenceBounds.maxReads}`
        const shown = rows.map(({ objectId, type, version }) => ({ objectId, type, version }))
        return eachOnce([...shown, ...wokenBy.toReversed()])
      }, orDie)

      const lastRead = Effect.fn("ToolCalls.lastRead")(function* (
        runId: RunId,
        id: ObjectId | RelationshipId
      ) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ version: number | null }>`
          select max((read ->> 'version')::int) as version from kb.tool_calls, jsonb_array_elements(reads) read
          where project_id = ${projectId} and run_id = ${runId} and reads <> '[]'
            and coalesce(read ->> 'objectId', read ->> 'relationshipId') = ${id}`
        return row?.version ?? undefined
      }, orDie)

      return ToolCalls.of({
        keep,
        keeping,
        end,
        findClientCall,
        awaited,
        overdue,
        find,
        list,
        ofUser,
        evidence,
        lastRead
      })
    })
  )
}

/** Keeps each object version once, up to what a person can review. */
const eachOnce = (evidence: ReadonlyArray<Evidence>): ReadonlyArray<Evidence> =>
  [...new Map(evidence.map((read) => [`${read.objectId}@${read.version}`, read])).values()].slice(
    0,
    evidenceBounds.maxReads
  )

interface StoredRow extends ToolCallRow {
  readonly createdAt: Date
  readonly completedAt: Date | null
}

const toRecord = (row: StoredRow): RecordedCall => ({
  id: row.id,
  runId: row.runId,
  agentId: row.agentId,
  userId: row.userId,
  contextName: row.contextName,
  callId: row.callId,
  tool: row.tool,
  arguments: row.arguments,
  coerced: row.coerced,
  status: row.status,
  decision: row.decision,
  promotionId: row.promotionId,
  result: row.result,
  reads: row.reads,
  createdAt: row.createdAt.toISOString(),
  completedAt: row.completedAt?.toISOString() ?? null,
  durationMs: row.completedAt ? row.completedAt.getTime() - row.createdAt.getTime() : null
})

// Records calls that are answered without being made.
//
// The decider refuses a call, or a run ends with a pending call: one statement writes the event for the model and the record. A
// made call whose outcome is no longer needed keeps its record, with that status. A call whose id no record can hold, from a
// log of an earlier version, gets the event only.

type FailedCall = Extract<NewEvent, { readonly type: "ToolCallFailedEvent" }>

export const makeAbortedCalls = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids

  /** The records of pending calls that these events fail. */
  const unmade = Effect.fnUntraced(function* (
    pending: ReadonlyArray<ToolCall>,
    events: ReadonlyArray<NewEvent>
  ) {
    const answers = events.filter(
      (event): event is FailedCall => event.type === "ToolCallFailedEvent" && isRecorded(event.callId)
    )
    const calls = yield* Effect.forEach(answers, ({ callId, error, tool }) => {
      const asked = pending.find((call) => call.id === callId)
      const made = asked ? madeCall(asked) : { name: tool, arguments: {} }
      return Effect.map(ids.next, (id) => ({
        id,
        call: callId,
        tool: made.name,
        arguments: made.arguments,
        result: error
      }))
    })
    return calls.length === 0 ? undefined : calls
  })

  /** The fragment of an append that records them. */
  const recordingUnmade = sql`recorded as (
    insert into kb.tool_calls (id, project_id, run_id, agent_id, user_id, context_name, call_id, tool, arguments, status, decision, result, completed_at)
    select call.id, run.project_id, run.id, run.agent_id, run.user_id, run.context_name, call.call, call.tool, call.arguments, 'refused', 'refuse',
      call.result, now()
    from appended
    cross join lateral jsonb_to_recordset(appended.unmade) as call(id uuid, call text, tool text, arguments jsonb, result jsonb)
    join kb.agent_runs run on run.id = appended.run
    where appended.unmade is not null
    on conflict (run_id, call_id) do update set result = excluded.result, completed_at = now(),
      status = case when excluded.result ->> 'reason' = 'unknownOutcome' then 'unknown' else 'abandoned' end
      where tool_calls.status in ('started', 'abandoned'))`

  /** How a standalone append records them. */
  const recording = (run: RunId, pending: ReadonlyArray<ToolCall>, events: ReadonlyArray<NewEvent>) =>
    Effect.map(unmade(pending, events), (calls): Pick<Terms, "fields" | "alongside"> =>
      calls === undefined ? {} : { fields: { run, unmade: calls }, alongside: [recordingUnmade] }
    )

  return { unmade, recording, recordingUnmade }
})

const isRecorded = (callId: string): boolean => Buffer.byteLength(callId) <= toolLimits.callIdMaxBytes

// The log events of a call: started and ended.
//
// They carry the name that the model used. When the context defines that name, the event also names the tool called. Call
// records name the tool itself.

export const startedEvent = (
  { arguments: args, calledAs, coerced, id: callId, name }: MadeCall,
  waitsFor?: WaitsFor
): NewEvent => ({
  type: "ToolCallStartedEvent",
  callId,
  ...(calledAs === undefined
    ? { tool: name, arguments: args }
    : { tool: calledAs.name, arguments: calledAs.arguments, standsFor: { tool: name, arguments: args } }),
  ...(coerced === undefined ? {} : { coerced }),
  ...(waitsFor === undefined ? {} : { waitsFor })
})

export const endedEvent = (
  { calledAs, id: callId, name }: MadeCall,
  status: CallStatus,
  result: Schema.Json,
  pictures: ReadonlyArray<Picture> = []
): NewEvent => {
  const tool = calledAs?.name ?? name
  return status === "completed"
    ? { type: "ToolCallCompletedEvent", callId, tool, result, ...(pictures.length === 0 ? {} : { pictures }) }
    : { type: "ToolCallFailedEvent", callId, tool, error: result }
}

// Logs refused calls to the server's log.
//
// A missing right is an error that operators must see (S000-R27). An unknown tool is the model's mistake, which is answered and
// recorded.

/** Logs that an agent lacks a right. */
export const logRefusal = (
  principal: RunPrincipal,
  call: ToolCall,
  what: "An agent's change was refused" | "A call of a foreign tool was refused",
  reason: Schema.Json
): Effect.Effect<void> => Effect.logError(what, { ...told(principal, call), reason })

/** Logs that a model called a tool that its agent was not offered. */
export const logUnknownTool = (principal: RunPrincipal, call: ToolCall): Effect.Effect<void> =>
  Effect.logInfo("An agent called a tool that it does not have", told(principal, call))

const told = ({ agentId, agentName: agent, runId }: RunPrincipal, { name: tool }: ToolCall) => ({
  agent,
  agentId,
  runId,
  tool
})

// Formats a refusal for the caller.

/** The message, the reason for programs, and the place in the arguments when there is one. */
export const refusalText = ({ detail, pointer, reason }: ChangeRefused): Schema.Json => ({
  error: detail,
  reason,
  ...(pointer === undefined ? {} : { pointer })
})

// The effect of a tool call before it is recorded.

/** The gate's decision on a change; null for a tool that changes nothing. */
export type GateDecision = "execute" | "suggest" | "refuse"

/** A version of an object or relationship shown to the model. */
export type Read =
  | Evidence
  | { readonly relationshipId: string; readonly type: string; readonly version: number }

/** A tool's answer, and what it showed to the model. */
export interface ToolEffect {
  readonly result: Schema.Json
  readonly decision: GateDecision | null
  readonly reads: ReadonlyArray<Read>
  /** The promotion that allowed the change; absent when mode and confidence sufficed. */
  readonly promotionId?: PromotionId
  /** The untrusted sources of the answer. */
  readonly taint?: ReadonlyArray<TaintSource>
  /** Who supplies the outcome later; absent when `result` is the outcome. */
  readonly waitsFor?: WaitsFor
  /** Time limit of a client in milliseconds. */
  readonly answerWithinMs?: number
}

/** A failed call with its result for the model; its writes are rolled back. */
export class ToolFailed extends Schema.TaggedError<ToolFailed>()("ToolFailed", { result: Schema.Json }) {}
