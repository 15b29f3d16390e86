/**
 * Keeps the lease of a run while its attempt is at work.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A beat that breaks says nothing of the run: a database that starts anew is away
 * for seconds, and the lease is good for longer. So the beat is tried again until
 * the lease must be over. What the database says of the run counts at once. Each
 * beat says when anything last came of the attempt, by the database's clock.
 */
import { Cause, Clock, Effect } from "effect"
import { isDatabaseAway } from "../database/database-away.ts"
import { Database } from "../database/database.ts"
import { runLimits } from "../limits.ts"
import { CurrentProgress } from "../model/progress.ts"
import { outageLimits } from "../outbox/outage-limits.ts"
import { tellAway } from "../outbox/outages.ts"
import { nextWakeUp, WakeUps } from "../outbox/wake-ups.ts"
import type { ClaimedRun } from "./claimed-run.ts"
import { Runs } from "./runs.ts"

export const makeHeartbeat = Effect.gen(function* () {
  const database = yield* Database
  const runs = yield* Runs
  const wakeUps = yield* WakeUps

  /** One beat; false when it broke, and another may be tried. */
  const extend = (run: ClaimedRun, quietMs: number, mayBeTriedAgain: boolean) =>
    database.inProject(run.projectId, runs.heartbeat(run, quietMs)).pipe(
      Effect.as(true),
      Effect.catchDefect((defect) =>
        mayBeTriedAgain
          ? Effect.as(
              isDatabaseAway(defect)
                ? tellAway(defect)
                : Effect.logWarning("A heartbeat failed and is tried again", Cause.die(defect)),
              false
            )
          : Effect.die(defect)
      )
    )

  /** Extends the lease for ever; ends when the run is no longer this attempt's, at once where it hears of it, and breaks when no beat has reached the database for as long as a lease lasts. */
  const beat = Effect.fnUntraced(
    function* (run: ClaimedRun) {
      const mailbox = yield* wakeUps.listen(`taken:${run.id}`)
      const progress = yield* CurrentProgress
      let leasedAtMs = yield* Clock.currentTimeMillis
      progress.look(leasedAtMs, 0)
      let pauseMs: number = runLimits.heartbeatIntervalMs
      while (true) {
        yield* nextWakeUp(mailbox, pauseMs)
        const nowMs = yield* Clock.currentTimeMillis
        const isLeased = yield* extend(
          run,
          progress.look(nowMs, 2 * runLimits.heartbeatIntervalMs),
          nowMs - leasedAtMs < runLimits.leaseMs
        )
        if (isLeased) leasedAtMs = nowMs
        pauseMs = isLeased ? runLimits.heartbeatIntervalMs : outageLimits.retryMs
      }
    },
    Effect.scoped,
    Effect.catchTag("RunNotInState", () => Effect.void)
  )

  return { beat }
})
