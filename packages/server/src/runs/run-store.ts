/**
 * Stores all runs; each state change is one verb and one statement.
 *
 * A verb names the allowed source states in its `where` clause, so the database decides between two workers that race for a run. The writes
 * of an attempt carry its token: a worker that froze finds its token gone when it wakes, and can write nothing.
 */
import type { ReachedCap } from "@tropism/domain/chain"
import type { ContextName, SoftStopReason } from "@tropism/domain/context-event"
import type { GraphEventId, RunId, ProjectId, UserId } from "@tropism/domain/ids"
import {
  type LimitOverrides,
  PauseReason,
  type Run,
  type RunFailure,
  type RunStatus,
  isResumable
} from "@tropism/domain/run"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { makeFailureStreaks } from "../agents/authority.ts"
import { orDie, ProjectTransaction, Database } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { Notifier } from "../outbox/notifier.ts"
import { makeDropping } from "../review/questions.ts"
import { type PrefetchedBudget, makeBudgetChecks } from "./budgets.ts"
import { makeClaims, type Places, makeSwitchYield } from "./claims.ts"
import { makeEntryCompletion, type RestingRun } from "./completion-and-retry.ts"
import { makeFencing, type RunHalted, type RunNotInState } from "./fencing.ts"
import { makeRunMetrics, type RestedRun } from "./run-metrics.ts"
import { makeReading, type RunFilter, type LiveRun } from "./run-queries.ts"
import type { ClaimedRun, FailedRun, NewRun, SkippedRun } from "./run-types.ts"

type Read<A> = Effect.Effect<A, never, ProjectTransaction>
type Verb = Effect.Effect<void, RunNotInState, ProjectTransaction>

const rowsOf = (beats: ReadonlyArray<Beat>) =>
  beats.map(({ quietMs, run, sharesBlame }) => ({
    id: run.id,
    token: run.attemptToken,
    quiet_seconds: quietMs / 1_000,
    shares_blame: sharesBlame
  }))

/** One heartbeat of an attempt. */
export interface Beat {
  readonly run: Pick<ClaimedRun, "id" | "attemptToken">
  /** How long the attempt has made no progress. */
  readonly quietMs: number
  /** Whether other runs are running here as well; absent for a suspect, whose group decides that. */
  readonly sharesBlame?: boolean
}

/** The result of a heartbeat: `cleared` extends the lease of a suspect that has stored a step since its last death. */
export type HeartbeatOutcome = "extended" | "cleared" | "locked"

export class Runs extends Context.Service<
  Runs,
  {
    /** Queues runs and creates the contexts that they need. */
    readonly queue: (runs: ReadonlyArray<NewRun>) => Read<void>
    /** Queues a run on an existing context unless one is already active there. */
    readonly queueOn: (run: NewRun) => Read<boolean>
    /** Queues a run again that is paused for this reason; false when it is not. */
    readonly wake: (id: RunId, reason: PauseReason) => Read<boolean>
    /** Locks the run of a context for this transaction and returns it when it waits for a person, a client or other runs. */
    readonly holdResting: (
      name: ContextName
    ) => Read<{ readonly id: RunId; readonly reason: PauseReason } | undefined>
    /** Records triggers that get no run, as skipped runs. */
    readonly skip: (runs: ReadonlyArray<SkippedRun>) => Read<void>
    /** Claims queued runs for this worker. */
    readonly claim: (workerId: string, places: Places) => Read<ReadonlyArray<ClaimedRun>>
    /** Takes over runs whose worker has disappeared. */
    readonly takeOver: (workerId: string, places: Omit<Places, "oldest">) => Read<ReadonlyArray<ClaimedRun>>
    /** Claims suspects, queued or orphaned, as many as may run together; only those in the given list, if it is not empty. */
    readonly claimSuspects: (
      workerId: string,
      limit: number,
      among: ReadonlyArray<RunId> | undefined
    ) => Read<ReadonlyArray<ClaimedRun>>
    /** Returns runs whose worker has disappeared and whose attempts are used up. */
    readonly spent: Read<ReadonlyArray<RunId>>
    /** Fails such a run; empty when the condition no longer holds. */
    readonly giveUp: (id: RunId) => Read<ReadonlyArray<FailedRun>>
    /**
     * Returns running runs without progress for too long and, with `withLapsed`, those of entries in processing that no worker has taken
     * over for as long.
     */
    readonly stuck: (withLapsed: boolean) => Read<ReadonlyArray<RunId>>
    /** Fails such a run with its entries; empty when the condition no longer holds. */
    readonly abandon: (id: RunId) => Read<ReadonlyArray<FailedRun>>
    /** Sets the summary of a failed run that has none to its last text. */
    readonly summarize: (id: RunId, summary: string) => Read<void>
    /**
     * Extends the leases of attempts and records how long each has made no progress.
     *
     * **Details** Returns the outcome by run; a run that its attempt has lost is missing. With `waits`, waits for rows that another
     * transaction has locked; otherwise returns `locked` for them.
     */
    readonly heartbeat: (
      beats: ReadonlyArray<Beat>,
      waits: boolean
    ) => Read<ReadonlyMap<RunId, HeartbeatOutcome>>
    /** Locks the run for this transaction, if the attempt may still write and no kill switch is on. */
    readonly hold: (run: Pick<ClaimedRun, "id" | "attemptToken">) => Verb
    /** The same as a part of a statement: it returns a row when the attempt may write. */
    readonly guard: (run: Pick<ClaimedRun, "id" | "attemptToken">) => Statement.Fragment
    /** Locks a run and the run that waits for it, in the order in which the run's end writes to both. */
    readonly holdToEnd: (run: ClaimedRun) => Verb
    /**
     * Locks a failing run, its parent and the agent that counts the failure before the log is locked, in the lock order of incoming
     * messages.
     */
    readonly holdToFail: (run: ClaimedRun) => Verb
    /** Locks the agent of a completing run, for the same reason, when its failure streak is reset. */
    readonly holdBlamed: (run: ClaimedRun) => Read<void>
    /**
     * Releases a run after its attempt broke, so that another worker may take it at once; `because` is the failure when no attempt is left.
     */
    readonly release: (run: ClaimedRun, because: string) => Read<void>
    /** Releases a run because this worker is stopping; the attempt does not count. */
    readonly handBack: (run: ClaimedRun) => Read<void>
    /**
     * Releases a run that this attempt still holds but could not write to because of a kill switch. The run is paused, or queued when no
     * switch is on any more; the attempt does not count.
     */
    readonly yieldToSwitch: (run: ClaimedRun) => Read<void>
    /** Expires every lease at once, for a process that knows it is alone on its database. */
    readonly lapseAll: Effect.Effect<void>
    /** Runs before each model request: fails when the run must not continue, and returns the exhausted budget, if any. */
    readonly mayAsk: (
      run: ClaimedRun,
      foreseen?: PrefetchedBudget
    ) => Effect.Effect<ReachedCap | undefined, RunHalted | RunNotInState>
    /** Reads, in the caller's transaction, the budget state for a request that follows immediately. */
    readonly foresee: (run: ClaimedRun) => Read<PrefetchedBudget>
    /** Stores the partial text of an incomplete answer. */
    readonly keepPartial: (run: ClaimedRun, text: string) => Effect.Effect<void, RunNotInState>
    readonly complete: (run: ClaimedRun, summary: string) => Verb
    /**
     * Fails a run with a reason code and a sentence; `summary` is its text so far, unless an answer broke off: then that text is used. A
     * blameless failure, a persistent outage, does not count in the agent's streak.
     */
    readonly fail: (
      run: ClaimedRun,
      reason: RunFailure,
      errorMessage: string,
      summary: string,
      isBlameless?: boolean
    ) => Verb
    /** Pauses a run; `summary` is its text so far according to its log, and `detail` explains the reason in a sentence. */
    readonly pause: (run: ClaimedRun, reason: PauseReason, summary: string, detail?: string) => Verb
    /** Returns the runs whose deadline and grace period have passed without a pause by their attempt. */
    readonly overtime: Read<ReadonlyArray<Pick<ClaimedRun, "id" | "contextName">>>
    /** Locks such a run and its parent, whichever worker holds it, and returns the partial text of its incomplete answer. */
    readonly holdOvertime: (id: RunId) => Effect.Effect<string, RunNotInState, ProjectTransaction>
    /** Pauses such a run; its worker loses it. */
    readonly timeOut: (id: RunId, reason: SoftStopReason, summary: string) => Verb
    /** Pauses a run until a person or a client answers, or its sub-runs end; its entries stay in processing. */
    readonly wait: (run: ClaimedRun, reason: WaitReason) => Verb
    /** Ends a run that has not ended, whatever its state. */
    readonly cancel: (id: RunId, summary: string, cancellation: Cancellation) => Verb
    /** Queues a run again that a limit paused, with its new limits; fails, and must be rolled back, when a budget is exhausted. */
    readonly resume: (
      id: RunId,
      limits: LimitOverrides
    ) => Effect.Effect<void, RunNotInState | BudgetSpent, ProjectTransaction>
    /** Queues the run that a limit paused on a context; false when there is none. */
    readonly resumeOn: (name: ContextName) => Read<boolean>
    /** Whether a limit paused the run of a context, so that only a person can resume it. */
    readonly restsAtLimit: (name: ContextName) => Read<boolean>
    /**
     * Locks a run that has not ended for this transaction, whichever worker holds it, and returns the partial text of its incomplete
     * answer.
     */
    readonly holdOpen: (id: RunId) => Effect.Effect<string, RunNotInState, ProjectTransaction>
    /** Locks the queued runs that have not begun and whose entries are all gone, except those that are being claimed. */
    readonly holdEmptied: Read<ReadonlyArray<{ readonly id: RunId; readonly contextName: ContextName }>>
    readonly get: (id: RunId) => Read<Run | undefined>
    /** Returns the existing runs among these ids, newest first. */
    readonly among: (ids: ReadonlyArray<RunId>) => Read<ReadonlyArray<Run>>
    /** Returns the state of the active run of a conversation, otherwise of the last one. */
    /**
     * Returns a run's text so far, in order: its answers and the parts of broken-off ones, up to the length of a summary, and the whole
     * length.
     */
    readonly saidBy: (
      id: RunId,
      contextName: string
    ) => Read<{ readonly texts: ReadonlyArray<string>; readonly chars: number }>
    readonly newestOn: (name: ContextName) => Read<LiveRun | undefined>
    /** Returns the runs of a chain after an id, in the order in which they were queued. */
    readonly chain: (
      rootEventId: GraphEventId,
      after: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Run>>
    readonly list: (filter: RunFilter, before: string | undefined, limit: number) => Read<ReadonlyArray<Run>>
  }
>()("@tropism/server/run/Runs") {
  static readonly layer = Layer.effect(
    Runs,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const notifier = yield* Notifier
      const queueing = yield* makeQueueing
      const claiming = yield* makeClaims
      const holding = yield* makeFencing
      const { guard, held, hold, holdBlamed, holdEmptied, holdOpen, holdToEnd, holdToFail } = holding
      const { holdOvertime, keepPartial, overtime } = holding
      const { complete, fail, pause, timeOut, wait, cancel } = yield* makeOutcomes
      const { among, chain, get, list, newestOn, saidBy } = yield* makeReading
      const { foresee, mayAsk } = yield* makeBudgetChecks
      const resuming = yield* makeResuming
      const yielding = yield* makeSwitchYield
      const lease = sql`now() + make_interval(secs => ${runLimits.leaseMs / 1_000}::float8)`

      const heartbeat = Effect.fnUntraced(function* (beats: ReadonlyArray<Beat>, waits: boolean) {
        const isHeld = sql`run.id = beat.id and run.attempt_token = beat.token and coalesce(run.status, '') = 'running'`
        const rows = yield* sql<{ id: RunId; outcome: HeartbeatOutcome }>`
          with beat as (
            select * from jsonb_to_recordset(${JSON.stringify(rowsOf(beats))}::text::jsonb) as beat(id uuid, token uuid, quiet_seconds float8, shares_blame boolean)
          ),
          free as materialized (
            select run.id from beat join kb.agent_runs run on ${isHeld} order by run.id
            for no key update of run ${sql.literal(waits ? "" : "skip locked")}
          ),
          extended as (
            update kb.agent_runs run set lease_expires_at = ${lease}, progress_of = attempt_token,
              shares_blame = coalesce(beat.shares_blame, run.shares_blame), progressed_at = now() - make_interval(secs => beat.quiet_seconds)
            from free join beat on beat.id = free.id where run.id = free.id returning run.id
          )
          select run.id, case when not exists (select from extended where extended.id = run.id) then 'locked'
            when beat.shares_blame is null and run.deaths_step <> run.step_count then 'cleared' else 'extended' end as outcome
          from beat join kb.agent_runs run on ${isHeld}`
        return new Map(rows.map(({ id, outcome }) => [id, outcome] as const))
      }, orDie)

      const release = (run: ClaimedRun, because: string) =>
        sql`update kb.agent_runs set lease_expires_at = now(), error_message = ${because}, shares_blame = null where ${held(run)}`.pipe(
          Effect.andThen(sql.afterCommit(notifier.signal("runs"))),
          orDie
        )

      const lapseAll = orDie(Effect.asVoid(sql`select kb.lapse_leases()`))

      const handBack = (run: ClaimedRun) =>
        sql`
          update kb.agent_runs set lease_expires_at = now(), attempt = attempt - 1, attempt_token = null, shares_blame = null
          where ${held(run)}`.pipe(Effect.asVoid, orDie)

      return Runs.of({
        ...queueing,
        ...claiming,
        heartbeat,
        hold,
        guard,
        holdToEnd,
        holdToFail,
        holdBlamed,
        release,
        handBack,
        lapseAll,
        mayAsk,
        foresee,
        keepPartial,
        overtime,
        holdOvertime,
        complete,
        fail,
        pause,
        timeOut,
        wait,
        cancel,
        ...resuming,
        ...yielding,
        holdOpen,
        holdEmptied,
        get,
        among,
        newestOn,
        saidBy,
        list,
        chain
      })
    })
  )
}

// Queues runs with the contexts they work on.
//
// Many runs are one statement. A unique key allows one active run per context: a transaction that loses that race queues nothing and need
// not, because the active run will see what was appended. Another unique key gives each scheduled time one run. A tainted run taints the
// context of the run it delegates to, and delegation in a person's own context stays private to that person.

/**
 * The priority of a run that a person waits for, of a reaction, and of a backtest; lower comes first. A run keeps its priority and its
 * sub-runs inherit it.
 */
const [awaited, reacting, testing] = [0, 1, 2]

const isWaitReason = (reason: PauseReason | null): reason is WaitReason =>
  reason === "question" || reason === "subAgents" || reason === "toolResult"

/** The verbs of `Runs` that queue a run, at first or after a pause. */
const makeQueueing = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const notifier = yield* Notifier

  const queue = Effect.fn("Runs.queue")(function* (runs: ReadonlyArray<NewRun>) {
    if (runs.length === 0) return
    const { projectId } = yield* ProjectTransaction
    const rows = JSON.stringify(runs)
    const contexts = sql`
      insert into kb.contexts (project_id, name, agent_id, is_remembered, owner, tainted_by)
      select ${projectId}::uuid, row."contextName", row."agentId", row."backtestId" is null, above.owner, coalesce(row."taintedBy",
        case when above.tainted_by is not null then jsonb_build_array(jsonb_build_object('kind', 'context', 'id', above.name, 'at', 0)) end)
      from jsonb_to_recordset(${rows}::text::jsonb) as row("contextName" text, "agentId" uuid, spawn jsonb, "taintedBy" jsonb, "backtestId" uuid)
      left join lateral (
        select context.name, context.owner, context.tainted_by from kb.agent_runs parent
        join kb.contexts context on context.project_id = ${projectId} and context.name = parent.context_name
        where parent.project_id = ${projectId} and parent.id = (row.spawn ->> 'parentRunId')::uuid limit 1
      ) above on true
      on conflict do nothing`
    yield* database.together(contexts, insert(projectId, rows, onePerInstant))
    yield* sql.afterCommit(notifier.signal("runs"))
  }, orDie)

  const onePerInstant = sql`(agent_id, due_at) where due_at is not null`
  const onePerContext = sql`(project_id, context_name) where status in ('queued', 'running', 'paused')`

  const insert = (projectId: ProjectId, rows: string, unique: Statement.Fragment) =>
    sql`
      insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, user_id, due_at, context_name, root_event_id, depth,
        parent_run_id, spawned_by, ancestors, spawn_depth, limits, priority, backtest_id)
      select row.id, ${projectId}::uuid, row."agentId", row."agentVersion", 'queued', row.trigger, row."userId", row."dueAt", row."contextName",
        row."rootEventId", row.depth, spawn."parentRunId", spawn."spawnedBy", coalesce(spawn.ancestors, '{}'),
        coalesce(cardinality(spawn.ancestors), 0), spawn.limits,
        coalesce((select parent.priority from kb.agent_runs parent where parent.id = spawn."parentRunId"),
          case when row."backtestId" is not null then ${testing} when row.trigger ->> 'type' in ('manual', 'context') then ${awaited}
            else ${reacting} end), row."backtestId"
      from jsonb_to_recordset(${rows}::text::jsonb) as row(id uuid, "agentId" uuid, "agentVersion" int, trigger jsonb, "userId" text,
        "dueAt" timestamptz, "contextName" text, "rootEventId" uuid, depth int, spawn jsonb, "backtestId" uuid),
        jsonb_to_record(coalesce(row.spawn, '{}')) as spawn("parentRunId" uuid, "spawnedBy" uuid, ancestors uuid[], limits jsonb)
      on conflict ${unique} do nothing returning id`

  const skip = Effect.fn("Runs.skip")(function* (runs: ReadonlyArray<SkippedRun>) {
    if (runs.length === 0) return
    const { projectId } = yield* ProjectTransaction
    yield* sql`
      insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, due_at, context_name, depth, summary, completed_at)
      select row.id, ${projectId}::uuid, row."agentId", row."agentVersion", 'skipped', row.trigger, row."dueAt", 'run-' || row.id, 0, row.reason, now()
      from jsonb_to_recordset(${JSON.stringify(runs)}::text::jsonb) as row(id uuid, "agentId" uuid, "agentVersion" int, trigger jsonb,
        "dueAt" timestamptz, reason text)
      on conflict (agent_id, due_at) where due_at is not null do nothing`
  }, orDie)

  const queueOn = Effect.fn("Runs.queueOn")(function* (run: NewRun) {
    const { projectId } = yield* ProjectTransaction
    const inserted = yield* insert(projectId, JSON.stringify([run]), onePerContext)
    if (inserted.length > 0) yield* sql.afterCommit(notifier.signal("runs"))
    return inserted.length > 0
  }, orDie)

  const wake = Effect.fn("Runs.wake")(function* (id: RunId, reason: PauseReason) {
    const { projectId } = yield* ProjectTransaction
    const woken = yield* sql`
      update kb.agent_runs set status = 'queued', pause_reason = null
      where id = ${id} and project_id = ${projectId} and status = 'paused' and pause_reason = ${reason} returning id`
    if (woken.length === 0) return false
    yield* sql.afterCommit(notifier.signal("runs"))
    yield* sql.afterCommit(notifier.signal(`run:${id}`))
    return true
  }, orDie)

  const holdResting = Effect.fn("Runs.holdResting")(function* (name: ContextName) {
    const { projectId } = yield* ProjectTransaction
    const [row] = yield* sql<{ id: RunId; status: RunStatus; pauseReason: PauseReason | null }>`
      select id, status, pause_reason from kb.agent_runs
      where project_id = ${projectId} and context_name = ${name} and status in ('queued', 'running', 'paused') for no key update`
    // A person resumes a run that a limit paused; a run that a kill switch paused continues when the switch is off.
    return row?.status === "paused" && isWaitReason(row.pauseReason)
      ? { id: row.id, reason: row.pauseReason }
      : undefined
  }, orDie)

  return { queue, queueOn, skip, wake, holdResting }
})

// Queues paused runs again.
//
// Only a pause at a limit needs a person to end it; any other pause ends by itself. The state in the `where` clause decides between two
// concurrent resumes. A run that could not make a single model request is not resumed. Its time limit starts again at the next claim, and
// its step limit with the turn that begins then.

/** The run would pause again before its first model request, because one of its budgets is exhausted. */
export class BudgetSpent extends Schema.TaggedError<BudgetSpent>()("BudgetSpent", {
  runId: Schema.String,
  detail: Schema.String
}) {}

/** The verbs of `Runs` that resume a run after a limit. */
const makeResuming = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const notifier = yield* Notifier
  const { found } = yield* makeFencing
  const { findSpentOf } = yield* makeBudgetChecks
  const reasons = PauseReason.literals.filter(isResumable)

  const queueAgain = Effect.fnUntraced(function* (which: Statement.Fragment, limits: LimitOverrides) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<{ id: RunId }>`
      update kb.agent_runs set status = 'queued', pause_reason = null, error_message = null, attempt = 0, attempts_before_step = 0, lease_expires_at = null,
        time_left_ms = null, deadline_at = null,
        limits = nullif(coalesce(limits, '{}') || ${JSON.stringify(limits)}::text::jsonb, '{}')
      where project_id = ${projectId} and status = 'paused' and backtest_id is null and ${sql.in("pause_reason", reasons)} and ${which} returning id`
    if (rows.length > 0) yield* sql.afterCommit(notifier.signal("runs"))
    for (const { id } of rows) yield* sql.afterCommit(notifier.signal(`run:${id}`))
    return rows
  })

  const resume = Effect.fn("Runs.resume")(function* (id: RunId, limits: LimitOverrides) {
    yield* Effect.flatMap(queueAgain(sql`id = ${id}`, limits), found(id))
    // Checked on the row with its new limits; a refusal rolls them back.
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

// Ends or pauses runs, together with their processing entries.
//
// Each verb is one statement on the run, which decides the race; the run's entries end in the same transaction. Skipped work is never
// recorded as done.

/** Who cancelled a run, or why: the server always gives a reason, a person may. */
export type Cancellation =
  | { readonly by: UserId; readonly because?: string }
  | { readonly by?: never; readonly because: string }

/** Why a run is paused while others answer its open calls; its time limit runs only while it waits for other runs. */
export type WaitReason = Extract<PauseReason, "question" | "subAgents" | "toolResult">

const makeOutcomes = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const notifier = yield* Notifier
  const { found, held, holdParents, isOvertime } = yield* makeFencing
  const { countFailures } = yield* makeFailureStreaks
  const { settleRuns } = yield* makeEntryCompletion
  const { countRested, rested } = yield* makeRunMetrics
  const { dropQuestions } = yield* makeDropping

  const resting = ({ ancestors, id }: ClaimedRun): RestingRun => ({
    id,
    parentRunId: ancestors.at(-1) ?? null
  })
  const tellEnd = (run: Pick<ClaimedRun, "id" | "backtestId">) =>
    Effect.andThen(
      notifier.signal(`run:${run.id}`),
      run.backtestId === null ? Effect.void : notifier.signal("backtests")
    )
  const ended = (run: Pick<ClaimedRun, "id" | "backtestId">) => sql.afterCommit(tellEnd(run))

  const completed = (summary: string) =>
    sql`status = 'completed', summary = nullif(${summary}, ''), completed_at = now(), attempt_token = null`
  /** Resets the agent's failure streak when a run that is not a backtest's completes. */
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
    // The worker that still executes the run stops it.
    yield* sql.afterCommit(notifier.signal(`taken:${id}`))
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
    yield* sql.afterCommit(notifier.signal(`taken:${id}`))
  }, orDie)

  return { complete, fail, pause, timeOut, wait, cancel }
})

const pausedSentence = (reason: PauseReason): string => `The run paused: ${reason}`
