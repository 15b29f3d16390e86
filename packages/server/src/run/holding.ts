/**
 * Whether an attempt still holds its run.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The condition stands in the `where` clause of every write of an attempt: no
 * row answered means that the attempt has lost the run.
 */
import type { RunId } from "@tropism/domain/ids"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import type { ClaimedRun } from "./claimed-run.ts"

/** A run that is not in a state in which this may happen to it. */
export class RunNotInState extends Schema.TaggedError<RunNotInState>()("RunNotInState", {
  runId: Schema.String
}) {}

/** A run that must not go on, although its attempt holds it: somebody took its agent away. */
export class RunHalted extends Schema.TaggedError<RunHalted>()("RunHalted", {
  runId: Schema.String,
  detail: Schema.String
}) {}

export const makeHolding = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  /** The condition under which an attempt may write. */
  const held = (run: Pick<ClaimedRun, "id" | "attemptToken">) =>
    sql`id = ${run.id} and attempt_token = ${run.attemptToken} and status = 'running'`

  const found = (id: RunId) => (rows: ReadonlyArray<unknown>) =>
    rows.length > 0 ? Effect.void : Effect.fail(new RunNotInState({ runId: id }))

  const holdOpen = Effect.fn("Runs.holdOpen")(function* (id: RunId) {
    const { projectId } = yield* ProjectTransaction
    yield* Effect.flatMap(
      sql`
        select id from kb.agent_runs where id = ${id} and project_id = ${projectId}
          and status in ('queued', 'running', 'paused') for no key update`,
      found(id)
    )
  }, orDie)

  const mayGoOn = Effect.fn("Runs.mayGoOn")(function* (run: ClaimedRun) {
    const [row] = yield* sql<{ name: string; isEnabled: boolean; isDeleted: boolean }>`
      select agent.name, agent.enabled as is_enabled, agent.deleted_at is not null as is_deleted
      from kb.agents agent where agent.id = ${run.agentId}`
    if (row?.isEnabled === true && !row.isDeleted) return
    const fate = row?.isDeleted === false ? "disabled" : "deleted"
    return yield* new RunHalted({ runId: run.id, detail: `The agent ${row?.name} was ${fate}` })
  }, orDie)

  return { held, found, holdOpen, mayGoOn }
})
