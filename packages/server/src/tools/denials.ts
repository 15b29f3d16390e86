/**
 * Records denials: who tried what, through which endpoint, and why it was refused.
 *
 * A call's denial is written in the transaction that records the call. An approval is rolled back, so its denial is
 * committed afterwards; a crash in between leaves neither.
 */
import type { Denial, DenialReason } from "@tropism/domain/denial"
import type { AgentId, DenialId, RunId, TaskId, ToolCallId, UserId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import type { ToolCall } from "@tropism/domain/message"
import { shortened } from "@tropism/domain/text-beginning"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import type { ChangeRefused } from "../graph/change-refused.ts"
import { Ids } from "../ids.ts"
import { toolLimits } from "../limits.ts"
import { changeAskedFor } from "./graph-effects.ts"
import type { RunPrincipal } from "./principal.ts"

/** The reason for a denial. */
export interface Why {
  readonly reason: DenialReason
  readonly detail: string
}

/** Returns the missing right behind a refusal; undefined for a mere mistake. */
export const whyDenied = ({ detail, reason }: ChangeRefused): Why | undefined => {
  switch (reason) {
    case "notPermitted":
    case "untrusted":
    case "agentDisabled":
    case "tooManySuggestions":
    case "rejectedBefore":
      return { reason, detail }
    default:
      return undefined
  }
}

/** Whether a right was missing, which operators must see. */
export const lacksRight = ({ reason }: ChangeRefused): boolean =>
  reason === "notPermitted" || reason === "untrusted" || reason === "agentDisabled"

/** Filter of a list; all conditions must hold. */
export interface DenialFilter {
  readonly agentId: AgentId | undefined
  readonly runId: RunId | undefined
}

export class Denials extends Context.Service<
  Denials,
  {
    /** Records that a call was denied, in the transaction that records the call. */
    readonly ofCall: (
      principal: RunPrincipal,
      id: ToolCallId,
      call: ToolCall,
      why: Why
    ) => Effect.Effect<void, never, ProjectTransaction>
    /** Records that an approval was denied, with the properties that the person wanted to write. */
    readonly ofApproval: (
      taskId: TaskId,
      by: UserId,
      edited: Properties | null,
      why: Why
    ) => Effect.Effect<void, never, ProjectTransaction>
    /** Records that a person's own call was denied, in the transaction that records the call. */
    readonly ofPerson: (
      by: UserId,
      id: ToolCallId,
      call: Pick<ToolCall, "name" | "arguments">,
      why: Why
    ) => Effect.Effect<void, never, ProjectTransaction>
    /** Newest first, after the one whose id is `before`. */
    readonly list: (
      filter: DenialFilter,
      before: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<Denial>, never, ProjectTransaction>
  }
>()("@tropism/server/tool/Denials") {
  static readonly layer = Layer.effect(
    Denials,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const nextId = Effect.map(ids.next, (id) => id as DenialId)

      const ofCall = Effect.fn("Denials.ofCall")(function* (
        { runId, userId }: RunPrincipal,
        id: ToolCallId,
        { arguments: args, name: tool }: ToolCall,
        { detail, reason }: Why
      ) {
        const { projectId } = yield* ProjectTransaction
        const change = yield* changeAskedFor(tool, args)
        yield* sql`
          insert into kb.denials (id, project_id, door, agent_id, run_id, user_id, tool_call_id, tool, change, reason, detail)
          select ${yield* nextId}, project_id,
            case when parent_run_id is not null then 'subAgent' when trigger_type = 'context' then 'chat' else 'run' end,
            agent_id, id, ${userId}, ${id}, ${tool}, ${change && JSON.stringify(change)}::text::jsonb, ${reason}, ${shown(detail)}
          from kb.agent_runs where id = ${runId} and project_id = ${projectId}`
      }, orDie)

      const ofApproval = Effect.fn("Denials.ofApproval")(function* (
        taskId: TaskId,
        by: UserId,
        edited: Properties | null,
        { detail, reason }: Why
      ) {
        const { projectId } = yield* ProjectTransaction
        yield* sql`
          insert into kb.denials (id, project_id, door, agent_id, run_id, user_id, task_id, tool_call_id, tool, change, reason, detail)
          select ${yield* nextId}, task.project_id, 'approval', task.agent_id, task.run_id, ${by}, task.id, task.tool_call_id, call.tool,
            (task.payload -> 'suggestedChanges') || ${JSON.stringify(edited === null ? {} : { data: edited })}::text::jsonb, ${reason}, ${shown(detail)}
          from kb.tasks task join kb.tool_calls call on call.id = task.tool_call_id
          where task.id = ${taskId} and task.project_id = ${projectId} and task.payload ? 'suggestedChanges'`
      }, orDie)

      const ofPerson = Effect.fn("Denials.ofPerson")(function* (
        by: UserId,
        id: ToolCallId,
        { arguments: args, name: tool }: Pick<ToolCall, "name" | "arguments">,
        { detail, reason }: Why
      ) {
        const { projectId } = yield* ProjectTransaction
        const change = yield* changeAskedFor(tool, args)
        yield* sql`
          insert into kb.denials (id, project_id, door, user_id, tool_call_id, tool, change, reason, detail)
          values (${yield* nextId}, ${projectId}, 'mcp', ${by}, ${id}, ${tool}, ${change && JSON.stringify(change)}::text::jsonb,
            ${reason}, ${shown(detail)})`
      }, orDie)

      const list = Effect.fn("Denials.list")(function* (
        { agentId, runId }: DenialFilter,
        before: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<DenialRow>`
          select denial.*, agent.name as agent_name from kb.denials denial left join kb.agents agent on agent.id = denial.agent_id
          where ${sql.and([
            sql`denial.project_id = ${projectId}`,
            ...(agentId === undefined ? [] : [sql`denial.agent_id = ${agentId}`]),
            ...(runId === undefined ? [] : [sql`denial.run_id = ${runId}`]),
            ...(before === undefined ? [] : [sql`denial.id < ${before}::uuid`])
          ])} order by denial.id desc limit ${limit}`
        return rows.map(toDenial)
      }, orDie)

      return Denials.of({ ofCall, ofApproval, ofPerson, list })
    })
  )
}

/** A sentence may quote a text of any length, so it is shortened. */
const shown = (detail: string): string => shortened(detail, toolLimits.denialDetailMaxChars)

interface DenialRow extends Omit<Denial, "at"> {
  readonly at: Date
}

const toDenial = (row: DenialRow): Denial => ({
  id: row.id,
  at: row.at.toISOString(),
  door: row.door,
  agentId: row.agentId,
  agentName: row.agentName,
  runId: row.runId,
  userId: row.userId,
  taskId: row.taskId,
  toolCallId: row.toolCallId,
  tool: row.tool,
  change: row.change,
  reason: row.reason,
  detail: row.detail
})
