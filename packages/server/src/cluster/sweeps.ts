/**
 * Runs periodic maintenance, each sweep on one server at a time.
 *
 * A sweep takes an advisory lock for one transaction and skips if the lock is taken. Sweeps are safe to run twice, so the lock saves work
 * and guards nothing.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Cause, Clock, Context, Effect, Layer, Record, Semaphore } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { BroughtContexts } from "../chat/conversations.ts"
import { chatLimits } from "../chat/limits.ts"
import { Contexts } from "../contexts/contexts.ts"
import { isBrokenByAway } from "../database/connection-errors.ts"
import { Database, orDie, type ProjectTransaction } from "../database/database.ts"
import { tokenLimits } from "../http/limits.ts"
import { Tokens } from "../http/tokens.ts"
import { agentLimits, runLimits, toolLimits } from "../limits.ts"
import { share } from "../outbox/notifier.ts"
import { reportOutage } from "../outbox/outages.ts"
import { reviewLimits } from "../review/limits.ts"
import { Tasks } from "../review/tasks.ts"
import { RunCancellation } from "../runs/cancellation.ts"
import { ClientResults } from "../runs/client-results.ts"
import { KillSwitches } from "../runs/kill-switches.ts"
import { ProcessingLog, StuckAfterMs, WaitingEntries } from "../runs/processing-log.ts"
import { Descendants } from "../runs/sub-runs.ts"
import { countLoopFaults, noteSweep } from "../telemetry/metrics.ts"
import { IdempotencyKeys, keyLimits } from "../tenancy/idempotency-keys.ts"

export class Sweeps extends Context.Service<
  Sweeps,
  {
    /** Runs all sweeps at their intervals, endlessly. */
    readonly run: Effect.Effect<never>
    /** Abandons stuck processing entries; returns how many (S000-R19, R20). */
    readonly abandonStuck: Effect.Effect<number>
    /** Deletes log entries that ended long ago; returns how many (S001-K02). */
    readonly forgetOld: Effect.Effect<number>
    /** Purges unused contexts of clients that keep their own conversations; returns how many. */
    readonly forgetContexts: Effect.Effect<number>
    /** Deletes expired idempotency keys; returns how many. */
    readonly forgetKeys: Effect.Effect<number>
    /** Deletes tokens and sessions that ended long ago; returns how many. */
    readonly forgetTokens: Effect.Effect<number>
    /** Makes runs follow the kill switches, in case the server that set one died before they did. */
    readonly followSwitches: Effect.Effect<number>
    /** Expires undecided suggestions; returns how many. */
    readonly expireTasks: Effect.Effect<number>
    /**
     * Cancels runs that are paused at a limit below a parent that has ended, each in its own transaction without the lock; returns how
     * many.
     */
    readonly cancelResting: Effect.Effect<number>
    /** Releases parked entries that wait for nothing; returns how many. */
    readonly letGoParked: Effect.Effect<number>
    /** Fails tool calls that no client answered in time, one run per transaction; returns how many. */
    readonly failOverdueCalls: Effect.Effect<number>
    /** Ends the sessions of idle contexts; returns how many (S004-R41). */
    readonly endSessions: Effect.Effect<number>
  }
>()("@tropism/server/cluster/Sweeps") {
  static readonly layer = Layer.effect(
    Sweeps,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const endings = yield* RunCancellation
      const { cancelResting } = yield* Descendants
      const contexts = yield* Contexts
      const log = yield* ProcessingLog
      const stuckAfterMs = yield* StuckAfterMs
      const switches = yield* KillSwitches
      const waiting = yield* WaitingEntries
      const tasks = yield* Tasks
      const brought = yield* BroughtContexts
      const results = yield* ClientResults
      const keys = yield* IdempotencyKeys
      const tokens = yield* Tokens

      /** Runs an effect unless another server is running it. */
      const alone = <A>(name: string, effect: Effect.Effect<A>, otherwise: A) =>
        orDie(
          sql.withTransaction(
            Effect.gen(function* () {
              const [row] = yield* sql<{
                taken: boolean
              }>`select pg_try_advisory_xact_lock(hashtextextended(${name}, 0)) as taken`
              return row?.taken === true ? yield* effect : otherwise
            })
          )
        )

      /** Runs an effect in each project, each in its own transaction, so that one project delays no other. */
      const eachAlone = (
        name: string,
        loop: string,
        projects: ReadonlyArray<{ readonly projectId: ProjectId }>,
        effect: Effect.Effect<number, never, ProjectTransaction>
      ) =>
        Effect.map(
          Effect.forEach(
            projects,
            ({ projectId }) =>
              share(loop, projectId, alone(`${name} ${projectId}`, database.inProject(projectId, effect), 0)),
            { concurrency: projectsAtOnce }
          ),
          sumOf
        )

      /** Ends the stuck runs of a project, each in its own transaction, so that a failure affects no other. */
      const abandonEach = Effect.fnUntraced(function* (projectId: ProjectId) {
        const name = `tropism.stuck ${projectId}`
        const stuck = yield* database.inProject(projectId, endings.stuck)
        const ended = yield* Effect.forEach(stuck, (id) =>
          share(
            "Stuck detector",
            projectId,
            alone(name, database.inProject(projectId, endings.abandon(id)), 0)
          )
        )
        return sumOf(ended)
      })

      /** One transaction per run, so that no two runs are locked together. */
      const failEach = Effect.fnUntraced(function* (projectId: ProjectId) {
        const runs = yield* database.inProject(projectId, results.overdue)
        const failed = yield* Effect.forEach(runs, (run) =>
          alone(`tropism.overdue ${projectId}`, database.inProject(projectId, results.failOverdue(run)), 0)
        )
        return sumOf(failed)
      })

      const abandonStuck = Effect.gen(function* () {
        const projects = yield* orDie(
          sql<{
            projectId: ProjectId
          }>`select project_id from kb.projects_with_stuck_entries(${stuckAfterMs / 1_000}::float8) as project_id
            union select kb.projects_with_silent_runs(${runLimits.leaseMs / 1_000}::float8, ${stuckAfterMs / 1_000}::float8)`
        )
        const ended = yield* Effect.forEach(
          projects,
          ({ projectId }) => share("Stuck detector", projectId, abandonEach(projectId)),
          { concurrency: projectsAtOnce }
        )
        return (
          sumOf(ended) + (yield* eachAlone("tropism.stuck", "Stuck detector", projects, log.abandonOrphans))
        )
      })

      /** The same in the projects that a statement finds. */
      const eachFound = (
        name: string,
        loop: string,
        projects: Statement.Statement<{ readonly projectId: ProjectId }>,
        effect: Effect.Effect<number, never, ProjectTransaction>
      ) => Effect.flatMap(orDie(projects), (found) => eachAlone(name, loop, found, effect))

      const expireTasks = Effect.suspend(() =>
        eachFound(
          "tropism.expiry",
          "Expiry of suggestions",
          sql`select project_id from kb.projects_with_expired_tasks() as project_id`,
          tasks.expire
        )
      )

      const endSessions = Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
        eachFound(
          "tropism.sessions",
          "End of sessions",
          sql`select project_id from kb.projects_with_resting_sessions(${agentLimits.sessionRestMs / 1_000}::float8, ${new Date(nowMs)}) as project_id`,
          contexts.endSessions
        )
      )

      const failOverdueCalls = Effect.gen(function* () {
        const projects = yield* orDie(
          sql<{ projectId: ProjectId }>`select project_id from kb.projects_with_overdue_calls() as project_id`
        )
        const failed = yield* Effect.forEach(
          projects,
          ({ projectId }) => share("Overdue tool calls", projectId, failEach(projectId)),
          { concurrency: projectsAtOnce }
        )
        return sumOf(failed)
      })

      const followSwitches = alone("tropism.switches", switches.follow, 0)

      const letGoParked = alone("tropism.parked", waiting.letGoParked, 0)

      const sweeps = {
        abandonStuck,
        ...forgettingWith(alone, { brought, keys, log, tokens }),
        followSwitches,
        expireTasks,
        cancelResting,
        letGoParked,
        failOverdueCalls,
        endSessions
      }
      return Sweeps.of({ ...sweeps, run: atIntervals(sweeps) })
    })
  )
}

type Alone = <A>(name: string, effect: Effect.Effect<A>, otherwise: A) => Effect.Effect<A>

/** The sweeps that delete old rows, one batch per transaction. */
const forgettingWith = (
  alone: Alone,
  kept: {
    readonly brought: BroughtContexts["Service"]
    readonly keys: IdempotencyKeys["Service"]
    readonly log: ProcessingLog["Service"]
    readonly tokens: Tokens["Service"]
  }
) => ({
  forgetOld: inBatches(
    alone("tropism.forget", batchOf(kept.log.forget, runLimits.forgetBatchEntries), noBatch),
    runLimits.forgetMaxBatches
  ),
  forgetContexts: inBatches(
    alone("tropism.contexts", kept.brought.forget, noBatch),
    chatLimits.forgetMaxBatches
  ),
  forgetKeys: inBatches(
    alone("tropism.keys", batchOf(kept.keys.forget, keyLimits.forgetBatchKeys), noBatch),
    keyLimits.forgetMaxBatches
  ),
  forgetTokens: inBatches(
    alone("tropism.tokens", batchOf(kept.tokens.forget, tokenLimits.forgetBatchTokens), noBatch),
    tokenLimits.forgetMaxBatches
  )
})

/** Runs every sweep at its interval, endlessly; few at a time, so that a starting server needs no connection for each. */
export const atIntervals = (all: Omit<Context.Service.Shape<typeof Sweeps>, "run">): Effect.Effect<never> => {
  const places = Semaphore.makeUnsafe(sweepsAtOnce)
  const sweeps = Record.map(all, (sweep) => places.withPermit(sweep))
  const loops = [
    every("The stuck detector", runLimits.stuckIntervalMs, sweeps.abandonStuck, (count) =>
      Effect.logWarning(`${count} processing entries were stuck and are abandoned now`)
    ),
    every("The log's retention", runLimits.forgetIntervalMs, sweeps.forgetOld, (count) =>
      Effect.logInfo(`${count} old processing entries are removed`)
    ),
    every("The contexts' retention", chatLimits.forgetIntervalMs, sweeps.forgetContexts, (count) =>
      Effect.logInfo(`What was said in ${count} contexts of other programs' conversations is removed`)
    ),
    every("The keys' retention", keyLimits.forgetIntervalMs, sweeps.forgetKeys, (count) =>
      Effect.logInfo(`${count} old keys of requests are removed`)
    ),
    every("The tokens' retention", tokenLimits.forgetTokensIntervalMs, sweeps.forgetTokens, (count) =>
      Effect.logInfo(`${count} tokens that ended long ago are removed`)
    ),
    every("The kill switches' sweep", runLimits.switchIntervalMs, sweeps.followSwitches, (count) =>
      Effect.logWarning(`${count} runs had not followed a kill switch and do now`)
    ),
    every("The expiry of suggestions", reviewLimits.expiryIntervalMs, sweeps.expireTasks, (count) =>
      Effect.logInfo(`${count} suggestions were decided by nobody in time and are expired now`)
    ),
    every("The unwanted runs' sweep", runLimits.stuckIntervalMs, sweeps.cancelResting, (count) =>
      Effect.logInfo(`${count} runs rested that were wanted by no run above them, and are cancelled now`)
    ),
    every("The parked entries' sweep", runLimits.stuckIntervalMs, sweeps.letGoParked, (count) =>
      Effect.logWarning(`${count} waiting entries were parked behind nothing and go on now`)
    ),
    every("The sweep of overdue tool calls", toolLimits.overdueIntervalMs, sweeps.failOverdueCalls, (count) =>
      Effect.logInfo(`${count} tool calls were not answered by a client in time and have failed`)
    ),
    every("The end of sessions", agentLimits.sessionIntervalMs, sweeps.endSessions, (count) =>
      Effect.logDebug(`${count} contexts have rested for long, and their sessions have ended`)
    )
  ]
  // The loops never end, so each needs its own fiber; with less concurrency the later ones would never start.
  return Effect.andThen(Effect.all(loops, { concurrency: loops.length }), Effect.never)
}

const sumOf = (counts: ReadonlyArray<number>): number => counts.reduce((sum, count) => sum + count, 0)

const sweepsAtOnce = 2

/** Projects at once in which a sweep may wait for locks. */
const projectsAtOnce = 2

/** The count of one transaction's sweep, and whether there may be more. */
interface Batch {
  readonly count: number
  readonly hasMore: boolean
}

const noBatch: Batch = { count: 0, hasMore: false }

/** A batch of a sweep that deletes all it finds: a full batch means that there may be more. */
const batchOf = (sweep: Effect.Effect<number>, most: number): Effect.Effect<Batch> =>
  Effect.map(sweep, (count) => ({ count, hasMore: count >= most }))

/** One transaction per batch, so that a long sweep holds no lock for long. */
const inBatches = (batch: Effect.Effect<Batch>, atMost: number): Effect.Effect<number> =>
  Effect.gen(function* () {
    let swept = 0
    for (let done = 0; done < atMost; done += 1) {
      const { count, hasMore } = yield* batch
      swept += count
      if (!hasMore) break
    }
    return swept
  })

/**
 * Runs a sweep at an interval, endlessly, and logs when it found something; not while the process exits.
 *
 * Its start is recorded as well as each end: otherwise a sweep that never finishes would leave nothing to alert on.
 */
export const every = (
  name: string,
  intervalMs: number,
  sweep: Effect.Effect<number>,
  said: (count: number) => Effect.Effect<void>
): Effect.Effect<never> =>
  Effect.tap(sweep, (count) => (count === 0 ? Effect.void : said(count))).pipe(
    Effect.andThen(noteNow(name)),
    Effect.catchCause((cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.void
        : isBrokenByAway(cause)
          ? reportOutage(Cause.squash(cause))
          : Effect.andThen(
              countLoopFaults(name, 1),
              Effect.logError(`${name} failed and will try again`, cause)
            )
    ),
    Effect.andThen(Effect.sleep(intervalMs)),
    Effect.forever,
    (sweeping) => Effect.andThen(Effect.andThen(noteNow(name), countLoopFaults(name, 0)), sweeping)
  )

const noteNow = (name: string) => Effect.flatMap(Clock.currentTimeMillis, (nowMs) => noteSweep(name, nowMs))
