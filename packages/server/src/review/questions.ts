/**
 * Questions that agents ask people.
 *
 * **Invariant** Each verb names the state it leaves, so one of a hundred concurrent answers wins. The effect of an
 * answer on the waiting run is not known here.
 */
import type { AgentId, GraphEventId, RunId, TaskId, ToolCallId, UserId } from "@tropism/domain/ids"
import { canonicalJson } from "@tropism/domain/json"
import type { QuestionPayload, TaskStatus } from "@tropism/domain/task"
import { shortened } from "@tropism/domain/text-beginning"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { Notifier } from "../outbox/notifier.ts"
import { taskLimits } from "./limits.ts"
import { digestOf } from "./task-digest.ts"
import { makeTaskReading } from "./task-queries.ts"

/** A question of an agent. */
export interface NewQuestion {
  readonly question: string
  readonly options: ReadonlyArray<string> | null
  readonly agentId: AgentId
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly rootEventId: GraphEventId
  readonly depth: number
}

/** A question with the model's id of the call that asked it. */
export interface AskedQuestion {
  readonly id: TaskId
  readonly number: number
  readonly status: TaskStatus
  readonly payload: QuestionPayload
  readonly resolvedBy: UserId | null
  readonly callId: string
  readonly tool: string
}

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class QuestionTasks extends Context.Service<
  QuestionTasks,
  {
    readonly ask: (question: NewQuestion) => InProject<{ readonly id: TaskId; readonly number: number }>
    /** The open questions of a run, oldest first. */
    readonly pending: (runId: RunId) => InProject<ReadonlyArray<AskedQuestion>>
    /**
     * An agent's open questions in a person's own contexts with this name prefix, by context, newest first; searches only the
     * agent's newest tasks.
     */
    readonly asked: (
      agentId: AgentId,
      owner: UserId,
      prefix: string
    ) => InProject<
      ReadonlyArray<{ readonly contextName: string; readonly questions: ReadonlyArray<QuestionPayload> }>
    >
    /** A question of a run in any state. */
    readonly find: (runId: RunId, id: TaskId) => InProject<AskedQuestion | undefined>
    /** Stores the answer; false when the question is no longer open. */
    readonly answer: (id: TaskId, by: UserId, answer: string) => InProject<boolean>
  }
>()("@tropism/server/task/QuestionTasks") {
  static readonly layer = Layer.effect(
    QuestionTasks,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const notifier = yield* Notifier
      const { nextNumber } = yield* makeTaskReading

      const ask = Effect.fn("QuestionTasks.ask")(function* (asked: NewQuestion) {
        const { projectId } = yield* ProjectTransaction
        const id = (yield* ids.next) as TaskId
        const number = yield* nextNumber
        const { agentId, options, question, runId } = asked
        const payload: QuestionPayload = {
          agentId,
          agentRunId: runId,
          question,
          ...(options === null ? {} : { options })
        }
        yield* sql`
          insert into kb.tasks (id, project_id, number, type, title, payload, digest, agent_id, run_id, tool_call_id, evidence, root_event_id, depth)
          values (${id}, ${projectId}, ${number}, 'question', ${titleOf(question)}, ${JSON.stringify(payload)}::text::jsonb,
            ${yield* digestOf(canonicalJson({ question, options }))}, ${agentId}, ${runId}, ${asked.toolCallId}, '[]', ${asked.rootEventId},
            ${asked.depth})`
        return { id, number }
      }, orDie)

      const select = (runId: RunId, which: ReturnType<typeof sql.and>) =>
        Effect.map(
          sql<Omit<AskedQuestion, "number"> & { readonly number: bigint }>`
            select task.id, task.number, task.status, task.payload, task.resolved_by, call.call_id, coalesce(call.result ->> 'calledAs', call.tool) as tool
            from kb.tasks task join kb.tool_calls call on call.id = task.tool_call_id
            where task.run_id = ${runId} and task.type = 'question' and ${which} order by task.id`,
          (rows) => rows.map((row): AskedQuestion => ({ ...row, number: Number(row.number) }))
        )

      const pending = Effect.fn("QuestionTasks.pending")(
        (runId: RunId) => select(runId, sql`task.status = 'pending'`),
        orDie
      )

      const asked = Effect.fn("QuestionTasks.asked")(function* (
        agentId: AgentId,
        owner: UserId,
        prefix: string
      ) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<{
          readonly contextName: string
          readonly questions: ReadonlyArray<QuestionPayload>
        }>`
          select run.context_name, jsonb_agg(task.payload order by task.id) as questions
          from (
            select id, number, run_id, type, payload from kb.tasks where agent_id = ${agentId} and status = 'pending'
            order by id desc limit ${taskLimits.questionsLookedThrough}::int
          ) task
            join kb.agent_runs run on run.id = task.run_id
            join kb.contexts context on context.project_id = ${projectId} and context.name = run.context_name
          where task.type = 'question' and context.owner = ${owner} and starts_with(run.context_name, ${prefix})
          group by run.context_name order by max(task.number) desc`
      }, orDie)

      const find = Effect.fn("QuestionTasks.find")(function* (runId: RunId, id: TaskId) {
        const [question] = yield* select(runId, sql`task.id = ${id}`)
        return question
      }, orDie)

      const answer = Effect.fn("QuestionTasks.answer")(function* (id: TaskId, by: UserId, text: string) {
        const { projectId } = yield* ProjectTransaction
        const answered = yield* sql<{ readonly runId: RunId }>`
          update kb.tasks set status = 'completed', resolved_by = ${by}, resolved_at = now(),
            payload = payload || ${JSON.stringify({ answer: text })}::text::jsonb
          where id = ${id} and project_id = ${projectId} and type = 'question' and status = 'pending' returning run_id`
        for (const { runId } of answered) yield* sql.afterCommit(notifier.signal(`run:${runId}`))
        return answered.length > 0
      }, orDie)

      return QuestionTasks.of({ ask, pending, asked, find, answer })
    })
  )
}

/** Returns the question's first line, shortened for a list. */
const titleOf = (question: string): string => {
  const [line = ""] = question.trim().split("\n", 1)
  return line.length <= taskLimits.titleMaxChars ? line : shortened(line, taskLimits.titleMaxChars - 1)
}

// Closes what a run no longer waits for.
//
// The question expires and its call is aborted in the transaction that ends the wait. Lock order: the run and its log, then its
// tasks, as in an answer.

export const makeDropping = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** Expires the questions of runs that ended or pause for another reason, and aborts their calls of client tools. */
  const dropQuestions = Effect.fnUntraced(function* (runIds: ReadonlyArray<RunId>) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      with expired as (
        update kb.tasks set status = 'expired', resolved_at = now()
        where project_id = ${projectId} and run_id = any(${runIds}::uuid[]) and type = 'question' and status = 'pending'
        returning tool_call_id
      )
      update kb.tool_calls call set status = 'abandoned', completed_at = now() from expired
      where call.id = expired.tool_call_id and call.status = 'started'`
    yield* sql`
      update kb.tool_calls set status = 'abandoned', completed_at = now()
      where project_id = ${projectId} and run_id = any(${runIds}::uuid[]) and status = 'started' and answer_due_at is not null`
  })

  /** Expires the question of one call, if any. */
  const dropQuestion = Effect.fnUntraced(function* (runId: RunId, callId: string) {
    yield* sql`
      update kb.tasks task set status = 'expired', resolved_at = now() from kb.tool_calls call
      where call.run_id = ${runId} and call.call_id = ${callId} and task.run_id = ${runId} and task.tool_call_id = call.id
        and task.type = 'question' and task.status = 'pending'`
  }, orDie)

  return { dropQuestions, dropQuestion }
})
