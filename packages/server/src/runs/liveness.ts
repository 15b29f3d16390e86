/**
 * Measures how long this server has had spare capacity for every queued run.
 *
 * A run that no worker takes over for minutes is abandoned. Time in which this server could not have taken it does not count: it was down
 * or frozen, had no database, was missed by its peers, or was fully loaded. The worker reports each round; while work waits there is one
 * every second, so a missing round restarts the measurement.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { runLimits } from "../limits.ts"
import { Notifier } from "../outbox/notifier.ts"

export class WorkerLiveness extends Context.Service<
  WorkerLiveness,
  {
    /** Records that a round has ended, and whether it claimed from every project with work. */
    readonly note: (wereAllAsked: boolean) => Effect.Effect<void>
    /** Whether every round in the last `ms` milliseconds had spare capacity. */
    readonly hasLasted: (ms: number) => Effect.Effect<boolean>
  }
>()("@tropism/server/run/WorkerLiveness") {
  static readonly layer = Layer.sync(WorkerLiveness, () => {
    let sinceMs: number | undefined
    let lastMs = 0

    const isMissing = (nowMs: number): boolean => nowMs < lastMs || nowMs - lastMs > runLimits.attendanceGapMs

    const note = (wereAllAsked: boolean) =>
      Effect.map(Clock.currentTimeMillis, (nowMs) => {
        if (!wereAllAsked) sinceMs = undefined
        else if (sinceMs === undefined || isMissing(nowMs)) sinceMs = nowMs
        lastMs = nowMs
      })

    const hasLasted = (ms: number) =>
      Effect.map(
        Clock.currentTimeMillis,
        (nowMs) => sinceMs !== undefined && !isMissing(nowMs) && nowMs - sinceMs >= ms
      )

    return WorkerLiveness.of({ note, hasLasted })
  })
}

// Whether the other servers see this one's heartbeat; a single server is always visible.
//
// Peers take over the runs of a server they miss, and each takeover counts as a died attempt. Its worker therefore claims nothing until it
// is visible again. `cluster/absent-servers.ts` detects missed servers.

export class PeerVisibility extends Context.Service<
  PeerVisibility,
  {
    /** Whether the peers miss this server. */
    readonly isMissed: Effect.Effect<boolean>
    /** Updates the state; a server that is visible again claims waiting runs at once. */
    readonly tell: (isMissed: boolean) => Effect.Effect<void>
  }
>()("@tropism/server/run/PeerVisibility") {
  static readonly layer = Layer.effect(
    PeerVisibility,
    Effect.gen(function* () {
      const notifier = yield* Notifier
      let missed = false

      const tell = Effect.fnUntraced(function* (isMissed: boolean) {
        if (isMissed === missed) return
        missed = isMissed
        if (isMissed)
          return yield* Effect.logWarning(
            "The other servers do not see this one, or it cannot find out: it takes no runs until they do",
            { code: "unseen" }
          )
        yield* Effect.logWarning("The other servers see this one again, and it takes runs", { code: "seen" })
        yield* notifier.hear(["runs"])
      })

      return PeerVisibility.of({ isMissed: Effect.sync(() => missed), tell })
    })
  )
}
