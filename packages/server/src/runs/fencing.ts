/**
 * Fences the writes of an attempt by its token.
 *
 * The condition is part of the `where` clause of every write; a write that returns no row means that the attempt has lost the run. The rows
 * of a run are locked in one order: its parent, its agent, its log, then entries and budgets.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type { RunId } from "@tropism/domain/ids"
import { Effect, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { inTurn } from "../database/fair-row-locks.ts"
import { runLimits } from "../limits.ts"
import { isStopped } from "./kill-switches.ts"
import type { ClaimedRun } from "./run-types.ts"

/** The run's state does not allow the operation. */
export class RunNotInState extends Schema.TaggedError<RunNotInState>()("RunNotInState", {
  runId: Schema.String
}) {}

/** The run must not continue although its attempt holds it: its agent was disabled or deleted. */
export class RunHalted extends Schema.TaggedError<RunHalted>()("RunHalted", {
  runId: Schema.String,
  detail: Schema.String
}) {}

const intervalIn = (sql: SqlClient.SqlClient) => (ms: number) =>
  sql`make_interval(secs => ${ms / 1_000}::float8)`

export const makeFencing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const interval = intervalIn(sql)
  const database = yield* Database

  /** The condition under which an attempt may write. */
  const held = (run: Pick<ClaimedRun, "id" | "attemptToken">) =>
    // coalesce keeps PostgreSQL from using the index of all live runs, which looks small while its statistics are outdated.
    sql`id = ${run.id} and attempt_token = ${run.attemptToken} and coalesce(status, '') = 'running'`

  /** Locks the run for the statement or transaction; returns a row when the attempt may write and no kill switch is on. */
  const guard = (run: Pick<ClaimedRun, "id" | "attemptToken">) =>
    sql`select id from kb.agent_runs where ${held(run)} and not ${isStopped(sql)} for no key update`

  const found = (id: RunId) => (rows: ReadonlyArray<unknown>) =>
    rows.length > 0 ? Effect.void : Effect.fail(new RunNotInState({ runId: id }))

  const holdOpen = Effect.fn("Runs.holdOpen")(function* (id: RunId) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<{ partialText: string | null }>`
      select partial_text from kb.agent_runs where id = ${id} and project_id = ${projectId}
        and status in ('queued', 'running', 'paused') for no key update`
    yield* found(id)(rows)
    return rows[0]?.partialText ?? ""
  }, orDie)

  /** A purge deletes graph events only, and each real run that they triggered began with entries. */
  const holdEmptied = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    return yield* sql<{ readonly id: RunId; readonly contextName: ContextName }>`
      select id, context_name from kb.agent_runs run
      where project_id = ${projectId} and status = 'queued' and started_at is null and trigger_type = 'reaction' and backtest_id is null
        and not exists (select from kb.agent_processing_log entry where entry.run_id = run.id)
      order by id for no key update of run skip locked`
  }).pipe(orDie)

  const keepPartial = Effect.fn("Runs.keepPartial")(function* (run: ClaimedRun, text: string) {
    // PostgreSQL cannot store NUL in text.
    const keepable = text.replaceAll("\0", "")
    yield* Effect.flatMap(
      database.ask(
        run.projectId,
        sql`update kb.agent_runs set partial_text = ${keepable} where ${held(run)} and not ${isStopped(sql)} returning id`
      ),
      found(run.id)
    )
  })

  /** Selects runs whose deadline and grace period have passed without a pause: their worker died, hangs or waits. */
  const isOvertime = sql`status in ('queued', 'running') and deadline_at < now() - ${interval(runLimits.graceMs)} and not ${isStopped(sql)}`

  const overtime = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    return yield* sql<Pick<ClaimedRun, "id" | "contextName">>`
      select id, context_name from kb.agent_runs where project_id = ${projectId} and ${isOvertime}
      order by id limit ${runLimits.overtimeBatchRuns}`
  }).pipe(orDie)

  const holdOvertime = Effect.fn("Runs.holdOvertime")(function* (id: RunId) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{ partialText: string | null; parentRunId: RunId | null }>`
      select partial_text, parent_run_id from kb.agent_runs
      where id = ${id} and project_id = ${projectId} and ${isOvertime} for no key update`
    if (row === undefined) return yield* new RunNotInState({ runId: id })
    yield* holdParents([row.parentRunId])
    return row.partialText ?? ""
  }, orDie)

  /** Locks the parents before the agent and budget rows that both runs write, to avoid a deadlock. */
  const holdParents = (ids: ReadonlyArray<RunId | null>) => {
    const parents = ids.filter((id) => id !== null)
    return parents.length === 0
      ? Effect.void
      : orDie(
          Effect.asVoid(
            sql`select id from kb.agent_runs where id = any(${parents}::uuid[]) order by id for no key update`
          )
        )
  }

  const hold = (run: Pick<ClaimedRun, "id" | "attemptToken">) =>
    orDie(Effect.flatMap(guard(run), found(run.id)))

  const holdToEnd = (run: ClaimedRun) => {
    const parent = run.ancestors.at(-1)
    return parent === undefined ? Effect.void : Effect.andThen(hold(run), holdParents([parent]))
  }

  const holdToFail = (run: ClaimedRun) =>
    hold(run).pipe(
      Effect.andThen(holdParents([run.ancestors.at(-1) ?? null])),
      Effect.andThen(holdAgents([run]))
    )

  /** Locks the agents that count the failures of these runs. */
  const holdAgents = (runs: ReadonlyArray<Pick<ClaimedRun, "agentId" | "backtestId">>) => {
    // Failures in a backtest do not count against the agent.
    const ids = runs.flatMap(({ agentId, backtestId }) => (backtestId === null ? [agentId] : []))
    return ids.length === 0
      ? Effect.void
      : orDie(
          Effect.asVoid(
            sql`
              select id from kb.agents where id = any(${inTurn(sql, "agent", sql`select unnest(${ids}::uuid[])`, "alone")})
              order by id for no key update`
          )
        )
  }

  /** Selects and locks the agent whose failure streak this run's completion resets. */
  const blamed = ({ agentId, backtestId }: Pick<ClaimedRun, "agentId" | "backtestId">) =>
    sql`
      select id from kb.agents where consecutive_failures > 0 and ${backtestId === null}::boolean and id = any(${inTurn(
        sql,
        "agent",
        sql`select id from kb.agents where id = ${agentId} and consecutive_failures > 0 and ${backtestId === null}::boolean`,
        "alone"
      )})`

  const holdBlamed = (run: ClaimedRun) => orDie(Effect.asVoid(sql`${blamed(run)} for no key update`))

  /** The guard of the append that completes a run: locks the run, then the agent with failures, before the log. */
  const guardLast = (run: ClaimedRun) => sql`
    select run.id from (${guard(run)}) run
    left join lateral (${blamed(run)} and run.id is not null for no key update) blamed on true`

  return {
    held,
    guard,
    guardLast,
    found,
    hold,
    holdAgents,
    holdBlamed,
    holdEmptied,
    holdOpen,
    holdOvertime,
    holdParents,
    holdToEnd,
    holdToFail,
    isOvertime,
    keepPartial,
    overtime
  }
})
