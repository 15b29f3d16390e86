/**
 * Takes queued runs, keeps them alive and lets actors work on them.
 *
 * Projects take turns, so one with a thousand waiting runs does not hold up the
 * others. While an actor works a heartbeat extends its lease; when the heartbeat
 * finds the run gone, the actor is stopped. The worker decides nothing: whoever
 * claims a row in the database has it. Suspects, whose attempts died with their
 * servers, come in small groups: the next group is claimed when each run of the
 * one before has kept a step or ended, so a death names few that may have caused it.
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

/** Runs that this server works on at once; `TROPISM_CONCURRENT_RUNS`. */
export class ConcurrentRuns extends Context.Reference<number>("@tropism/server/run/ConcurrentRuns", {
  defaultValue: () => runLimits.concurrentRuns
}) {}

/** A project in which something is to be claimed. */
interface DueProject {
  readonly projectId: ProjectId
  /** Whether workers of some of its runs have gone silent. */
  readonly hasLapsed: boolean
  readonly hasSuspects: boolean
}

export class Worker extends Context.Service<
  Worker,
  {
    /** Claims and works for ever; whoever interrupts it waits until all that it worked on is handed back. */
    readonly run: Effect.Effect<never>
    /** From now on nothing is claimed here; what is worked on goes on. */
    readonly claimNoMore: Effect.Effect<void>
    /** Claims what is due now, as far as there are free hands; true when something was claimed. */
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
      /** Stops the hands; what they hand back is for another worker, and not for this one again. */
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
      /** Attempts that are claimed and have not begun, and whether others wait until fewer are. */
      let [beginning, isHeldBack] = [0, false]
      /** Runs taken from the queues of the projects that have one, so far. */
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

      /** Gives a run back at once; one that a database broke which is away when it is back, and later each time. */
      const giveBack = (run: ClaimedRun, cause: Cause.Cause<never>) => {
        const given = inProject(run, runs.release(run, causeSentence(Cause.squash(cause))))
        const slowings = Math.min(run.attempt - 1, outageLimits.slowings)
        return isBrokenByAway(cause)
          ? Effect.andThen(Effect.sleep(outageLimits.retryMs * 4 ** slowings), retryDuringOutages(given))
          : given
      }

      /** A defect gives the run back: it is claimed again, a bounded number of times. So does the end of this worker, which does not count. */
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

      /** Ends what nobody may take any more, beside the claims: what it needs may be held for long, and others wait for theirs. */
      const giveUp = Effect.fnUntraced(function* (projectId: ProjectId) {
        if (yield* FiberMap.has(givingUp, projectId)) return
        const ending = yield* FiberMap.run(givingUp, projectId, endings.giveUp(projectId))
        yield* Effect.timeoutOption(Fiber.join(ending), runLimits.giveUpPatienceMs)
      })

      /** Works on a claimed run beside the others. */
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

      /** One share for each project with work, in turn, so that all of them move. */
      const round = Effect.gen(function* () {
        if (isLeaving || (yield* isMissed)) return false
        const due = inTurn(yield* projects, lastServed)
        for (const projectId of takenFrom.keys())
          if (!due.some((project) => project.projectId === projectId)) takenFrom.delete(projectId)
        let [claimed, asked] = [0, 0]
        /** Where the database was away, nobody could have been given anything. */
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
        // Suspects wait for their turn, although there are slots.
        const isHeldUp = suspects.size > 0 && due.some(({ hasSuspects }) => hasSuspects)
        yield* attendance.note(asked === due.length && !isHeldUp)
        return claimed > 0
      }).pipe(claiming.withPermit)

      /** The last free hands are for projects that have none at work. */
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

/** What a worker has at work. */
const makeAtWork = () => {
  /** Hands at work, by project; a project without any is not in it. */
  const handsOf = new Map<ProjectId, number>()
  /** Attempts at work, by their run: a run has a second one here where the first has lost it and goes on. */
  const attemptsOf = new Map<RunId, number>()
  /** Suspects at work that have kept no step since their last death. */
  const suspects = new Map<RunId, ClaimedRun>()
  let tests = 0
  const dismiss = (run: ClaimedRun): void => {
    if (suspects.get(run.id)?.attemptToken === run.attemptToken) suspects.delete(run.id)
  }
  return {
    handsOf,
    suspects,
    /** Hands at work for backtests. */
    testing: () => tests,
    /** It is no suspect any more. */
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
 * How many of a server's slots are for what.
 *
 * **Details** `spare` are kept free for projects that have no run at work: nobody waits for another's slow models. At most
 * `backtests` are taken by runs of backtests: real work goes first.
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

/** What a line of the log is about. */
const aboutOf = ({ ancestors, attempt, id, projectId }: ClaimedRun) => ({
  runId: id,
  attempt,
  projectId,
  traceId: traceIdOf(ancestors[0] ?? id)
})

/** That the database is away is told once for all that it breaks. */
const tellBroken = (cause: Cause.Cause<never>): Effect.Effect<void> =>
  isBrokenByAway(cause)
    ? reportOutage(Cause.squash(cause))
    : Effect.logError("A run's attempt broke and is given back", { code: "attemptBroke" }, cause)

const isTest = ({ backtestId }: ClaimedRun): boolean => backtestId !== null

/** How many of the next runs of a queue are its oldest: nobody waits for ever behind those who are waited for. */
const oldestOf = (taken: number, next: number): number =>
  Math.floor((taken + next) / runLimits.claimsPerOldest) - Math.floor(taken / runLimits.claimsPerOldest)

// Keeps the leases of the runs at work here: one statement for all of a project's.
//
// A row that another transaction holds is passed over, so that no run waits for the lock on another; its attempt then waits
// for it alone. A beat that breaks says nothing of a run: a database that restarts is away for seconds, and a lease is good for
// longer. Each beat carries when anything last came of the attempt, by the database's clock.

/** An attempt at work here. */
interface Attempt {
  readonly run: ClaimedRun
  readonly progress: Progress
  /** Asks for a beat of its own. */
  readonly alone: Queue.Queue<void>
  /** Completed when the run is no longer this attempt's; dies when no beat reached the database for as long as a lease lasts. */
  readonly lost: Deferred.Deferred<void>
  leasedAtMs: number
  /** It has kept no step since its last death. */
  isSuspect: boolean
}

/** Beats for the attempts that are handed to `beat`, until the scope ends; `cleared` learns of suspects that kept a step. */
const makeHeartbeat = Effect.fnUntraced(function* (cleared: (run: ClaimedRun) => Effect.Effect<void>) {
  const database = yield* Database
  const runs = yield* Runs
  const notifier = yield* Notifier
  const attempts = new Set<Attempt>()
  /** The projects for which a loop runs. */
  const projects = new Set<ProjectId>()
  const loops = yield* FiberSet.make<void>()

  /** Whether more than one run is at work here; a second attempt at one run is none. */
  const areSeveral = () => new Set([...attempts].map(({ run }) => run.id)).size > 1

  /** One beat for attempts of a project; false when it broke, and another is to be tried. */
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

  /** Attempts whose lease must be over die of it; the others are beaten for again. */
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

  /** Beats for a project for as long as it has attempts here; one project that waits for the database holds up no other. */
  const beatAll = Effect.fnUntraced(function* (projectId: ProjectId) {
    let pauseMs: number = runLimits.heartbeatIntervalMs
    while (true) {
      yield* Effect.sleep(pauseMs)
      const beating = ofProject(projectId)
      // In one step with the look: an attempt that comes later starts a new loop.
      if (beating.length === 0) return void projects.delete(projectId)
      pauseMs = (yield* beatOf(projectId, beating, false))
        ? runLimits.heartbeatIntervalMs
        : outageLimits.retryMs
    }
  })

  /** Beats for this attempt alone whenever that is asked for: its run was taken away, or another transaction held its row. */
  const beatAlone = Effect.fnUntraced(function* (attempt: Attempt) {
    const taken = yield* notifier.listen(`taken:${attempt.run.id}`)
    while (true) {
      yield* Effect.raceFirst(Queue.take(attempt.alone), nextNotification(taken, undefined))
      while (!(yield* beatOf(attempt.run.projectId, [attempt], true)))
        yield* Effect.sleep(outageLimits.retryMs)
    }
  }, Effect.scoped)

  /** Keeps the lease of an attempt for as long as this runs; ends when the run is no longer this attempt's, at once where it hears of it. */
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
    // Until now it was here alone, and its row says so; most runs have ended before that matters.
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

// Who works at this server, where other servers know it; a server that is alone names its worker by itself.
//
// Other servers can tell by it whose runs nobody works on any more (`cluster/absent-servers.ts`).

/** `host:port#id`, with an id of its own at each start; null where the server is alone. */
export const WorkerName = Context.Reference<string | null>("@tropism/server/run/WorkerName", {
  defaultValue: () => null
})
