/**
 * Claims queued and orphaned runs for workers.
 *
 * A claim sets a new attempt token and a lease on the database's clock, and skips rows that another worker is claiming. A run whose lease
 * expired is taken over a limited number of times; then, or when no worker takes it over, it ends. A server death that several runs shared
 * is no evidence against one of them and does not count; after two such deaths the run is claimed in ever smaller groups, at last alone. A
 * run whose worker lives but that makes no progress also ends, and its attempt loses its token. A sub-run's deadline is never later than
 * its parent's.
 */
import type { RunId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { makeFailureStreaks } from "../agents/authority.ts"
import { Contexts } from "../contexts/contexts.ts"
import { Database, orDie, ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { Notifier } from "../outbox/notifier.ts"
import { Outbox } from "../outbox/outbox.ts"
import { makeDropping } from "../review/questions.ts"
import { countReaction, countTakenOver } from "../telemetry/metrics.ts"
import { makeEntryCompletion, type RestingRun } from "./completion-and-retry.ts"
import { makeFencing } from "./fencing.ts"
import { announceClaim, isStopped } from "./kill-switches.ts"
import { makeOccurrences, StuckAfterMs } from "./processing-log.ts"
import { makeRunMetrics, type RestedRun } from "./run-metrics.ts"
import { noProgressSentence, noWorkerSentence } from "./run-texts.ts"
import type { ClaimedRun, FailedRun } from "./run-types.ts"

/** How many runs a worker takes. */
export interface Places {
  readonly limit: number
  /** Of those, how many in order of arrival whatever their priority; the others by priority, then by arrival. */
  readonly oldest: number
  /** Of those, how many may be backtest runs; they come last. */
  readonly backtests: number
  /** The runs that the worker already has. */
  readonly beside?: Beside
}

/** The running runs of a worker: none, this one alone, or several. */
export type Beside = RunId | "several" | undefined

/** What a claim returns besides its run. */
interface Claim {
  readonly claimedAtMs: number
  /** The run resumes after a provider outage. */
  readonly hasWaited: boolean
}

/** SQL for runs whose attempts died with their servers; the run's row is `run`. */
const suspicionIn = (sql: SqlClient.SqlClient) => {
  const { suspectDeaths, suspectGroups } = runLimits
  /** Whether the current attempt ended by a death: a queued or released run has none. */
  const hasDied = sql`run.status = 'running' and run.shares_blame is not null`
  /** Deaths since the last step, including the one found now. */
  const deaths = sql`(case when run.deaths_step = run.step_count then run.deaths else 0 end + case when ${hasDied} then 1 else 0 end)`
  return {
    deaths,
    isSuspect: sql`(run.deaths > 0 and run.attempt > 0 and ${deaths} >= ${suspectDeaths})`,
    /** How many suspects may run together when one of them has this many deaths. */
    groupOf: (died: Statement.Fragment) =>
      sql`(array[${sql.literal(suspectGroups.join(", "))}])[least(${died} - ${suspectDeaths - 1}, ${suspectGroups.length})]`,
    /** Whether other runs could equally have caused the server's death: those in `next` and those that already run. */
    sharesBlame: (beside: Beside) =>
      beside === "several"
        ? sql`true`
        : beside === undefined
          ? sql`(select count(*) > 1 from next)`
          : sql`((select count(*) > 1 from next) or run.id <> ${beside}::uuid)`,
    /** What a death updates: a shared one does not count against the attempts. */
    afterDeath: sql`deaths = case when ${hasDied} then ${deaths} else run.deaths end,
          deaths_step = case when ${hasDied} then run.step_count else run.deaths_step end,
          attempts_before_step = attempts_before_step + case when ${hasDied} and run.shares_blame then 1 else 0 end`
  }
}

/** SQL for runs that were not taken over in time and runs without progress; the run's row is `run`. */
const stuckIn = (sql: SqlClient.SqlClient, stuckAfterMs: number) => {
  const stuckAfter = sql`make_interval(secs => ${stuckAfterMs / 1_000}::float8)`
  return {
    // Another worker may still take over a lease that has just expired; the entry's run is abandoned only when none did.
    isLeft: sql`lease_expires_at < now() - ${stuckAfter} and exists (
      select 1 from kb.agent_processing_log entry
      where entry.run_id = run.id and entry.status = 'processing' and entry.started_at < now() - ${stuckAfter})`,
    // Judged as of the last heartbeat, which extended the lease: later progress is not in the row.
    hasNoProgress: sql`lease_expires_at > now() and progress_of = attempt_token
      and progressed_at < lease_expires_at - make_interval(secs => ${(runLimits.leaseMs + stuckAfterMs) / 1_000}::float8)`
  }
}

/** The verbs of `Runs` with which a worker acquires a run. */
export const makeClaims = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const contexts = yield* Contexts
  const notifier = yield* Notifier
  const { countFailures } = yield* makeFailureStreaks
  const { settleRuns } = yield* makeEntryCompletion
  const { holdAgents, holdParents } = yield* makeFencing
  const { dropQuestions } = yield* makeDropping
  const { countRested, rested } = yield* makeRunMetrics
  const outbox = yield* Outbox
  const stuckAfterMs = yield* StuckAfterMs
  const tellings = yield* makeOccurrences
  /** The attempts at one step, or at the whole run, are used up. */
  const isSpent = sql`(attempt - attempts_before_step >= ${runLimits.maxAttempts} or attempt >= ${runLimits.maxAttemptsInAll})`
  const { afterDeath, deaths, groupOf, isSuspect, sharesBlame } = suspicionIn(sql)
  const isQueued = sql`status = 'queued' and waits_for is null`
  const isLapsed = sql`status = 'running' and lease_expires_at < now() and not ${isSpent}`

  /** Returns the ids of the runs that come next: real runs first, then those of backtests. */
  const nextOf = Effect.fnUntraced(function* (due: Statement.Fragment, places: Places) {
    const { backtests, limit, oldest } = places
    const { projectId } = yield* ProjectTransaction
    /** Selects and locks the first due runs, skipping those that others are claiming. */
    const firstOf = (which: Statement.Fragment, order: string, count: Statement.Fragment) =>
      sql`array(select id from kb.agent_runs run where project_id = ${projectId} and ${due} and ${which} and not ${isSuspect} and not ${isStopped(sql)}
        order by ${sql.literal(order)} limit ${count} for update skip locked)`
    const isReal = sql`priority < 2`
    const mayTest = oldest > 0 && backtests >= oldest
    return sql`real as materialized (
        select ${firstOf(mayTest ? sql`true` : isReal, "id", sql`${oldest}`)} as oldest,
          ${firstOf(isReal, "priority, id", sql`${limit - oldest}`)} as first
      ),
      tested as materialized (
        select ${firstOf(
          sql`priority = 2`,
          "id",
          sql`(select greatest(0, least(${backtests - (mayTest ? oldest : 0)}, ${limit - oldest} - cardinality(first))) from real)`
        )} as ids
      ),
      next as (select unnest((select oldest || first from real) || (select ids from tested)) as id),`
  })

  /** Returns the next suspects: those with the fewest deaths, as many as may run together. */
  const nextSuspects = Effect.fnUntraced(function* (limit: number, among: ReadonlyArray<RunId> | undefined) {
    const { projectId } = yield* ProjectTransaction
    const [most = 1] = runLimits.suspectGroups
    const ofThem = among === undefined ? sql`true` : sql`run.id = any(${among}::uuid[])`
    return sql`suspects as materialized (
        select run.id, ${deaths} as died from kb.agent_runs run
        where project_id = ${projectId} and (${isQueued} or ${isLapsed}) and status in ('queued', 'running') and ${isSuspect}
          and ${ofThem} and not ${isStopped(sql)}
        order by died, run.id limit ${Math.min(limit, most)} for update of run skip locked
      ),
      next as (
        select id from (select id, died, row_number() over (order by died, id) as place from suspects) suspect
        where place <= ${groupOf(sql`died`)}
      ),`
  })

  /** Claims the runs that the statement's part `next` names. */
  const claimNext = Effect.fnUntraced(function* (
    workerId: string,
    next: Statement.Fragment,
    areSuspects: boolean,
    beside: Beside
  ) {
    const claiming = sql<Omit<ClaimedRun, "events" | "occurrences"> & Claim>`
      with ${next}
      due as (
        select run.id, run.status = 'queued' as was_queued,
          coalesce(run.time_left_ms, case when run.limits ? 'timeoutMs' then (run.limits ->> 'timeoutMs')::bigint
            else (version.definition ->> 'defaultTimeoutMs')::bigint end) as time_left_ms,
          coalesce(jsonb_typeof(version.definition -> 'budget' -> 'perRun') = 'object', false) as has_budget,
          coalesce(parent.deadline_at, now() + make_interval(secs => parent.time_left_ms::float8 / 1000)) as parent_deadline_at
        from kb.agent_runs run join kb.agent_versions version on version.agent_id = run.agent_id and version.version = run.agent_version
        left join kb.agent_runs parent on parent.id = run.parent_run_id
        where run.id in (select id from next)
      ),
      claimed as (
        update kb.agent_runs run
        set status = 'running', attempt = attempt + 1, attempt_token = gen_random_uuid(), worker_id = ${workerId},
          lease_expires_at = now() + make_interval(secs => ${runLimits.leaseMs / 1_000}::float8), started_at = coalesce(started_at, greatest(now(), created_at)), time_left_ms = null, error_message = null, partial_text = null,
          shares_blame = ${sharesBlame(areSuspects ? undefined : beside)}, ${afterDeath},
          deadline_at = least(coalesce(deadline_at, now() + make_interval(secs => due.time_left_ms::float8 / 1000)), due.parent_deadline_at)
        from due where run.id = due.id
        returning run.id, project_id, agent_id, agent_version, trigger, context_name, root_event_id, depth, user_id, attempt, attempt_token,
          ancestors, limits, backtest_id, due.was_queued, due.has_budget, ${areSuspects}::boolean as is_suspect, waits_since is not null as has_waited, round(extract(epoch from deadline_at - now()) * 1000)::float8 as time_left_ms
      ),
      entries as (
        update kb.agent_processing_log entry set status = 'processing', started_at = coalesce(started_at, now())
        from claimed where entry.run_id = claimed.id and entry.status in ('pending', 'processing')
      )
      select claimed.*, (extract(epoch from clock_timestamp()) * 1000)::float8 as claimed_at_ms, project.name as project_name, context.last_event_number as logged_events,
        exists (
          select from jsonb_array_elements(claimed.trigger -> 'events') event
          join kb.rejections rejection on rejection.agent_id = claimed.agent_id and rejection.object_id = (event ->> 'objectId')::uuid
        ) as has_rejections
      from claimed
      join kb.projects project on project.id = claimed.project_id
      join kb.contexts context on context.project_id = claimed.project_id and context.name = claimed.context_name
      order by claimed.id`
    const [, rows] = yield* database.together(announceClaim(sql), claiming)
    const events = new Map(
      (yield* outbox.getAll(rows.flatMap(({ trigger }) => (trigger.events ?? []).map(({ id }) => id)))).map(
        (event) => [event.id, event]
      )
    )
    const told = yield* tellings.getAll(
      rows.flatMap(({ trigger }) => (trigger.mcpEvents ?? []).map(({ id }) => id))
    )
    return yield* Effect.forEach(rows, ({ claimedAtMs, hasWaited, ...row }) => {
      const run: ClaimedRun = {
        ...row,
        occurrences: (row.trigger.mcpEvents ?? []).flatMap(({ id }) => told.get(id) ?? []),
        events: (row.trigger.events ?? []).flatMap(({ id }) => events.get(id) ?? [])
      }
      return Effect.as(hasWaited ? Effect.void : countFirst(run, claimedAtMs), run)
    })
  })

  /**
   * Records the latency from write to run once a run is claimed; backtests and later attempts waited for other reasons and are not
   * measured.
   */
  const countFirst = ({ attempt, backtestId, events, wasQueued }: ClaimedRun, claimedAtMs: number) => {
    const newest = events.at(-1)
    return newest === undefined || attempt !== 1 || !wasQueued || backtestId !== null
      ? Effect.void
      : sql.afterCommit(countReaction(claimedAtMs - Date.parse(newest.createdAt)))
  }

  const claimDue = Effect.fnUntraced(function* (workerId: string, due: Statement.Fragment, places: Places) {
    if (places.limit <= 0) return []
    return yield* claimNext(workerId, yield* nextOf(due, places), false, places.beside)
  })

  const claim = Effect.fn("Runs.claim")(
    (workerId: string, places: Places) => claimDue(workerId, isQueued, places),
    orDie
  )

  const claimSuspects = Effect.fn("Runs.claimSuspects")(function* (
    workerId: string,
    limit: number,
    among: ReadonlyArray<RunId> | undefined
  ) {
    if (limit <= 0) return []
    const claimed = yield* claimNext(workerId, yield* nextSuspects(limit, among), true, undefined)
    yield* sql.afterCommit(countTakenOver(claimed.filter(({ wasQueued }) => !wasQueued).length))
    return claimed
  }, orDie)

  const takeOver = Effect.fn("Runs.takeOver")(
    (workerId: string, places: Omit<Places, "oldest">) =>
      Effect.tap(claimDue(workerId, isLapsed, { ...places, oldest: 0 }), ({ length }) =>
        sql.afterCommit(countTakenOver(length))
      ),
    orDie
  )

  /**
   * Locks the due runs, then their agents and their logs, in the order of every attempt; no message can be appended to them until the runs
   * have ended.
   */
  const holdSilent = Effect.fnUntraced(function* (due: Statement.Fragment) {
    const { projectId } = yield* ProjectTransaction
    const silent = yield* sql<RestingRun & Omit<FailedRun, "errorMessage">>`
      select id, agent_id, backtest_id, context_name, parent_run_id from kb.agent_runs run
      where project_id = ${projectId} and status = 'running' and ${due} order by id for no key update of run`
    yield* holdParents(silent.map(({ parentRunId }) => parentRunId))
    yield* holdAgents(silent)
    for (const name of silent.map((run) => run.contextName).toSorted()) yield* contexts.lock(name)
    return silent.map(({ id }) => id)
  })

  /** Ends runs whose worker disappeared or that make no progress, together with their entries. */
  const endSilent = Effect.fnUntraced(function* (
    reason: Statement.Fragment,
    message: Statement.Fragment,
    due: Statement.Fragment
  ) {
    const ids = yield* holdSilent(due)
    if (ids.length === 0) return []
    const rows = yield* sql<RestingRun & FailedRun & RestedRun>`
      update kb.agent_runs run set status = 'failed', failure_reason = ${reason}, error_message = ${message}, completed_at = now(), attempt_token = null,
        summary = coalesce(nullif(partial_text, ''), summary), partial_text = null
      where id = any(${ids}::uuid[]) returning id, parent_run_id, agent_id, context_name, user_id, summary, error_message, failure_reason, backtest_id, ${rested}`
    yield* countRested("failed")(rows)
    yield* dropQuestions(rows.map((row) => row.id))
    for (const [errorMessage, alike] of Map.groupBy(rows, (row) => row.errorMessage)) {
      const [{ failureReason } = { failureReason: "noWorker" as const }] = alike
      // Failures in a backtest do not count against the agent.
      yield* countFailures(
        alike.filter((row) => row.backtestId === null),
        errorMessage
      )
      yield* settleRuns(alike, { status: "abandoned", message: errorMessage, failure: failureReason })
    }
    for (const { id } of rows) {
      yield* sql.afterCommit(notifier.signal(`run:${id}`))
      yield* sql.afterCommit(notifier.signal(`taken:${id}`))
    }
    if (rows.some((row) => row.backtestId !== null)) yield* sql.afterCommit(notifier.signal("backtests"))
    return rows
  }, orDie)

  const spentSentence = (attempts: number, during: string) =>
    sql`coalesce(${`The last of ${attempts} attempts during ${during} broke: `}::text || error_message, ${`The worker died ${attempts} times during ${during}`}::text)`

  const isGivenUp = sql`lease_expires_at < now() and ${isSpent}`

  const spent = Effect.gen(function* () {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<Pick<FailedRun, "id">>`
      select id from kb.agent_runs where project_id = ${projectId} and status = 'running' and ${isGivenUp}
      order by id limit ${runLimits.giveUpBatchRuns}`
    return rows.map(({ id }) => id)
  }).pipe(orDie)

  const giveUp = (id: RunId) =>
    endSilent(
      sql`${"noWorker"}`,
      sql`case when attempt - attempts_before_step >= ${runLimits.maxAttempts} then ${spentSentence(runLimits.maxAttempts, "one step of this run")}
        else ${spentSentence(runLimits.maxAttemptsInAll, "this run")} end`,
      sql`id = ${id} and ${isGivenUp}`
    )

  const { hasNoProgress, isLeft } = stuckIn(sql, stuckAfterMs)

  const stuck = Effect.fnUntraced(function* (withLapsed: boolean) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<Pick<FailedRun, "id">>`
      select id from kb.agent_runs run where project_id = ${projectId} and status = 'running'
        and (${hasNoProgress} or ${withLapsed}::boolean and ${isLeft})
      order by id limit ${runLimits.stuckBatchRuns}`
    return rows.map(({ id }) => id)
  }, orDie)

  const abandon = (id: RunId) =>
    endSilent(
      sql`case when ${hasNoProgress} then 'noProgress' else 'noWorker' end`,
      sql`case when ${hasNoProgress} then ${noProgressSentence(stuckAfterMs)}::text else ${noWorkerSentence} end`,
      sql`id = ${id} and (${hasNoProgress} or ${isLeft})`
    )

  const summarize = Effect.fn("Runs.summarize")(function* (id: RunId, summary: string) {
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      update kb.agent_runs set summary = ${summary}
      where id = ${id} and project_id = ${projectId} and status = 'failed' and summary is null`
  }, orDie)

  return { claim, takeOver, claimSuspects, spent, giveUp, stuck, abandon, summarize }
})

// Releases a run that a kill switch kept its attempt from writing to.
//
// A switch that is turned off before its runs have followed it leaves them unchanged, but an attempt that met it is over. Without this the
// run would have no worker until its lease expired, and would then count as a death. The attempt therefore makes its run follow the switch
// itself. A run that another attempt holds is not touched.

export const makeSwitchYield = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const notifier = yield* Notifier
  const { held } = yield* makeFencing

  /** Runs the two steps of `kb.follow_kill_switches` for one run. */
  const yieldToSwitch = Effect.fn("Runs.yieldToSwitch")(function* (run: ClaimedRun) {
    // Takes the same advisory lock as a claim: a switch that is turned off meanwhile either finds the run paused or is already off here.
    const [, rested] = yield* database.together(
      announceClaim(sql),
      sql`
        update kb.agent_runs
        set status = 'paused', pause_reason = 'killSwitch', attempt_token = null, attempt = attempt - 1, lease_expires_at = null,
          time_left_ms = (extract(epoch from deadline_at - now()) * 1000)::bigint, deadline_at = null
        where ${held(run)} returning id`
    )
    if (rested.length === 0) return
    yield* sql`
      update kb.agent_runs set status = 'queued', pause_reason = null
      where id = ${run.id} and status = 'paused' and pause_reason = 'killSwitch' and not ${isStopped(sql)}`
    yield* sql.afterCommit(notifier.signal(`run:${run.id}`))
  }, orDie)

  return { yieldToSwitch }
})
