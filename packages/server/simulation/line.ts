/**
 * A connection as a program of the simulation has it, and where it is borrowed.
 */
import type { PgConnection } from "@effect/sql-pg"

/** Opens connections of one login and takes them back. */
export interface Lender {
  readonly borrow: () => Promise<PgConnection.PgConnection>
  readonly takeBack: (connection: PgConnection.PgConnection) => void
}

export interface Line {
  isBroken: boolean
  /** The connection, borrowed at the first statement. */
  readonly connection: () => Promise<PgConnection.PgConnection>
  /** Notes what a statement did to the transaction. */
  readonly note: (text: string, succeeded: boolean) => void
  readonly inTransaction: () => boolean
  /** Breaks the line: an open transaction is rolled back. */
  readonly drop: () => Promise<void>
  /** The program does not need it any more. */
  readonly giveBack: () => Promise<void>
}
