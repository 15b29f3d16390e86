/**
 * Whether the other servers see that this one lives; a server that is alone is missed by nobody.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * What a missed server takes is taken from it again, and each time counts as an
 * attempt that died: so its worker takes nothing until it is seen again. Who is
 * missed is found out elsewhere (`cluster/absent-servers.ts`).
 */
import { Context, Effect, Layer } from "effect"
import { WakeUps } from "../outbox/wake-ups.ts"

export class Presence extends Context.Service<
  Presence,
  {
    /** Whether this server is missed. */
    readonly isMissed: Effect.Effect<boolean>
    /** Says whether it is; whoever is seen again takes at once what waits. */
    readonly tell: (isMissed: boolean) => Effect.Effect<void>
  }
>()("@tropism/server/run/Presence") {
  static readonly layer = Layer.effect(
    Presence,
    Effect.gen(function* () {
      const wakeUps = yield* WakeUps
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
        yield* wakeUps.hear(["runs"])
      })

      return Presence.of({ isMissed: Effect.sync(() => missed), tell })
    })
  )
}
