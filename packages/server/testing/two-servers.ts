/**
 * Two servers on one database that hear of each other, on the test's clock.
 *
 * The clock stands still unless a story moves it, so no loop looks by itself:
 * whatever arrives at the other server was told to it.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { type Doors, eventually, newProject, startServer, storyIn } from "./platform.ts"
import { couriers } from "./server-connections.ts"
import { asTimePasses, patientDatabase } from "./shared-server.ts"

export class TwoServers extends Context.Service<
  TwoServers,
  { readonly here: Doors; readonly there: Doors; readonly access: PostgresAccess }
>()("@tropism/server/testing/TwoServers") {
  static readonly layer = Layer.effect(
    TwoServers,
    Effect.gen(function* () {
      // A database that is not the program's own may have other programs on it.
      const access = { ...(yield* patientDatabase), embedded: false }
      return { here: yield* startServer(access), there: yield* startServer(access), access }
    })
  )
}

/** One project, through the doors of both servers, once both hear each other. */
export const bothDoors = Effect.gen(function* () {
  const { access, here, there } = yield* TwoServers
  yield* eventually(couriers(access), (pids) => pids.length === 2)
  const story = yield* newProject(here, access)
  return { access, story, other: storyIn(there, access, story.projectId) }
})

/** Waits until it is seen while the clock goes on by little: word goes round in letters a moment apart. Answers how many milliseconds went by. */
export const asWordGoesRound = Effect.fnUntraced(function* <A>(
  look: Effect.Effect<A>,
  satisfies: (seen: A) => boolean
) {
  const before = yield* Clock.currentTimeMillis
  yield* asTimePasses(5, look, satisfies)
  return (yield* Clock.currentTimeMillis) - before
})
