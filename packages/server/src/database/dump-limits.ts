/**
 * The bounds of dumps and restores, each with its unit in its name.
 */
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
