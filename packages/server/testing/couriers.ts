/**
 * The connections over which servers on one database hear of each other.
 */
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { ask } from "./owner-rows.ts"

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
