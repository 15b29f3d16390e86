/**
 * Puts paused runs back into the queue.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Only what a limit stopped goes on because a person says so: whatever else lets
 * a run rest, lets it go on by itself. The state in the `where` clause decides
 * between two who resume at once. What could not ask its model once is not
 * resumed. Time counts afresh from the next claim, and
 * steps from the turn that begins then.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type { RunId } from "@tropism/domain/ids"
import { isResumable, type LimitOverrides, PauseReason } from "@tropism/domain/run"
import { Effect, Schema } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { makeAsking } from "./asking.ts"
import { makeHolding } from "./holding.ts"

/** A run that would rest again before it asked its model: a budget that it spends is spent. */
export class BudgetSpent extends Schema.TaggedError<BudgetSpent>()("BudgetSpent", {
  runId: Schema.String,
  detail: Schema.String
}) {}

/** The verbs of `Runs` by which a run that a limit stopped goes on. */
export const makeResuming = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const wakeUps = yield* WakeUps
  const { found } = yield* makeHolding
  const { findSpentOf } = yield* makeAsking
  const reasons = PauseReason.literals.filter(isResumable)

  const queueAgain = Effect.fnUntraced(function* (which: Statement.Fragment, limits: LimitOverrides) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<{ id: RunId }>`
      update kb.agent_runs set status = 'queued', pause_reason = null, error_message = null, attempt = 0, attempts_before_step = 0, lease_expires_at = null,
        time_left_ms = null, deadline_at = null,
        limits = nullif(coalesce(limits, '{}') || ${JSON.stringify(limits)}::text::jsonb, '{}')
      where project_id = ${projectId} and status = 'paused' and backtest_id is null and ${sql.in("pause_reason", reasons)} and ${which} returning id`
    if (rows.length > 0) yield* sql.afterCommit(wakeUps.signal("runs"))
    for (const { id } of rows) yield* sql.afterCommit(wakeUps.signal(`run:${id}`))
    return rows
  })

  const resume = Effect.fn("Runs.resume")(function* (id: RunId, limits: LimitOverrides) {
    yield* Effect.flatMap(queueAgain(sql`id = ${id}`, limits), found(id))
    // Asked of the row as it is now, with its new limits; a refusal takes them back with the transaction.
    const spent = yield* findSpentOf(id)
    if (spent) return yield* new BudgetSpent({ runId: id, detail: spent.reason })
  }, orDie)

  const resumeOn = Effect.fn("Runs.resumeOn")(
    (name: ContextName) => Effect.map(queueAgain(sql`context_name = ${name}`, {}), (rows) => rows.length > 0),
    orDie
  )

  const restsAtLimit = Effect.fn("Runs.restsAtLimit")(function* (name: ContextName) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql`
      select from kb.agent_runs where project_id = ${projectId} and context_name = ${name} and status = 'paused' and ${sql.in("pause_reason", reasons)}`
    return rows.length > 0
  }, orDie)

  return { resume, resumeOn, restsAtLimit }
})
