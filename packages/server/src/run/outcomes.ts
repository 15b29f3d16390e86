/**
 * The verbs by which a run comes to rest, together with its processing entries.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Each is one statement on the run, which decides the race; its entries end in
 * the same transaction. Skipped work is never recorded as done.
 */
import type { SoftStopReason } from "@tropism/domain/context-event"
import type { RunId, UserId } from "@tropism/domain/ids"
import type { PauseReason, RunFailure } from "@tropism/domain/run"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { makeFailureStreaks } from "../agent/failure-streaks.ts"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { makeDropping } from "../task/dropping.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { makeCountingRuns, type RestedRun } from "./counting-runs.ts"
import { makeHolding } from "./holding.ts"
import { makeSettling, type RestingRun } from "./settling.ts"

/** By whom a run is cancelled, or why: the server always says why, and a person need not. */
export type Cancellation =
  | { readonly by: UserId; readonly because?: string }
  | { readonly by?: never; readonly because: string }

/** Why a run is paused whose open calls are answered by others; its own time counts only while it waits for other runs. */
export type WaitReason = Extract<PauseReason, "question" | "subAgents" | "toolResult">

export const makeOutcomes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const wakeUps = yield* WakeUps
  const { found, held, holdParents, isOvertime } = yield* makeHolding
  const { countFailures } = yield* makeFailureStreaks
  const { settleRuns } = yield* makeSettling
  const { countRested, rested } = yield* makeCountingRuns
  const { dropQuestions } = yield* makeDropping

  const resting = ({ ancestors, id }: ClaimedRun): RestingRun => ({
    id,
    parentRunId: ancestors.at(-1) ?? null
  })
  const tellEnd = (run: Pick<ClaimedRun, "id" | "backtestId">) =>
    Effect.andThen(
      wakeUps.signal(`run:${run.id}`),
      run.backtestId === null ? Effect.void : wakeUps.signal("backtests")
    )
  const ended = (run: Pick<ClaimedRun, "id" | "backtestId">) => sql.afterCommit(tellEnd(run))

  const completed = (summary: string) =>
    sql`status = 'completed', summary = nullif(${summary}, ''), completed_at = now(), attempt_token = null`
  /** What a real run does well makes good what its agent did badly before. */
  const forgiven = ({ backtestId }: ClaimedRun) => sql`forgiven as (
      update kb.agents agent set consecutive_failures = 0 from ended
      where agent.id = ended.agent_id and consecutive_failures > 0 and ${backtestId === null}::boolean returning agent.id)`
  const complete = Effect.fn("Runs.complete")(function* (run: ClaimedRun, summary: string) {
    yield* Effect.flatMap(
      Effect.tap(
        sql<RestedRun>`
        with ended as (
          update kb.agent_runs set ${completed(summary)} where ${held(run)} returning id, agent_id, ${rested}
        ), ${forgiven(run)}
        select id, trigger_type, ran_ms from ended`,
        countRested("completed")
      ),
      found(run.id)
    )
    yield* settleRuns([resting(run)], { status: "completed", message: null })
    yield* ended(run)
  }, orDie)

  const fail = Effect.fn("Runs.fail")(function* (
    run: ClaimedRun,
    reason: RunFailure,
    message: string,
    summary: string,
    isBlameless = false
  ) {
    const text = beginningOf(message, runLimits.errorMaxChars)
    yield* Effect.flatMap(
      Effect.tap(
        sql<RestedRun>`
        update kb.agent_runs set status = 'failed', error_message = ${text}, failure_reason = ${reason}, completed_at = now(), attempt_token = null,
          summary = coalesce(nullif(partial_text, ''), nullif(${summary}, '')), partial_text = null
        where ${held(run)} returning id, ${rested}`,
        countRested("failed")
      ),
      found(run.id)
    )
    yield* holdParents([resting(run).parentRunId])
    yield* dropQuestions([run.id])
    if (run.backtestId === null && !isBlameless) yield* countFailures([run], text)
    yield* settleRuns([resting(run)], { status: "failed", message: text, failure: reason })
    yield* ended(run)
  }, orDie)

  const pause = Effect.fn("Runs.pause")(function* (
    run: ClaimedRun,
    reason: PauseReason,
    summary: string,
    detail: string | null = null
  ) {
    yield* Effect.flatMap(
      Effect.tap(
        sql<RestedRun>`
        update kb.agent_runs set status = 'paused', pause_reason = ${reason}, summary = nullif(${summary}, ''),
          error_message = ${detail}, attempt_token = null, partial_text = null, deadline_at = null
        where ${held(run)} returning id, ${rested}`,
        countRested("paused")
      ),
      found(run.id)
    )
    yield* settlePaused(resting(run), run.backtestId, detail ?? pausedSentence(reason))
  }, orDie)

  const settlePaused = Effect.fnUntraced(function* (
    run: RestingRun,
    backtestId: ClaimedRun["backtestId"],
    reason: string
  ) {
    yield* dropQuestions([run.id])
    yield* settleRuns([run], { status: "completed", message: null, reason })
    yield* ended({ id: run.id, backtestId })
  })

  const timeOut = Effect.fn("Runs.timeOut")(function* (id: RunId, reason: SoftStopReason, summary: string) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<RestingRun & RestedRun & Pick<ClaimedRun, "backtestId">>`
      update kb.agent_runs set status = 'paused', pause_reason = ${reason}, summary = nullif(${summary}, ''), error_message = null,
        attempt_token = null, partial_text = null, deadline_at = null
      where id = ${id} and project_id = ${projectId} and ${isOvertime} returning id, parent_run_id, backtest_id, ${rested}`
    yield* found(id)(rows)
    yield* countRested("paused")(rows)
    for (const { backtestId, parentRunId } of rows)
      yield* settlePaused({ id, parentRunId }, backtestId, pausedSentence(reason))
    // Whoever still works on it stops.
    yield* sql.afterCommit(wakeUps.signal(`taken:${id}`))
  }, orDie)

  const wait = Effect.fn("Runs.wait")(function* (run: ClaimedRun, reason: WaitReason) {
    yield* Effect.flatMap(
      Effect.tap(
        sql<RestedRun>`
        update kb.agent_runs set status = 'paused', pause_reason = ${reason}, attempt_token = null, attempt = 0, attempts_before_step = 0,
          time_left_ms = case when ${reason !== "subAgents"} then (extract(epoch from deadline_at - now()) * 1000)::bigint end,
          deadline_at = case when ${reason !== "subAgents"} then null else deadline_at end
        where ${held(run)} returning id, ${rested}`,
        countRested("paused")
      ),
      found(run.id)
    )
    yield* ended(run)
  }, orDie)

  const cancel = Effect.fn("Runs.cancel")(function* (id: RunId, summary: string, cancellation: Cancellation) {
    const because = cancellation.because ?? null
    const by = cancellation.by ?? null
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<RestingRun & RestedRun & Pick<ClaimedRun, "backtestId">>`
        update kb.agent_runs set status = 'cancelled', summary = nullif(${summary}, ''), error_message = ${because}, cancelled_by = ${by},
          completed_at = now(), attempt_token = null, pause_reason = null, partial_text = null
        where id = ${id} and project_id = ${projectId} and status in ('queued', 'running', 'paused') returning id, parent_run_id, backtest_id,
          ${rested}`
    yield* found(id)(rows)
    yield* countRested("cancelled")(rows)
    yield* dropQuestions([id])
    yield* settleRuns(rows, {
      status: "failed",
      message: by === null ? because : `${by} cancelled the run${because === null ? "" : `: ${because}`}`,
      isFinal: true,
      isWanted: by !== null
    })
    yield* ended({ id, backtestId: rows[0]?.backtestId ?? null })
    yield* sql.afterCommit(wakeUps.signal(`taken:${id}`))
  }, orDie)

  return { complete, fail, pause, timeOut, wait, cancel }
})

const pausedSentence = (reason: PauseReason): string => `The run paused: ${reason}`
