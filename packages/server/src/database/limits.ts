/**
 * Limits of the connections to PostgreSQL, and of what waits on them.
 */

/** Of `database/`: the pool of this program. */
export const poolLimits = {
  connections: 20,
  /** With fewer, and none left to get, a server says that it is not ready. */
  neededConnections: 10,
  /** Statements that a connection keeps prepared. */
  preparedStatements: 400,
  /** Statements that go to PostgreSQL in one write: those of a batch, begin and commit included. */
  statementsTogether: 6,
  /** No transaction waits for anything but the database: one in which nothing is asked for so long belongs to a server that stands still. */
  idleTransactionMs: 3_000,
  /** Of a snapshot, which holds no lock and waits for its reader, and of a restore: its locks are all of a project that nobody knows yet, but for the turn of restores. */
  idleSnapshotMs: 600_000,
  pingTimeoutMs: 2_000,
  /** A look-up that takes longer no longer holds up the next one. */
  lookupWaitMs: 50,
  /** A connection on which nothing was said for so long is asked by the system, on both sides, whether the other one is there. */
  keepAliveMs: 10_000,
  /** A connection that has answered nothing for so long, while PostgreSQL works on nothing of this server's, is given up. */
  silentMs: 10_000,
  /** Between two looks for such connections; two in a row must find it silent. */
  silenceLookMs: 2_500,
  /**
   * A statement of a project's transaction that waits for a lock so long is broken off, and done again if its server lives.
   * So the transactions of a server that stands still do not take a lock one after the other; less than `idleTransactionMs`.
   */
  lockWaitMs: 1_250,
  /** Who would change what others share outwaits a try of theirs, for which PostgreSQL may wait twice: for who is before them, and for who holds it. */
  turnWaitMs: 2_750,
  /** Tries to get a lock that somebody keeps: half a minute in all, and twice that where it is a turn. */
  lockTries: 24,
  /** Tries after PostgreSQL broke a transaction off for the sake of another. */
  clashRetries: 3,
  clashPauseMs: 20
} as const

// The bounds of dumps and restores, each with its unit in its name.

/** Of one line: the bytes of the largest attachment are written in hex. */
const lineMaxBytes = 128 * 1_048_576

export const dumpLimits = {
  /** Dumps that this server writes at once, each of another project; each holds a connection and a moment of the database. */
  concurrentDumps: 2,
  /** How long a dump may wait and then hold its moment. */
  dumpMaxMs: 3_600_000,
  /** The reader of a dump or an export who takes no piece for so long has lost its turn; a piece is what is handed to it at once. */
  readerStallMs: 60_000,
  pieceBytes: 65_536,
  /** Rows and bytes of one read; it ends with the row that makes it as large. */
  pageRows: 500,
  pageBytes: 1_048_576,
  lineMaxBytes,
  /**
   * Of one row as PostgreSQL sends it, in any statement of this program: a line of a dump and the few bytes around it. A larger
   * one ends its connection, so all that is kept has a bound with which it fits, however it is written when it is read.
   */
  messageMaxBytes: lineMaxBytes + 1_024,
  /** Restores that this server does at once; the others wait. */
  concurrentRestores: 1,
  /** Between two looks whether another server of the database still restores. */
  turnLookMs: 500,
  /** Bytes that are read at once of a file that is here. */
  readBytes: 1_048_576,
  /** Rows and bytes that one statement restores. */
  batchRows: 500,
  batchBytes: 1_048_576,
  /** A sender that sends nothing for so long is gone. */
  senderSilenceMs: 300_000,
  /** How far back the ids of a copy may lie from those of its original. */
  stepMaxMs: 4_000_000_000
} as const
