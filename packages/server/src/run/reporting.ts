/**
 * Tells a run what came of a run that it spawned.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * In the transaction in which the child comes to rest: the outcome of the call
 * that spawned it, the event that tells the parent's model, and the parent's
 * return to the queue are there with the child's end, or none is. The call's
 * state decides that it is told once. What a tainted child says taints its
 * parent. The child's rows are held before the
 * parent's, always.
 */
import type { ContextName, NewEvent } from "@tropism/domain/context-event"
import type { RunId } from "@tropism/domain/ids"
import type { PauseReason, RunStatus } from "@tropism/domain/run"
import { beginningTold } from "@tropism/domain/text-beginning"
import { Effect, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Contexts } from "../agent/contexts.ts"
import { CrashPoint } from "../crash-point.ts"
import { ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { ToolCalls } from "../tool/tool-calls.ts"

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

export const makeReporting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const wakeUps = yield* WakeUps
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
    if (woken.length > 0) yield* sql.afterCommit(wakeUps.signal("runs"))
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
