/**
 * For how long this server has had a hand for every run that waits for one.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * A run that nobody took over for minutes is abandoned, and a minute in which
 * nobody could have taken it is none of them: the server was not up, stood still,
 * had no database, was missed by others, or had all its hands full. The worker
 * says so at each round; while something waits there is one every second, so one
 * that is missing begins the count anew.
 */
import { Clock, Context, Effect, Layer } from "effect"
import { runLimits } from "../limits.ts"

export class Attendance extends Context.Service<
  Attendance,
  {
    /** Says that a round is through, and whether every project with work was asked for it. */
    readonly note: (wereAllAsked: boolean) => Effect.Effect<void>
    /** Whether all rounds of so long a time, up to now, had hands for all. */
    readonly hasLasted: (ms: number) => Effect.Effect<boolean>
  }
>()("@tropism/server/run/Attendance") {
  static readonly layer = Layer.sync(Attendance, () => {
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

    return Attendance.of({ note, hasLasted })
  })
}
