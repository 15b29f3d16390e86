/** Limits of the connections to PostgreSQL and of work on them. */

/** The connection pool of this program. */
export const poolLimits = {
  connections: 20,
  /** With fewer, and none left to get, a server is not ready. */
  neededConnections: 10,
  /** Prepared statements per connection. */
  preparedStatements: 400,
  /** Pipelined statements: those of a batch, BEGIN and COMMIT included. */
  statementsTogether: 6,
  /** A transaction waits for nothing but the database, so one that is idle for this long belongs to a frozen server. */
  idleTransactionMs: 3_000,
  /**
   * For a snapshot, which holds no lock and waits for its reader, and for a restore: apart from the restore lock, it locks only rows of a
   * project that is not visible yet.
   */
  idleSnapshotMs: 600_000,
  pingTimeoutMs: 2_000,
  /** A query that takes longer no longer delays the next one. */
  lookupWaitMs: 50,
  /** Idle time after which both systems probe a connection with TCP keep-alive. */
  keepAliveMs: 10_000,
  /** A connection without an answer for this long is closed if PostgreSQL is running nothing for this server. */
  silentMs: 10_000,
  /** Between two checks for such connections; two in a row must find it silent. */
  silenceLookMs: 2_500,
  /**
   * Lock timeout of a project transaction's statement, after which a live server retries it. So the transactions of a frozen server do not
   * take a lock one after the other. Less than `idleTransactionMs`.
   */
  lockWaitMs: 1_250,
  /**
   * Lock timeout of a writer's turn in a fair lock: longer than one timeout of the sharers, for which PostgreSQL may wait twice: for those
   * in front, and for the holder.
   */
  turnWaitMs: 2_750,
  /** Attempts to get a contended lock: half a minute in all, and twice that for a turn in a fair lock. */
  lockTries: 24,
  /** Attempts after PostgreSQL aborted a transaction in favour of another. */
  clashRetries: 3,
  clashPauseMs: 20
} as const

// Limits of dumps and restores; each unit is in its name.

/** One line: the largest attachment's bytes are written in hex. */
const lineMaxBytes = 128 * 1_048_576

export const dumpLimits = {
  /** Concurrent dumps of this server, each of another project; each holds a connection and a snapshot. */
  concurrentDumps: 2,
  /** How long a dump may wait and then hold its snapshot. */
  dumpMaxMs: 3_600_000,
  /** The reader of a dump or an export that takes no chunk for this long has lost its turn. */
  readerStallMs: 60_000,
  pieceBytes: 65_536,
  /** Rows and bytes of one read; it ends with the row that reaches the limit. */
  pageRows: 500,
  pageBytes: 1_048_576,
  lineMaxBytes,
  /**
   * One row as PostgreSQL sends it, in any statement of this program: a line of a dump and a few bytes around it. A larger one closes its
   * connection, so everything stored has a limit that fits here in whatever form it is read.
   */
  messageMaxBytes: lineMaxBytes + 1_024,
  /** Concurrent restores of this server; the others wait. */
  concurrentRestores: 1,
  /** Between two checks whether another server of the database still restores. */
  turnLookMs: 500,
  /** Bytes of one read of a local file. */
  readBytes: 1_048_576,
  /** Rows and bytes that one statement restores. */
  batchRows: 500,
  batchBytes: 1_048_576,
  /** A sender that is silent for this long is gone. */
  senderSilenceMs: 300_000,
  /** How far back the ids of a copy may be from those of its original. */
  stepMaxMs: 4_000_000_000
} as const
