/**
 * A connection as a program of the simulation has it, and where it is borrowed.
 */
import type { PgConnection } from "@effect/sql-pg"
import type { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"

/** How a statement is put to a connection. */
export type Send = (connection: PgConnection.PgConnection) => Effect.Effect<unknown, SqlError>

/** Opens connections of one login and takes them back. */
export interface Lender {
  readonly borrow: () => Promise<PgConnection.PgConnection>
  readonly takeBack: (connection: PgConnection.PgConnection) => void
}

export interface Line {
  isBroken: boolean
  /** The connection, borrowed at the first statement. */
  readonly connection: () => Promise<PgConnection.PgConnection>
  /** Keeps a statement that changes nothing by itself; it goes out with the next one, in one write. */
  readonly defer: (text: string, send: Send) => void
  /** What goes out before the next statement: what was kept, and the time. */
  readonly takeDeferred: () => ReadonlyArray<Send>
  /** Notes what a statement did to the transaction. */
  readonly note: (text: string, succeeded: boolean) => void
  readonly inTransaction: () => boolean
  /** Breaks the line: an open transaction is rolled back. */
  readonly drop: () => Promise<void>
  /** The program does not need it any more. */
  readonly giveBack: () => Promise<void>
}
