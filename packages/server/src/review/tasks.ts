/**
 * Tasks for people: suggested by agents, read and decided by a person.
 *
 * `suggestions.ts` submits a change, `decisions.ts` decides, `task-queries.ts` reads.
 */
import type { AgentId, RunId, TaskId, UserId } from "@tropism/domain/ids"
import { type RunObjects, runObjectBounds } from "@tropism/domain/run-objects"
import {
  type SuggestionTask,
  type Task,
  type TaskRevision,
  AssignableType,
  isQuestion,
  isSuggestion,
  isTodo
} from "@tropism/domain/task"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction, orDie } from "../database/database.ts"
import type { ChangeRefused } from "../graph/change-refused.ts"
import { makeTrustCounts } from "./autonomy.ts"
import { type Decider, DecisionRefused, type Edit, makeDecisions, notOpen } from "./decisions.ts"
import { reviewLimits } from "./limits.ts"
import { makeSuggestions, type Suggested, type Suggestion } from "./suggestions.ts"
import { makeTaskReading, type TaskFilter } from "./task-queries.ts"
import type { UndoRefused } from "./undo-plan.ts"

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class Tasks extends Context.Service<
  Tasks,
  {
    /** Submits a change for review: as a new task, or as a refinement of the agent's open one on the subject. */
    readonly suggest: (suggestion: Suggestion) => Effect.Effect<Suggested, ChangeRefused, ProjectTransaction>
    /** Returns a task of the project or a todo of the reader. */
    readonly get: (id: TaskId, reader: UserId) => Read<Task | undefined>
    /** Like `get`, with the task locked for the rest of the transaction. */
    readonly hold: (id: TaskId, reader: UserId) => Read<Task | undefined>
    /** The tasks of the project and the todos of the reader, newest first. */
    readonly list: (
      filter: TaskFilter,
      reader: UserId,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Task>>
    /** The first undecided suggestions of a run, oldest first. */
    readonly undecidedOf: (runId: RunId, limit: number) => Read<ReadonlyArray<SuggestionTask>>
    /** Earlier contents of a refined suggestion, newest first. */
    readonly revisions: (
      id: TaskId,
      before: number | undefined,
      limit: number
    ) => Read<ReadonlyArray<TaskRevision>>
    /** Sets the assignee or the deadline of a suggestion or question; undefined when there is no such task. */
    readonly wait: (
      id: TaskId,
      by: UserId,
      terms: Wait
    ) => Effect.Effect<Task | undefined, DecisionRefused, ProjectTransaction>
    /** Expires a batch of overdue suggestions and returns how many. */
    readonly expire: Read<number>
    /** Applies the suggested change or the planned undo; undefined when there is no such task. */
    readonly approve: (
      id: TaskId,
      by: Decider,
      digest: string | null,
      edit: Edit | null,
      /** Ids of undo items to leave out. */
      leaveOut?: ReadonlyArray<string>
    ) => Effect.Effect<Task | undefined, DecisionRefused | UndoRefused | ChangeRefused, ProjectTransaction>
    /** Closes the task without a change; undefined when there is no such task. */
    readonly reject: (
      id: TaskId,
      by: Decider,
      reason: string | null,
      digest?: string | null
    ) => Effect.Effect<Task | undefined, DecisionRefused, ProjectTransaction>
    /** Rejects all open suggestions of an agent, even a deleted one; undefined when there is no such agent. */
    readonly rejectAll: (
      agentId: AgentId,
      by: UserId,
      reason: string | null
    ) => Read<ReadonlyArray<TaskId> | undefined>
    /** Sets the run that re-examines a suggestion; false when it is not open, has such a run, or is locked. */
    readonly rerunBy: (id: TaskId, runId: RunId) => Read<boolean>
    /** Whether an open task is overdue. */
    readonly isOver: (id: TaskId) => Read<boolean>
  }
>()("@tropism/server/task/Tasks") {
  static readonly layer = Layer.effect(
    Tasks,
    Effect.gen(function* () {
      const { get, hold, list, revisions, undecidedOf } = yield* makeTaskReading
      const { suggest } = yield* makeSuggestions
      const { wait, expire } = yield* makeWaiting
      const { approve, reject, rejectAll } = yield* makeDecisions
      const { isOver, rerunBy } = yield* makeRerunning
      return Tasks.of({
        suggest,
        get,
        hold,
        list,
        undecidedOf,
        revisions,
        wait,
        expire,
        approve,
        reject,
        rejectAll,
        rerunBy,
        isOver
      })
    })
  )
}

// Assignee and deadline of a task.
//
// The database clock decides. An overdue task cannot be decided, even before the sweep marks it expired: `decisions.ts` uses
// the same clock.

/** New assignee and deadline; absent keeps the old value, null clears it. */
interface Wait {
  readonly assignee?: UserId | null
  readonly expiresAt?: string | null
}

/** The verbs of `Tasks` that change or end a task's wait. */
const makeWaiting = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const { get } = yield* makeTaskReading
  const { expired: countExpired } = yield* makeTrustCounts

  const wait = Effect.fn("Tasks.wait")(function* (id: TaskId, by: UserId, terms: Wait) {
    const { projectId } = yield* ProjectTransaction
    const { assignee, expiresAt } = terms
    const [changed] = yield* sql`
      update kb.tasks set assignee = case when ${assignee !== undefined} then ${assignee ?? null} else assignee end,
        expires_at = case when ${expiresAt !== undefined} then ${expiresAt ?? null}::timestamptz else expires_at end
      where id = ${id} and project_id = ${projectId} and owner = '' and status = 'pending' and type = any(${AssignableType.literals}::text[])
        and (expires_at is null or expires_at > now())
        and (${expiresAt ?? null}::timestamptz is null or (${expiresAt ?? null}::timestamptz > now() and type <> 'question')) returning id`
    const task = yield* get(id, by)
    if (!task || changed) return task
    if (isTodo(task) || !(isQuestion(task) || isSuggestion(task)))
      return yield* new DecisionRefused({
        reason: "notAssignable",
        detail: `Task ${task.number} is not for somebody else: only a suggestion or a question is assigned`
      })
    if (task.status !== "pending") return yield* notOpen(task)
    if (isQuestion(task))
      return yield* new DecisionRefused({
        reason: "expiresAt",
        detail: "A question waits as long as its run does, and no time can be set for it"
      })
    // An open task that was not updated is either overdue or was given a deadline in the past.
    const [row] = yield* sql<{ isOver: boolean }>`
      select coalesce(expires_at <= now(), false) as is_over from kb.tasks where id = ${id}`
    return yield* row?.isOver === true
      ? notOpen(task)
      : new DecisionRefused({ reason: "expiresAt", detail: "This instant is over: name one that is to come" })
  }, orDie)

  const expire = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    const expired = yield* sql<{ id: TaskId }>`
      update kb.tasks set status = 'expired', resolved_at = now(), resolution_note = 'Nobody decided it in time'
      where status = 'pending' and expires_at <= now() and id = any(array(
        select id from kb.tasks where project_id = ${projectId} and status = 'pending' and expires_at <= now()
        order by expires_at, id limit ${reviewLimits.expiryBatchTasks} for update skip locked
      )) returning id`
    if (expired.length > 0) yield* countExpired(expired.map(({ id }) => id))
    return expired.length
  }).pipe(Effect.withSpan("Tasks.expire"), orDie)

  return { wait, expire }
})

// Sets the run that re-examines a suggestion.
//
// One at a time: of two concurrent runs the second is refused, and its creator cancels it. Decided suggestions are not
// re-examined.

const makeRerunning = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /**
   * Sets the run that re-examines a suggestion; false when it is not open, has such a run, or is locked.
   *
   * **Details** Skips a locked row: this transaction holds the agent, and a decision locks the suggestion first and then the
   * agent.
   */
  const rerunBy = Effect.fn("Tasks.rerunBy")(function* (id: TaskId, runId: RunId) {
    const { projectId } = yield* ProjectTransaction
    const named = yield* sql`
      update kb.tasks set rerun_id = ${runId} where id = any(array(
        select id from kb.tasks where id = ${id} and project_id = ${projectId} and status = 'pending'
          and (expires_at is null or expires_at > now())
          and not exists (select 1 from kb.agent_runs run where run.id = rerun_id and run.status in ('queued', 'running', 'paused'))
        for no key update skip locked))
      returning id`
    return named.length > 0
  }, orDie)

  /** Whether an open task is overdue by the database clock. */
  const isOver = Effect.fn("Tasks.isOver")(function* (id: TaskId) {
    const { projectId } = yield* ProjectTransaction
    const over = yield* sql`
      select 1 from kb.tasks where id = ${id} and project_id = ${projectId} and status = 'pending' and expires_at <= now()`
    return over.length > 0
  }, orDie)

  return { rerunBy, isOver }
})

// Reads which suggestions the calls of a run led to.
//
// A later run may have refined the suggestion and taken it over; both runs return it.

export const makeSuggestedTasks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Newest first, bounded. */
  return Effect.fnUntraced(function* (runId: RunId) {
    const { projectId } = yield* ProjectTransaction
    return yield* sql<RunObjects["suggested"][number]>`
      select task.id as task_id, task.number::int, task.title, task.status from kb.tasks task
      where task.project_id = ${projectId} and task.id = any(array(
        select (result ->> 'taskId')::uuid from kb.tool_calls
        where project_id = ${projectId} and run_id = ${runId} and decision = 'suggest' and result ? 'taskId'))
      order by task.id desc limit ${runObjectBounds.maxRows}`
  })
})
