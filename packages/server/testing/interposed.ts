/**
 * A server in which something happens exactly when it passes a named place.
 */
import { Effect } from "effect"
import { CrashPoint, type CrashPointName } from "../src/crash-point.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { ask } from "./owner-rows.ts"
import { eventually, startServer } from "./platform.ts"

export const interposedServer = Effect.fn("interposedServer")(function* (access: PostgresAccess) {
  let planned: { readonly place: CrashPointName; readonly act: Effect.Effect<void> } | undefined
  const hit = (name: CrashPointName): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (name !== planned?.place) return Effect.void
      const { act } = planned
      planned = undefined
      return act
    })
  const doors = yield* Effect.provideService(startServer(access), CrashPoint, { hit })
  return {
    doors,
    /** Whoever passes the place next does not go on before this is done. */
    interpose: (place: CrashPointName, act: Effect.Effect<void>) =>
      Effect.sync(() => void (planned = { place, act }))
  }
})

/** Waits until so many statements on the database wait for a lock. */
export const whenWaiting = (access: PostgresAccess, count: number): Effect.Effect<void> =>
  Effect.asVoid(
    eventually(
      // Only the server's own role sees what its connections wait for.
      ask(
        { ...access, ownerUrl: access.serverUrl },
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
      ),
      (waiting) => waiting.length >= count
    )
  )
