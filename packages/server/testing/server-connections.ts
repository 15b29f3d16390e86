/**
 * What the servers' connections do, as PostgreSQL tells it.
 */
import { Effect } from "effect"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { ask } from "./owner-rows.ts"
import { eventually } from "./platform.ts"

/** Asks as the servers do: only they see what their connections are. */
export const askAsServer = (access: PostgresAccess, statement: string) =>
  ask({ ...access, ownerUrl: access.serverUrl }, statement)

export const isCourier = "datname = current_database() and application_name = 'tropism wake-ups'"

/** The connections over which servers hear of each other, once they listen. */
export const couriers = (access: PostgresAccess) =>
  askAsServer(
    access,
    `select pid from pg_stat_activity where ${isCourier} and query ~* 'listen|notify' and state = 'idle' order by pid`
  )

/** How many statements wait for a lock; only those that tell of something, where it is given. */
export const lockWaits = (access: PostgresAccess, something = ""): Effect.Effect<number> =>
  Effect.map(
    askAsServer(
      access,
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%${something}%'`
    ),
    ({ length }) => length
  )

/** Waits until so many statements wait for a lock. */
export const whenWaiting = (access: PostgresAccess, count: number, something?: string): Effect.Effect<void> =>
  Effect.asVoid(eventually(lockWaits(access, something), (waits) => waits >= count))
