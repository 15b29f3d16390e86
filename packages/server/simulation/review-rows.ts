/**
 * What a simulation has left of review: tasks, what people decided, earned and took back, and what was only tried out.
 */
import type { Change } from "@tropism/domain/change"

export interface DenialRow {
  readonly runId: string
  readonly toolCallId: string | null
  readonly taskId: string | null
}

/** For what an agent version is trusted, or was. */
export interface PromotionRow {
  readonly id: string
  readonly agentId: string
  readonly agentVersion: number
  readonly operation: string
  readonly objectType: string
  readonly reviews: number
  readonly acceptanceRate: number
  readonly taskId: string
  readonly promotedAt: Date
  readonly endedAt: Date | null
  readonly endReason: string | null
}

/** What people said of an agent version's suggestions of one kind. */
export interface ReviewRow {
  readonly agentId: string
  readonly agentVersion: number
  readonly operation: string
  readonly objectType: string
  readonly accepted: number
  readonly edited: number
  readonly rejected: number
}

export interface TodoRow {
  readonly owner: string
  readonly ordinal: number
  readonly type: string
  readonly status: string
  readonly resolvedBy: string | null
}

export interface TodoCounterRow {
  readonly owner: string
  readonly last: number
}

export interface TaskRow {
  readonly isDeleted: boolean
  readonly id: string
  /** The number by which people name it. */
  readonly ordinal: number
  readonly type: string
  readonly status: string
  readonly agentId: string
  readonly agentVersion: number | null
  readonly runId: string
  readonly toolCallId: string
  /** What a suggestion is about, and what it says. */
  readonly subject: string | null
  readonly payload: { readonly suggestedChanges?: Change }
  readonly revision: number
  /** The version of its target that its agent had seen. */
  readonly baseVersion: number | null
  readonly expiresAt: Date | null
  readonly createdAt: Date
  readonly refinedAt: Date | null
  readonly resolvedBy: string | null
  readonly outcome: { readonly entityId: string; readonly version: number; readonly change: string } | null
}

/** What a suggestion said before it was refined. */
export interface RevisionRow {
  readonly taskId: string
  readonly revision: number
  readonly toolCallId: string
}

/** What an undo's present plan says of one object or relationship. */
export interface UndoItemRow {
  readonly taskId: string
  readonly entityId: string
  readonly action: string
  readonly status: string
  readonly leftOut: boolean
  readonly properties: ReadonlyArray<{
    readonly property: string
    readonly status: string
    readonly backVersion: number
  }>
}

/** A trial of an agent over what had happened. */
export interface BacktestRow {
  readonly id: string
  readonly status: string
  /** Why it ended before its time. */
  readonly detail: string | null
}

/** An event over which a backtest ran its agent. */
export interface BacktestEventRow {
  readonly backtestId: string
  readonly number: number
  readonly runId: string | null
}

/** What a backtest's run would have suggested. */
export interface WouldBeRow {
  readonly backtestId: string
  readonly runId: string
  readonly toolCallId: string
}

export interface ReviewRows {
  readonly denials: ReadonlyArray<DenialRow>
  readonly tasks: ReadonlyArray<TaskRow>
  readonly todos: ReadonlyArray<TodoRow>
  readonly todoCounters: ReadonlyArray<TodoCounterRow>
  readonly revisions: ReadonlyArray<RevisionRow>
  readonly promotions: ReadonlyArray<PromotionRow>
  readonly reviews: ReadonlyArray<ReviewRow>
  readonly undoItems: ReadonlyArray<UndoItemRow>
  readonly backtests: ReadonlyArray<BacktestRow>
  readonly backtestEvents: ReadonlyArray<BacktestEventRow>
  readonly wouldBes: ReadonlyArray<WouldBeRow>
}

/** Each query answers the columns of one of the rows above; `$1` is the project. */
export const reviewQueries = {
  denials: `select * from kb.denials where project_id = $1`,
  tasks: `select *, number::int as ordinal, deleted_at is not null as is_deleted from kb.tasks where project_id = $1 and owner = '' order by kb.tasks.number`,
  todos: `select owner, number::int as ordinal, type, status, resolved_by from kb.tasks where project_id = $1 and owner <> '' order by owner, number`,
  todoCounters: `select owner, last_number::int as last from kb.todo_counters where project_id = $1`,
  revisions: `select * from kb.task_revisions where project_id = $1 order by task_id, revision`,
  promotions: `select * from kb.promotions where project_id = $1 order by id`,
  reviews: `select * from kb.review_records where project_id = $1 order by agent_id, agent_version, operation, object_type`,
  undoItems: `select item.* from kb.undo_items item join kb.tasks task on task.id = item.task_id and task.revision = item.revision
    where item.project_id = $1 order by item.task_id, item.place`,
  backtests: `select id, status, detail from kb.backtests where project_id = $1 order by id`,
  backtestEvents: `select * from kb.backtest_events where project_id = $1 order by backtest_id, number`,
  wouldBes: `select * from kb.backtest_suggestions where project_id = $1 order by tool_call_id`
}
