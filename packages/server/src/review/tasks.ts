/**
 * What waits for people: suggested by agents, read and decided by a person.
 *
 * The verbs of a task lie in files of their own: `suggesting.ts` puts a change
 * before people, `deciding.ts` takes the decision, `reading.ts` reads.
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
    /** Lets a change wait for people: in a task of its own, or in the one in which its agent suggests the same already. */
    readonly suggest: (suggestion: Suggestion) => Effect.Effect<Suggested, ChangeRefused, ProjectTransaction>
    /** A task of the project, or a todo of the reader. */
    readonly get: (id: TaskId, reader: UserId) => Read<Task | undefined>
    /** What `get` finds, which nobody else changes for the rest of the transaction. */
    readonly hold: (id: TaskId, reader: UserId) => Read<Task | undefined>
    /** The tasks of the project and the todos of the reader, newest first. */
    readonly list: (
      filter: TaskFilter,
      reader: UserId,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Task>>
    /** The first suggestions of a run that wait for a decision, oldest first. */
    readonly undecidedOf: (runId: RunId, limit: number) => Read<ReadonlyArray<SuggestionTask>>
    /** What a suggestion said before it was refined, newest first. */
    readonly revisions: (
      id: TaskId,
      before: number | undefined,
      limit: number
    ) => Read<ReadonlyArray<TaskRevision>>
    /** Says for whom, or until when, a suggestion or a question waits; undefined when there is no such task. */
    readonly wait: (
      id: TaskId,
      by: UserId,
      terms: Wait
    ) => Effect.Effect<Task | undefined, DecisionRefused, ProjectTransaction>
    /** Ends the wait of suggestions whose time is up, a batch of them; answers how many. */
    readonly expire: Read<number>
    /** Makes the suggested change, or takes back what an undo plans; undefined when there is no such task. */
    readonly approve: (
      id: TaskId,
      by: Decider,
      digest: string | null,
      edit: Edit | null,
      /** Ids of the items of an undo that stay as they are. */
      leaveOut?: ReadonlyArray<string>
    ) => Effect.Effect<Task | undefined, DecisionRefused | UndoRefused | ChangeRefused, ProjectTransaction>
    /** Ends the task with no change; undefined when there is no such task. */
    readonly reject: (
      id: TaskId,
      by: Decider,
      reason: string | null,
      digest?: string | null
    ) => Effect.Effect<Task | undefined, DecisionRefused, ProjectTransaction>
    /** Rejects every suggestion of an agent that waits, also of one that was deleted; undefined when there is no such agent. */
    readonly rejectAll: (
      agentId: AgentId,
      by: UserId,
      reason: string | null
    ) => Read<ReadonlyArray<TaskId> | undefined>
    /** Names the run that looks at a suggestion again; false when it does not wait, another looks already, or somebody holds it. */
    readonly rerunBy: (id: TaskId, runId: RunId) => Read<boolean>
    /** Whether the time of a task that waits is up. */
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

// For whom a task waits, and for how long.
//
// Time is the database's. Whose time is up can be decided no more, whether or
// not the sweep that says so has come by: `deciding.ts` asks the same clock.

/** What somebody says of the wait of a task; absent stays, null is nobody and never. */
interface Wait {
  readonly assignee?: UserId | null
  readonly expiresAt?: string | null
}

/** The verbs of `Tasks` by which the wait of a task changes, or ends. */
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
    // What is open and was not changed is either over or was given a time that is.
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

// Says of a suggestion which run looks at it again.
//
// One at a time: of two runs that are named at once the second is not, and
// whoever queued it takes it back. A decided suggestion is looked at no more.

const makeRerunning = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /**
   * Names the run that looks at a suggestion again; false when it does not wait, another looks already, or somebody holds it.
   *
   * **Details** The agent is held, and whoever decides the suggestion holds that and then wants the agent.
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

  /** Whether the time of a task that waits is up, said by the database's clock. */
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
// A later run may have said the same again and so have made the task its own: it is told of both.

export const makeSuggestedTasks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The newest first, bounded. */
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
