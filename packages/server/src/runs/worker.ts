/**
 * Claims queued runs, extends their leases and runs their actors.
 *
 * Projects take turns, so one with a thousand queued runs does not delay the others. A heartbeat extends the lease of a running actor and
 * stops the actor when its run is lost. The worker decides nothing: the claim in the database does. Suspects, whose attempts died with
 * their servers, are claimed in small groups, and the next group only when each run of the previous one has stored a step or ended; a death
 * then has few possible causes.
 */
import type { ProjectId, RunId } from "@tropism/domain/ids"
import {
  Cause,
  Context,
  Effect,
  Fiber,
  FiberMap,
  FiberSet,
  Layer,
  Semaphore,
  Clock,
  Deferred,
  Queue
} from "effect"
import { SqlClient } from "effect/sql"
import { TextDeltas } from "../contexts/text-deltas.ts"
import { CrashPoint } from "../crash-point.ts"
import { isBrokenByAway, isDatabaseAway } from "../database/connection-errors.ts"
import { Database, orDie, planningByKeys, type ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { runLimits } from "../limits.ts"
import { CurrentProgress, makeProgress, type Progress } from "../models/progress.ts"
import { CurrentAsker } from "../models/request-queue.ts"
import { inTurn } from "../outbox/fair-slots.ts"
import { drive, share, untilNotified, Notifier, nextNotification } from "../outbox/notifier.ts"
import { outageLimits, reportOutage, retryDuringOutages } from "../outbox/outages.ts"
import { traceIdOf } from "../telemetry/tracing.ts"
import { RunCancellation } from "./cancellation.ts"
import type { Beside } from "./claims.ts"
import { Actor } from "./engine.ts"
import { WorkerLiveness, PeerVisibility } from "./liveness.ts"
import { Runs } from "./run-store.ts"
import { causeSentence } from "./run-texts.ts"
import type { ClaimedRun } from "./run-types.ts"

/** How many runs this server executes concurrently; `TROPISM_CONCURRENT_RUNS`. */
export class ConcurrentRuns extends Context.Reference<number>("@tropism/server/run/ConcurrentRuns", {
  defaultValue: () => runLimits.concurrentRuns
}) {}

/** A project with runs to claim. */
interface DueProject {
  readonly projectId: ProjectId
  /** Whether some of its runs have expired leases. */
  readonly hasLapsed: boolean
  readonly hasSuspects: boolean
}

export class Worker extends Context.Service<
  Worker,
  {
    /** Claims and executes runs until interrupted; the interruption waits until all its runs are released. */
    readonly run: Effect.Effect<never>
    /** Claims nothing from now on; running runs continue. */
    readonly claimNoMore: Effect.Effect<void>
    /** Claims due runs while there are free slots; true when something was claimed. */
    readonly round: Effect.Effect<boolean>
  }
>()("@tropism/server/run/Worker") {
  static readonly layer = Layer.effect(
    Worker,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const runs = yield* Runs
      const actor = yield* Actor
      const words = yield* TextDeltas
      const endings = yield* RunCancellation
      const notifier = yield* Notifier
      const { isMissed } = yield* PeerVisibility
      const attendance = yield* WorkerLiveness
      const slots = yield* ConcurrentRuns
      const { backtests, spare } = sharesOf(slots)
      const workerId = (yield* WorkerName) ?? (yield* (yield* Ids).next)
      const hands = yield* FiberSet.make<void>()
      const givingUp = yield* FiberMap.make<ProjectId, void>()
      const claiming = yield* Semaphore.make(1)
      let isLeaving = false
      /** Stops the attempts; the runs they release are left to other workers. */
      const leave = Effect.suspend(() => {
        isLeaving = true
        return FiberSet.clear(hands)
      })
      yield* Effect.addFinalizer(() => leave)
      const { beside, count, dismiss, handsOf, suspects, testing } = makeAtWork()
      const { beat } = yield* makeHeartbeat((run) =>
        Effect.andThen(
          Effect.sync(() => dismiss(run)),
          notifier.signal("runs")
        )
      )
      /** Attempts that are claimed but have not begun, and whether claiming waits until there are fewer. */
      let [beginning, isHeldBack] = [0, false]
      /** Runs claimed so far from the queues of the projects that have one. */
      const takenFrom = new Map<ProjectId, number>()
      let lastServed: ProjectId | undefined

      const projects = orDie(sql<DueProject>`
        select project_id, bool_or(lapsed) as has_lapsed, bool_or(suspects) as has_suspects from (
          select project_id, false as lapsed, false as suspects from kb.projects_with_queued_runs() as project_id
          union all select project_id, true, false from kb.projects_with_lapsed_runs() as project_id
          union all select project_id, false, true from kb.projects_with_suspects(${runLimits.suspectDeaths}) as project_id
        ) due group by project_id order by project_id`)

      const inProject = <A, E>(run: ClaimedRun, effect: Effect.Effect<A, E, ProjectTransaction>) =>
        database.inProject(run.projectId, effect)

      /** Releases a run at once. After a database outage it waits until the database is back, longer each time. */
      const giveBack = (run: ClaimedRun, cause: Cause.Cause<never>) => {
        const given = inProject(run, runs.release(run, causeSentence(Cause.squash(cause))))
        const slowings = Math.min(run.attempt - 1, outageLimits.slowings)
        return isBrokenByAway(cause)
          ? Effect.andThen(Effect.sleep(outageLimits.retryMs * 4 ** slowings), retryDuringOutages(given))
          : given
      }

      /**
       * A defect releases the run, which is claimed again a limited number of times. The end of this worker also releases it, and does not
       * count.
       */
      const attend = (run: ClaimedRun, begun: () => void) =>
        CrashPoint.hit("run.afterClaim").pipe(
          Effect.andThen(words.make(run.projectId, run.contextName)),
          Effect.andThen(Effect.raceFirst(actor.work(run), beat(run))),
          Effect.provideServiceEffect(
            CurrentProgress,
            Effect.sync(() => makeProgress(begun))
          ),
          Effect.provideService(CurrentAsker, { projectId: run.projectId, agentId: run.agentId }),
          Effect.scoped,
          Effect.catchCause((cause) =>
            Cause.hasInterrupts(cause)
              ? Effect.failCause(cause)
              : Effect.andThen(tellBroken(cause), giveBack(run, cause))
          ),
          Effect.onInterrupt(() => inProject(run, runs.handBack(run))),
          Effect.ensuring(notifier.signal("runs")),
          Effect.annotateLogs(aboutOf(run))
        )

      /** Ends runs that may not be claimed any more in a fiber of its own: its locks may take long, and claims must not wait for them. */
      const giveUp = Effect.fnUntraced(function* (projectId: ProjectId) {
        if (yield* FiberMap.has(givingUp, projectId)) return
        const ending = yield* FiberMap.run(givingUp, projectId, endings.giveUp(projectId))
        yield* Effect.timeoutOption(Fiber.join(ending), runLimits.giveUpPatienceMs)
      })

      /** Starts a claimed run in its own fiber. */
      const begin = Effect.fnUntraced(function* (run: ClaimedRun) {
        count(run, 1)
        beginning += 1
        let isBeginning = true
        const begun = () => {
          if (!isBeginning) return
          isBeginning = false
          beginning -= 1
          if (isHeldBack && beginning <= runLimits.claimBatchRuns / 2) Effect.runSync(notifier.hear(["runs"]))
        }
        yield* FiberSet.run(
          hands,
          Effect.ensuring(
            Effect.interruptible(attend(run, begun)),
            Effect.sync(() => {
              begun()
              count(run, -1)
            })
          )
        )
      })

      const claimIn = Effect.fnUntraced(function* (
        { hasLapsed, hasSuspects, projectId }: DueProject,
        free: number
      ) {
        const claimed = yield* database
          .inProject(
            projectId,
            Effect.gen(function* () {
              const tests = backtests - testing()
              const suspected = hasSuspects
                ? yield* runs.claimSuspects(
                    workerId,
                    free,
                    suspects.size === 0 ? undefined : [...suspects.keys()]
                  )
                : []
              const lapsed = hasLapsed
                ? yield* runs.takeOver(workerId, {
                    limit: free - suspected.length,
                    backtests: tests,
                    beside: suspected.length > 0 ? "several" : beside()
                  })
                : []
              const taken = takenFrom.get(projectId) ?? 0
              const begun = [...suspected, ...lapsed]
              const limit = free - begun.length
              const queued = yield* runs.claim(workerId, {
                limit,
                oldest: oldestOf(taken, limit),
                backtests: tests - begun.filter(isTest).length,
                beside: begun.length > 0 ? "several" : beside()
              })
              takenFrom.set(projectId, taken + queued.length)
              return [...begun, ...queued]
            })
          )
          .pipe(planningByKeys)
        for (const run of claimed) {
          if (isLeaving) {
            yield* inProject(run, runs.handBack(run))
            continue
          }
          yield* begin(run)
        }
        return claimed.length
      }, Effect.uninterruptible)

      /** Claims one share for each project with work, in turn, so that all of them advance. */
      const round = Effect.gen(function* () {
        if (isLeaving || (yield* isMissed)) return false
        const due = inTurn(yield* projects, lastServed)
        for (const projectId of takenFrom.keys())
          if (!due.some((project) => project.projectId === projectId)) takenFrom.delete(projectId)
        let [claimed, asked] = [0, 0]
        /** During a database outage no run could have been claimed. */
        const notAsked = (cause: Cause.Cause<never>) =>
          Effect.sync(() => {
            if (isBrokenByAway(cause)) asked -= 1
          })
        for (const [index, project] of due.entries()) {
          const free = slots - (yield* FiberSet.size(hands))
          isHeldBack = beginning >= runLimits.claimBatchRuns
          if (free <= 0 || isHeldBack) break
          const part = Math.min(
            runLimits.claimBatchRuns - beginning,
            Math.ceil(free / (due.length - index)),
            placesFor(project.projectId, free)
          )
          if (part <= 0) continue
          asked += 1
          lastServed = project.projectId
          claimed += yield* share(
            "Worker",
            project.projectId,
            Effect.tapCause(
              Effect.andThen(
                project.hasLapsed ? giveUp(project.projectId) : Effect.void,
                claimIn(project, part)
              ),
              notAsked
            )
          )
        }
        // Suspects wait for their turn although there are slots.
        const isHeldUp = suspects.size > 0 && due.some(({ hasSuspects }) => hasSuspects)
        yield* attendance.note(asked === due.length && !isHeldUp)
        return claimed > 0
      }).pipe(claiming.withPermit)

      /** The last free slots are reserved for projects without running runs. */
      const placesFor = (projectId: ProjectId, free: number): number =>
        Math.max(handsOf.has(projectId) ? 0 : 1, free - spare)

      return Worker.of({
        claimNoMore: Effect.sync(() => {
          isLeaving = true
        }),
        run: drive("Worker", "runs", untilNotified, round).pipe(
          Effect.onInterrupt(() => leave),
          Effect.provideService(Notifier, notifier)
        ),
        round
      })
    })
  )
}

/** Tracks the runs that the worker executes. */
const makeAtWork = () => {
  /** Used slots by project; a project without any is absent. */
  const handsOf = new Map<ProjectId, number>()
  /** Attempts by run: a run has two here when the first has lost it and has not stopped yet. */
  const attemptsOf = new Map<RunId, number>()
  /** Running suspects that have not stored a step since their last death. */
  const suspects = new Map<RunId, ClaimedRun>()
  let tests = 0
  const dismiss = (run: ClaimedRun): void => {
    if (suspects.get(run.id)?.attemptToken === run.attemptToken) suspects.delete(run.id)
  }
  return {
    handsOf,
    suspects,
    /** Slots used by backtests. */
    testing: () => tests,
    /** Removes a run from the suspects. */
    dismiss,
    count: (run: ClaimedRun, by: 1 | -1): void => {
      if (isTest(run)) tests += by
      addTo(handsOf, run.projectId, by)
      addTo(attemptsOf, run.id, by)
      if (by === -1) dismiss(run)
      else if (run.isSuspect) suspects.set(run.id, run)
    },
    beside: (): Beside => {
      const [first, second] = attemptsOf.keys()
      return second === undefined ? first : "several"
    }
  }
}

/**
 * Divides a server's slots.
 *
 * **Details** `spare` slots are reserved for projects without running runs, so no project waits for another's slow models. At most
 * `backtests` slots serve backtest runs, because real work has priority.
 */
export const sharesOf = (slots: number): { readonly spare: number; readonly backtests: number } => ({
  spare: Math.min(slots - 1, Math.ceil(slots / runLimits.slotsPerSpare)),
  backtests: Math.ceil(slots / runLimits.slotsPerBacktest)
})

const addTo = <K>(counts: Map<K, number>, key: K, by: number): void => {
  const count = (counts.get(key) ?? 0) + by
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
}

/** Returns the run's fields for a log line. */
const aboutOf = ({ ancestors, attempt, id, projectId }: ClaimedRun) => ({
  runId: id,
  attempt,
  projectId,
  traceId: traceIdOf(ancestors[0] ?? id)
})

/** A database outage is logged once, not for each attempt that it breaks. */
const tellBroken = (cause: Cause.Cause<never>): Effect.Effect<void> =>
  isBrokenByAway(cause)
    ? reportOutage(Cause.squash(cause))
    : Effect.logError("A run's attempt broke and is given back", { code: "attemptBroke" }, cause)

const isTest = ({ backtestId }: ClaimedRun): boolean => backtestId !== null

/** How many of the next runs of a queue are its oldest, so that low-priority runs are not starved. */
const oldestOf = (taken: number, next: number): number =>
  Math.floor((taken + next) / runLimits.claimsPerOldest) - Math.floor(taken / runLimits.claimsPerOldest)

// Extends the leases of the runs here, with one statement per project.
//
// A row that another transaction has locked is skipped, so no run waits for another's lock; its attempt then waits for that row alone. A
// failed heartbeat does not mean that a run is lost: a restarting database is away for seconds, and a lease lasts longer. Each heartbeat
// carries the time since the attempt's last progress, by the database's clock.

/** A running attempt of this server. */
interface Attempt {
  readonly run: ClaimedRun
  readonly progress: Progress
  /** Requests a separate heartbeat. */
  readonly alone: Queue.Queue<void>
  /** Completes when the attempt has lost its run; dies when no heartbeat reached the database for the length of a lease. */
  readonly lost: Deferred.Deferred<void>
  leasedAtMs: number
  /** It has not stored a step since its last death. */
  isSuspect: boolean
}

/** Sends heartbeats for the attempts passed to `beat`, until the scope ends; `cleared` is called for suspects that stored a step. */
const makeHeartbeat = Effect.fnUntraced(function* (cleared: (run: ClaimedRun) => Effect.Effect<void>) {
  const database = yield* Database
  const runs = yield* Runs
  const notifier = yield* Notifier
  const attempts = new Set<Attempt>()
  /** The projects with a running loop. */
  const projects = new Set<ProjectId>()
  const loops = yield* FiberSet.make<void>()

  /** Whether more than one run is executed here; a second attempt at the same run does not count. */
  const areSeveral = () => new Set([...attempts].map(({ run }) => run.id)).size > 1

  /** Sends one heartbeat for attempts of a project; false when it failed and must be repeated. */
  const extend = Effect.fnUntraced(function* (
    projectId: ProjectId,
    beating: ReadonlyArray<Attempt>,
    waits: boolean
  ) {
    const nowMs = yield* Clock.currentTimeMillis
    const sharesBlame = areSeveral()
    const beats = beating.map(({ isSuspect, progress, run }) => ({
      run,
      quietMs: progress.look(nowMs, 2 * runLimits.heartbeatIntervalMs),
      ...(isSuspect ? {} : { sharesBlame })
    }))
    const outcomes = yield* database.inProject(projectId, runs.heartbeat(beats, waits))
    for (const attempt of beating) {
      const outcome = outcomes.get(attempt.run.id)
      if (outcome === undefined) yield* Deferred.succeed(attempt.lost, undefined)
      else if (outcome === "locked") yield* Queue.offer(attempt.alone, undefined)
      else attempt.leasedAtMs = nowMs
      if (outcome !== "cleared") continue
      attempt.isSuspect = false
      yield* cleared(attempt.run)
    }
    return true
  })

  const beatOf = (projectId: ProjectId, beating: ReadonlyArray<Attempt>, waits: boolean) =>
    Effect.catchDefect(extend(projectId, beating, waits), (defect) => broken(beating, defect))

  /** Fails attempts whose lease must have expired and keeps the others for the next heartbeat. */
  const broken = Effect.fnUntraced(function* (beating: ReadonlyArray<Attempt>, defect: unknown) {
    const nowMs = yield* Clock.currentTimeMillis
    const [live, over] = [
      beating.filter(({ leasedAtMs }) => nowMs - leasedAtMs < runLimits.leaseMs),
      beating.filter(({ leasedAtMs }) => nowMs - leasedAtMs >= runLimits.leaseMs)
    ]
    for (const { lost } of over) yield* Deferred.die(lost, defect)
    if (live.length > 0)
      yield* isDatabaseAway(defect)
        ? reportOutage(defect)
        : Effect.logWarning("A heartbeat failed and is tried again", Cause.die(defect))
    return live.length === 0
  })

  const ofProject = (projectId: ProjectId) => [...attempts].filter(({ run }) => run.projectId === projectId)

  /** Sends heartbeats for a project while it has attempts here; a project that waits for the database delays no other. */
  const beatAll = Effect.fnUntraced(function* (projectId: ProjectId) {
    let pauseMs: number = runLimits.heartbeatIntervalMs
    while (true) {
      yield* Effect.sleep(pauseMs)
      const beating = ofProject(projectId)
      // In the same synchronous step as the check, so that a later attempt starts a new loop.
      if (beating.length === 0) return void projects.delete(projectId)
      pauseMs = (yield* beatOf(projectId, beating, false))
        ? runLimits.heartbeatIntervalMs
        : outageLimits.retryMs
    }
  })

  /** Sends separate heartbeats for this attempt on request: its run was taken away, or another transaction had locked its row. */
  const beatAlone = Effect.fnUntraced(function* (attempt: Attempt) {
    const taken = yield* notifier.listen(`taken:${attempt.run.id}`)
    while (true) {
      yield* Effect.raceFirst(Queue.take(attempt.alone), nextNotification(taken, undefined))
      while (!(yield* beatOf(attempt.run.projectId, [attempt], true)))
        yield* Effect.sleep(outageLimits.retryMs)
    }
  }, Effect.scoped)

  /** Keeps an attempt's lease while this effect runs; completes when the attempt has lost the run, at once if it is notified. */
  const beat = Effect.fnUntraced(function* (run: ClaimedRun) {
    const attempt: Attempt = {
      run,
      progress: yield* CurrentProgress,
      alone: yield* Queue.sliding<void>(1),
      lost: yield* Deferred.make<void>(),
      leasedAtMs: yield* Clock.currentTimeMillis,
      isSuspect: run.isSuspect
    }
    attempt.progress.look(attempt.leasedAtMs, 0)
    const [first, second] = attempts
    // The other run was alone here until now, and its row says so; most runs end before that matters.
    if (first !== undefined && second === undefined && first.run.id !== run.id)
      yield* Effect.forkChild(
        Effect.andThen(Effect.sleep(runLimits.companyAfterMs), Queue.offer(first.alone, undefined))
      )
    attempts.add(attempt)
    if (!projects.has(run.projectId)) {
      projects.add(run.projectId)
      yield* FiberSet.run(loops, beatAll(run.projectId))
    }
    yield* Effect.raceFirst(Deferred.await(attempt.lost), beatAlone(attempt)).pipe(
      Effect.ensuring(Effect.sync(() => attempts.delete(attempt)))
    )
  })

  return { beat }
})

// Names this server's worker for its peers; a single server generates a name.
//
// Peers use the name to find runs whose worker is gone (`cluster/absent-servers.ts`).

/** `host:port#id`, with a new id at each start; null for a single server. */
export const WorkerName = Context.Reference<string | null>("@tropism/server/run/WorkerName", {
  defaultValue: () => null
})
