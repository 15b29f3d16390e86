/**
 * The verbs by which a run comes to rest, and what they do to its processing entry.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Each is one statement on the run, which decides the race, and one on the
 * entry, in the same transaction. Skipped work is never recorded as done.
 */
import type { RunId } from "@tropism/domain/ids"
import type { PauseReason } from "@tropism/domain/run"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { makeFailureStreaks } from "../agent/failure-streaks.ts"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { makeHolding } from "./holding.ts"

export const makeOutcomes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const wakeUps = yield* WakeUps
  const { found, held } = yield* makeHolding
  const { countFailures } = yield* makeFailureStreaks

  /** Ends what the processing log says of the run, if anything. */
  const endEntry = (
    id: RunId,
    status: "completed" | "failed" | "abandoned",
    message: string | null,
    reason: string | null = null
  ) =>
    sql`
      update kb.agent_processing_log set status = ${status}, completed_at = now(), error_message = ${message}, reason = coalesce(${reason}, reason)
      where run_id = ${id} and status in ('pending', 'processing')`

  const ended = (run: ClaimedRun) => sql.afterCommit(wakeUps.signal(`run:${run.id}`))

  const complete = Effect.fn("Runs.complete")(function* (run: ClaimedRun, summary: string) {
    yield* Effect.flatMap(
      sql`
        with ended as (
          update kb.agent_runs set status = 'completed', summary = ${summary}, completed_at = now(), attempt_token = null
          where ${held(run)} returning id, agent_id
        ), forgiven as (
          update kb.agents agent set consecutive_failures = 0 from ended
          where agent.id = ended.agent_id and consecutive_failures > 0
        )
        select id from ended`,
      found(run.id)
    )
    yield* endEntry(run.id, "completed", null)
    yield* ended(run)
  }, orDie)

  const fail = Effect.fn("Runs.fail")(function* (run: ClaimedRun, message: string) {
    const text = message.slice(0, runLimits.errorMaxChars)
    yield* Effect.flatMap(
      sql`update kb.agent_runs set status = 'failed', error_message = ${text}, completed_at = now(), attempt_token = null where ${held(run)} returning id`,
      found(run.id)
    )
    yield* countFailures([run.agentId], text)
    yield* endEntry(run.id, "failed", text)
    yield* ended(run)
  }, orDie)

  const pause = Effect.fn("Runs.pause")(function* (
    run: ClaimedRun,
    reason: PauseReason,
    summary: string,
    detail: string | null = null
  ) {
    yield* Effect.flatMap(
      sql`
        update kb.agent_runs set status = 'paused', pause_reason = ${reason}, summary = ${summary}, error_message = ${detail}, attempt_token = null
        where ${held(run)} returning id`,
      found(run.id)
    )
    yield* endEntry(run.id, "completed", null, detail ?? `The run paused: ${reason}`)
    yield* ended(run)
  }, orDie)

  const cancel = Effect.fn("Runs.cancel")(function* (id: RunId, summary: string, because: string | null) {
    const { projectId } = yield* ProjectTransaction
    yield* Effect.flatMap(
      sql`
        update kb.agent_runs set status = 'cancelled', summary = nullif(${summary}, ''), error_message = ${because}, completed_at = now(),
          attempt_token = null, pause_reason = null
        where id = ${id} and project_id = ${projectId} and status in ('queued', 'running', 'paused') returning id`,
      found(id)
    )
    yield* endEntry(id, "failed", because ?? "The run was cancelled")
    yield* sql.afterCommit(wakeUps.signal(`run:${id}`))
  }, orDie)

  return { complete, fail, pause, cancel }
})
