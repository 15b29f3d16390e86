/**
 * The records of all runs; each state change is one verb and one statement.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A verb names the states it may leave in its `where` clause, so two workers
 * that race for one run are separated by the database, not by a lock here. What
 * an attempt writes carries its token: a worker that froze and wakes up later
 * finds its token gone and can write nothing.
 */
import type { ReachedCap } from "@tropism/domain/chain"
import type { ContextName, SoftStopReason } from "@tropism/domain/context-event"
import type { GraphEventId, RunId } from "@tropism/domain/ids"
import type { LimitOverrides, PauseReason, Run, RunFailure } from "@tropism/domain/run"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { WakeUps } from "../outbox/wake-ups.ts"
import { type Foresight, makeAsking } from "./asking.ts"
import type { ClaimedRun, FailedRun, NewRun, SkippedRun } from "./claimed-run.ts"
import { makeClaiming, type Places } from "./claiming.ts"
import { makeHolding, type RunHalted, type RunNotInState } from "./holding.ts"
import { type Cancellation, makeOutcomes, type WaitReason } from "./outcomes.ts"
import { makeQueueing } from "./queueing.ts"
import { makeReading, type RunFilter, type StandingRun } from "./reading.ts"
import { type BudgetSpent, makeResuming } from "./resuming.ts"
import { makeYielding } from "./yielding.ts"

type Read<A> = Effect.Effect<A, never, ProjectTransaction>
type Verb = Effect.Effect<void, RunNotInState, ProjectTransaction>

const rowsOf = (beats: ReadonlyArray<Beat>) =>
  beats.map(({ quietMs, run }) => ({
    id: run.id,
    token: run.attemptToken,
    quiet_seconds: quietMs / 1_000
  }))

/** One beat of an attempt. */
export interface Beat {
  readonly run: Pick<ClaimedRun, "id" | "attemptToken">
  /** For how long nothing has come of it. */
  readonly quietMs: number
}

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
    ) => Read<ReadonlyMap<RunId, "extended" | "locked">>
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
      foreseen?: Foresight
    ) => Effect.Effect<ReachedCap | undefined, RunHalted | RunNotInState>
    /** Asks in the caller's transaction what is to be known before the request that follows it at once. */
    readonly foresee: (run: ClaimedRun) => Read<Foresight>
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
    readonly newestOn: (name: ContextName) => Read<StandingRun | undefined>
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
      const wakeUps = yield* WakeUps
      const queueing = yield* makeQueueing
      const claiming = yield* makeClaiming
      const holding = yield* makeHolding
      const { guard, held, hold, holdBlamed, holdEmptied, holdOpen, holdToEnd, holdToFail } = holding
      const { holdOvertime, keepPartial, overtime } = holding
      const { complete, fail, pause, timeOut, wait, cancel } = yield* makeOutcomes
      const { among, chain, get, list, newestOn, saidBy } = yield* makeReading
      const { foresee, mayAsk } = yield* makeAsking
      const resuming = yield* makeResuming
      const yielding = yield* makeYielding
      const lease = sql`now() + make_interval(secs => ${runLimits.leaseMs / 1_000}::float8)`

      const heartbeat = Effect.fnUntraced(function* (beats: ReadonlyArray<Beat>, waits: boolean) {
        const isHeld = sql`run.id = beat.id and run.attempt_token = beat.token and coalesce(run.status, '') = 'running'`
        const rows = yield* sql<{ id: RunId; isExtended: boolean }>`
          with beat as (
            select * from jsonb_to_recordset(${JSON.stringify(rowsOf(beats))}::text::jsonb) as beat(id uuid, token uuid, quiet_seconds float8)
          ),
          free as materialized (
            select run.id from beat join kb.agent_runs run on ${isHeld} order by run.id
            for no key update of run ${sql.literal(waits ? "" : "skip locked")}
          ),
          extended as (
            update kb.agent_runs run set lease_expires_at = ${lease}, progress_of = attempt_token,
              progressed_at = now() - make_interval(secs => beat.quiet_seconds)
            from free join beat on beat.id = free.id where run.id = free.id returning run.id
          )
          select run.id, exists (select from extended where extended.id = run.id) as is_extended
          from beat join kb.agent_runs run on ${isHeld}`
        return new Map(rows.map(({ id, isExtended }) => [id, isExtended ? "extended" : "locked"] as const))
      }, orDie)

      const release = (run: ClaimedRun, because: string) =>
        sql`update kb.agent_runs set lease_expires_at = now(), error_message = ${because} where ${held(run)}`.pipe(
          Effect.andThen(sql.afterCommit(wakeUps.signal("runs"))),
          orDie
        )

      const lapseAll = orDie(Effect.asVoid(sql`select kb.lapse_leases()`))

      const handBack = (run: ClaimedRun) =>
        sql`
          update kb.agent_runs set lease_expires_at = now(), attempt = attempt - 1, attempt_token = null
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
