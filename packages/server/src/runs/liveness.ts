/**
 * For how long this server has had a hand for every run that waits for one.
 *
 * A run that nobody took over for minutes is abandoned, and a minute in which
 * nobody could have taken it is none of them: the server was not up, stood still,
 * had no database, was missed by others, or had all its hands full. The worker
 * says so at each round; while something waits there is one every second, so one
 * that is missing begins the count anew.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { runLimits } from "../limits.ts"
import { Notifier } from "../outbox/notifier.ts"

export class WorkerLiveness extends Context.Service<
  WorkerLiveness,
  {
    /** Says that a round is through, and whether every project with work was asked for it. */
    readonly note: (wereAllAsked: boolean) => Effect.Effect<void>
    /** Whether all rounds of so long a time, up to now, had hands for all. */
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

// Whether the other servers see that this one lives; a server that is alone is missed by nobody.
//
// What a missed server takes is taken from it again, and each time counts as an
// attempt that died: so its worker takes nothing until it is seen again. Who is
// missed is found out elsewhere (`cluster/absent-servers.ts`).

export class PeerVisibility extends Context.Service<
  PeerVisibility,
  {
    /** Whether this server is missed. */
    readonly isMissed: Effect.Effect<boolean>
    /** Says whether it is; whoever is seen again takes at once what waits. */
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
