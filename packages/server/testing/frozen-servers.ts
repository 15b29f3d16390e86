/**
 * Servers that freeze at a place that a story names, and are gone before anybody thaws them.
 */
import { Deferred, Effect } from "effect"
import { CrashPoint, type CrashPointName } from "../src/crash-point.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { type Doors, startServer } from "./platform.ts"

/** Serves until the place is passed for the n-th time, and ends the server there; answers what was begun meanwhile. */
export const serveUntil = <A>(
  access: PostgresAccess,
  place: CrashPointName,
  times: number,
  begin: (doors: Doors) => Effect.Effect<A>
): Effect.Effect<A> =>
  Effect.scoped(
    Effect.gen(function* () {
      const frozen = yield* Deferred.make<void>()
      let passed = 0
      const hit = (name: CrashPointName) =>
        name === place && ++passed >= times
          ? Effect.andThen(Deferred.succeed(frozen, undefined), Effect.never)
          : Effect.void
      const doors = yield* Effect.provideService(startServer(access), CrashPoint, { hit })
      const begun = yield* begin(doors)
      yield* Deferred.await(frozen)
      return begun
    })
  )
