/**
 * A server on which an attempt can freeze for ever at a named place, as a process that died there looks from outside.
 *
 * Its transaction, if one is open, is broken off by PostgreSQL, as for a
 * connection that is gone; its lease is let run out. What it would do when it
 * woke up again can be seen, too: `thaw` lets it go on.
 */
import { Deferred, Effect } from "effect"
import { CrashPoint, type CrashPointName } from "../src/crash-point.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { ask } from "./owner-rows.ts"
import { eventually, startServer } from "./platform.ts"

/** Within which the place is reached; a story that waits for it longer would only hang. */
const reachMs = 60_000

/** A server with a plan for one freeze at a time. */
export const freezingServer = Effect.fn("freezingServer")(function* (access: PostgresAccess) {
  let place: CrashPointName | undefined
  let passings = 0
  let reached = Deferred.makeUnsafe<void>()
  let thawed = Deferred.makeUnsafe<void>()
  const hit = (name: CrashPointName): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (name !== place) return Effect.void
      passings -= 1
      if (passings > 0) return Effect.void
      place = undefined
      return Effect.andThen(Deferred.succeed(reached, undefined), Deferred.await(thawed))
    })
  const doors = yield* Effect.provideService(startServer(access), CrashPoint, { hit })

  return {
    doors,
    /** Whoever passes the place for the n-th time from now on stays there; answers when it is there and everybody else has given it up. */
    freeze: (name: CrashPointName, passing: number) => {
      place = name
      passings = passing
      reached = Deferred.makeUnsafe<void>()
      thawed = Deferred.makeUnsafe<void>()
      return Deferred.await(reached).pipe(
        Effect.timeoutOrElse({
          duration: reachMs,
          orElse: () => Effect.die(new Error(`Nobody came to ${name} for the ${passing}. time`))
        }),
        Effect.andThen(eventually(giveUp(access), (held) => held === 0))
      )
    },
    /** Lets what is frozen go on. */
    thaw: Effect.suspend(() => Deferred.succeed(thawed, undefined))
  }
})

/**
 * Breaks off open transactions and lets leases run out; answers how many runs were held by a transaction meanwhile.
 *
 * One may be at its last statement still when the place is reached, and is not idle before the next look.
 */
const giveUp = Effect.fnUntraced(function* (access: PostgresAccess) {
  // Only the server's own role sees what its connections are at.
  yield* ask(
    { ...access, ownerUrl: access.serverUrl },
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and state = 'idle in transaction' and pid <> pg_backend_pid()`
  )
  const [row] = yield* ask(
    access,
    `with free as (select id from kb.agent_runs where status = 'running' for update skip locked),
       lapsed as (update kb.agent_runs set lease_expires_at = now() where id in (select id from free))
     select count(*)::int from kb.agent_runs where status = 'running' and id not in (select id from free)`
  )
  return row?.[0]
})
