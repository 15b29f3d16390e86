/**
 * Keeps the leases of the runs at work here: one statement for all of a project's.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A row that another transaction holds is passed over, so that no run waits for the lock on another; its attempt then waits
 * for it alone. A beat that breaks says nothing of a run: a database that restarts is away for seconds, and a lease is good for
 * longer. Each beat carries when anything last came of the attempt, by the database's clock.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { Cause, Clock, Deferred, Effect, FiberSet, Queue } from "effect"
import { isDatabaseAway } from "../database/database-away.ts"
import { Database } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { CurrentProgress, type Progress } from "../model/progress.ts"
import { outageLimits } from "../outbox/outage-limits.ts"
import { tellAway } from "../outbox/outages.ts"
import { nextWakeUp, WakeUps } from "../outbox/wake-ups.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { Runs } from "./runs.ts"

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
export const makeHeartbeat = Effect.fnUntraced(function* (cleared: (run: ClaimedRun) => Effect.Effect<void>) {
  const database = yield* Database
  const runs = yield* Runs
  const wakeUps = yield* WakeUps
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
        ? tellAway(defect)
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
    const taken = yield* wakeUps.listen(`taken:${attempt.run.id}`)
    while (true) {
      yield* Effect.raceFirst(Queue.take(attempt.alone), nextWakeUp(taken, undefined))
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
