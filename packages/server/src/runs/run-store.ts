/**
 * The records of all runs; each state change is one verb and one statement.
 *
 * A verb names the states it may leave in its `where` clause, so two workers
 * that race for one run are separated by the database, not by a lock here. What
 * an attempt writes carries its token: a worker that froze and wakes up later
 * finds its token gone and can write nothing.
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
import { makeEntryCompletion, type RestingRun } from "./entry-completion.ts"
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

/** One beat of an attempt. */
export interface Beat {
  readonly run: Pick<ClaimedRun, "id" | "attemptToken">
  /** For how long nothing has come of it. */
  readonly quietMs: number
  /** Whether others are at work here, too; absent for a suspect, of which its group decides that. */
  readonly sharesBlame?: boolean
}

/** What came of a beat: `cleared` is an extended lease of a suspect that has kept a step since its last death. */
export type HeartbeatOutcome = "extended" | "cleared" | "locked"

export class Runs extends Context.Service<
  Runs,
  {
    /** Queues runs and makes the contexts that they need. */
    readonly queue: (runs: ReadonlyArray<NewRun>) => Read<void>
    /** Queues a run on an existing context, unless one is at work on it already. */
    readonly queueOn: (run: NewRun) => Read<boolean>
    /** Queues a run again that rests for this reason; false when it does not. */
    readonly wake: (id: RunId, reason: PauseReason) => Read<boolean>
    /** Holds the run of a context for this transaction, and answers it when it waits for a person, a client or other runs. */
    readonly holdResting: (
      name: ContextName
    ) => Read<{ readonly id: RunId; readonly reason: PauseReason } | undefined>
    /** Records triggers that get no run, as runs that were skipped. */
    readonly skip: (runs: ReadonlyArray<SkippedRun>) => Read<void>
    /** Takes queued runs for this worker. */
    readonly claim: (workerId: string, places: Places) => Read<ReadonlyArray<ClaimedRun>>
    /** Takes over runs whose worker has gone silent. */
    readonly takeOver: (workerId: string, places: Omit<Places, "oldest">) => Read<ReadonlyArray<ClaimedRun>>
    /** Takes suspects, queued or silent, as many as may be at work together; only of those named, where some are. */
    readonly claimSuspects: (
      workerId: string,
      limit: number,
      among: ReadonlyArray<RunId> | undefined
    ) => Read<ReadonlyArray<ClaimedRun>>
    /** Runs whose worker has gone silent and whose attempts are spent. */
    readonly spent: Read<ReadonlyArray<RunId>>
    /** Such a run, ended as failed; none where it is no such run any more. */
    readonly giveUp: (id: RunId) => Read<ReadonlyArray<FailedRun>>
    /** Runs at work of which nothing comes for too long, and where they are asked for those of entries in processing that nobody took over for as long. */
    readonly stuck: (withLapsed: boolean) => Read<ReadonlyArray<RunId>>
    /** Such a run, ended as failed with its entries; none where it is no such run any more. */
    readonly abandon: (id: RunId) => Read<ReadonlyArray<FailedRun>>
    /** Says what a failed run that has no summary has said last. */
    readonly summarize: (id: RunId, summary: string) => Read<void>
    /**
     * Extends the leases of attempts, and notes for how long nothing has come of each.
     *
     * **Details** Answers what came of each by its run; a run that is no longer its attempt's is missing. Rows that another
     * transaction holds are waited for or answered as `locked`.
     */
    readonly heartbeat: (
      beats: ReadonlyArray<Beat>,
      waits: boolean
    ) => Read<ReadonlyMap<RunId, HeartbeatOutcome>>
    /** Holds the run for this transaction, if the attempt may still write and no kill switch is on. */
    readonly hold: (run: Pick<ClaimedRun, "id" | "attemptToken">) => Verb
    /** The same as a part of a statement: it answers a row when the attempt may write. */
    readonly guard: (run: Pick<ClaimedRun, "id" | "attemptToken">) => Statement.Fragment
    /** Holds a run that another waits for, and that other, in the order in which the run's end writes to both. */
    readonly holdToEnd: (run: ClaimedRun) => Verb
    /** Holds a run that fails, its parent and the agent that counts it, before the log: whoever speaks takes these in that order. */
    readonly holdToFail: (run: ClaimedRun) => Verb
    /** Holds the agent of a run that completes, for the same reason, where that makes failures good. */
    readonly holdBlamed: (run: ClaimedRun) => Read<void>
    /** Gives a run back after its attempt broke, so that another worker may take it at once; `because` is told when no attempt is left. */
    readonly release: (run: ClaimedRun, because: string) => Read<void>
    /** Gives a run back because this worker is stopping; the attempt does not count. */
    readonly handBack: (run: ClaimedRun) => Read<void>
    /** Gives back a run that this attempt still holds although it might not write: a kill switch was on. It rests, or is queued where none is on any more; the attempt does not count. */
    readonly yieldToSwitch: (run: ClaimedRun) => Read<void>
    /** Lets every run be taken over at once: for a program that knows it is alone on its database. */
    readonly lapseAll: Effect.Effect<void>
    /** Asked before each model request: fails when the run must not go on, and answers the budget that is spent, if one is. */
    readonly mayAsk: (
      run: ClaimedRun,
      foreseen?: PrefetchedBudget
    ) => Effect.Effect<ReachedCap | undefined, RunHalted | RunNotInState>
    /** Asks in the caller's transaction what is to be known before the request that follows it at once. */
    readonly foresee: (run: ClaimedRun) => Read<PrefetchedBudget>
    /** Keeps what the model has said of an answer that is not complete. */
    readonly keepPartial: (run: ClaimedRun, text: string) => Effect.Effect<void, RunNotInState>
    readonly complete: (run: ClaimedRun, summary: string) => Verb
    /** Ends a run as failed, for a reason in one word and in a sentence; `summary` is what it had said, unless an answer was broken off: then that is. A blameless failure, an outage that did not end, does not count in the agent's streak. */
    readonly fail: (
      run: ClaimedRun,
      reason: RunFailure,
      errorMessage: string,
      summary: string,
      isBlameless?: boolean
    ) => Verb
    /** Lets a run rest; `summary` is what its log tells that it has said, and `detail` says in a sentence what the reason means here. */
    readonly pause: (run: ClaimedRun, reason: PauseReason, summary: string, detail?: string) => Verb
    /** The runs whose time and grace are over although no attempt has paused them. */
    readonly overtime: Read<ReadonlyArray<Pick<ClaimedRun, "id" | "contextName">>>
    /** Holds such a run and the one that waits for it, whoever works on it, and answers what was said of an answer that is not complete. */
    readonly holdOvertime: (id: RunId) => Effect.Effect<string, RunNotInState, ProjectTransaction>
    /** Lets such a run rest; whoever works on it has lost it. */
    readonly timeOut: (id: RunId, reason: SoftStopReason, summary: string) => Verb
    /** Pauses a run until a person or a client answers, or the runs that it spawned end; its entries stay in processing. */
    readonly wait: (run: ClaimedRun, reason: WaitReason) => Verb
    /** Ends a run that has not ended, whatever it does. */
    readonly cancel: (id: RunId, summary: string, cancellation: Cancellation) => Verb
    /** Queues a run again that a limit paused, with what it may use from now on; refused, and to be rolled back, where that is spent. */
    readonly resume: (
      id: RunId,
      limits: LimitOverrides
    ) => Effect.Effect<void, RunNotInState | BudgetSpent, ProjectTransaction>
    /** Queues the run again that a limit paused on a context; false when there is none. */
    readonly resumeOn: (name: ContextName) => Read<boolean>
    /** Whether a limit paused the run of a context: it goes on only when a person says so. */
    readonly restsAtLimit: (name: ContextName) => Read<boolean>
    /** Holds a run that has not ended for this transaction, whoever works on it, and answers what was said of an answer that is not complete. */
    readonly holdOpen: (id: RunId) => Effect.Effect<string, RunNotInState, ProjectTransaction>
    /** Holds the queued runs that nobody has begun and whose entries are all gone, but those that somebody claims at this moment. */
    readonly holdEmptied: Read<ReadonlyArray<{ readonly id: RunId; readonly contextName: ContextName }>>
    readonly get: (id: RunId) => Read<Run | undefined>
    /** Those of these runs that are there, newest first. */
    readonly among: (ids: ReadonlyArray<RunId>) => Read<ReadonlyArray<Run>>
    /** How the run at work on a conversation stands, else the last that was. */
    /** What a run has said so far, in order: its answers, and what there was of those that were broken off; as much as a summary holds, and how much there is. */
    readonly saidBy: (
      id: RunId,
      contextName: string
    ) => Read<{ readonly texts: ReadonlyArray<string>; readonly chars: number }>
    readonly newestOn: (name: ContextName) => Read<LiveRun | undefined>
    /** The runs of a chain after an id, in the order in which they were queued. */
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

// Puts runs into the queue, with the contexts that they work on.
//
// Many runs are one statement. That at most one run is at work on a context is a
// unique key: whoever loses that race queues nothing and need not, because the
// run at work will see what was appended. What a tainted run hands over taints the
// context of whoever takes it, and what is handed on in somebody's own context
// stays theirs. That an instant of a schedule has one run is another.

/** Of a run that somebody waits for, of what reacts, and of a backtest's; the lower comes first. A run keeps its own, and what it spawns has the same. */
const [awaited, reacting, testing] = [0, 1, 2]

const isWaitReason = (reason: PauseReason | null): reason is WaitReason =>
  reason === "question" || reason === "subAgents" || reason === "toolResult"

/** The verbs of `Runs` by which a run begins, or goes on after a rest. */
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
    // What a limit has stopped a person resumes, and what a kill switch has stopped goes on when that is off.
    return row?.status === "paused" && isWaitReason(row.pauseReason)
      ? { id: row.id, reason: row.pauseReason }
      : undefined
  }, orDie)

  return { queue, queueOn, skip, wake, holdResting }
})

// Puts paused runs back into the queue.
//
// Only what a limit stopped goes on because a person says so: whatever else lets
// a run rest, lets it go on by itself. The state in the `where` clause decides
// between two who resume at once. What could not ask its model once is not
// resumed. Time counts afresh from the next claim, and
// steps from the turn that begins then.

/** A run that would rest again before it asked its model: a budget that it spends is spent. */
export class BudgetSpent extends Schema.TaggedError<BudgetSpent>()("BudgetSpent", {
  runId: Schema.String,
  detail: Schema.String
}) {}

/** The verbs of `Runs` by which a run that a limit stopped goes on. */
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

// The verbs by which a run comes to rest, together with its processing entries.
//
// Each is one statement on the run, which decides the race; its entries end in
// the same transaction. Skipped work is never recorded as done.

/** By whom a run is cancelled, or why: the server always says why, and a person need not. */
export type Cancellation =
  | { readonly by: UserId; readonly because?: string }
  | { readonly by?: never; readonly because: string }

/** Why a run is paused whose open calls are answered by others; its own time counts only while it waits for other runs. */
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
