/**
 * What must happen now and then, on one server at a time.
 *
 * A sweep takes an advisory lock for one transaction; a server that finds it
 * taken does nothing, because another is at it. Sweeps are safe to run twice, so
 * the lock saves work and guards nothing.
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
    /** Sweeps for ever, at their intervals. */
    readonly run: Effect.Effect<never>
    /** Abandons processing entries that nobody works on; answers how many (S000-R19, R20). */
    readonly abandonStuck: Effect.Effect<number>
    /** Removes log entries that have ended long ago; answers how many (S001-K02). */
    readonly forgetOld: Effect.Effect<number>
    /** Removes what was said in contexts of clients that keep their conversations themselves; answers of how many. */
    readonly forgetContexts: Effect.Effect<number>
    /** Removes keys of requests that nobody will send again; answers how many. */
    readonly forgetKeys: Effect.Effect<number>
    /** Removes tokens and sessions that ended long ago; answers how many. */
    readonly forgetTokens: Effect.Effect<number>
    /** Lets runs follow the kill switches, should the program that turned one have died before they did. */
    readonly followSwitches: Effect.Effect<number>
    /** Ends the wait of suggestions that nobody decided in time; answers how many. */
    readonly expireTasks: Effect.Effect<number>
    /** Ends runs that rest at a limit and that no run above them wants any more, each in a transaction of its own and so under no lock; answers how many. */
    readonly cancelResting: Effect.Effect<number>
    /** Lets waiting entries go that are parked behind nothing; answers how many. */
    readonly letGoParked: Effect.Effect<number>
    /** Fails tool calls that no client has answered in time, a run in each transaction; answers how many. */
    readonly failOverdueCalls: Effect.Effect<number>
    /** Ends the sessions of contexts that have rested for long; answers how many of them (S004-R41). */
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

      /** Runs an effect unless another server is doing the same. */
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

      /** Does something in each project, in a transaction for each: what holds one up holds nothing of the others. */
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

      /** Ends the stuck runs of a project, each in a transaction of its own: one that cannot be ended keeps nobody from anything. */
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

      /** Each run in a transaction of its own, so that no two of them are locked together. */
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

/** The sweeps that remove what is old, a batch in each transaction. */
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

/** Every sweep at its interval, for ever; so many at a time that at its start a server needs no connection for each. */
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
  // None of them ever ends, so each has a fiber of its own: one that waited for another's end would never begin.
  return Effect.andThen(Effect.all(loops, { concurrency: loops.length }), Effect.never)
}

const sumOf = (counts: ReadonlyArray<number>): number => counts.reduce((sum, count) => sum + count, 0)

const sweepsAtOnce = 2

/** In so many projects at once something is done that may wait for somebody. */
const projectsAtOnce = 2

/** What was swept in one transaction, and whether there may be more. */
interface Batch {
  readonly count: number
  readonly hasMore: boolean
}

const noBatch: Batch = { count: 0, hasMore: false }

/** A batch of a sweep that removes all it finds: there may be more where it was as many as it takes. */
const batchOf = (sweep: Effect.Effect<number>, most: number): Effect.Effect<Batch> =>
  Effect.map(sweep, (count) => ({ count, hasMore: count >= most }))

/** One batch is one transaction, so that a long sweep holds no lock for long. */
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
 * Sweeps at an interval, for ever, and says when there was something to sweep; at the end of the program it says nothing.
 *
 * **Details** Its start is noted as well as each end: of a sweep that never came to one there would be nothing to raise an alarm on.
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
