/**
 * Every bound of the client, the unit in its name.
 */
export const limits = {
  /** A stream that says nothing for so long is dead: the server sends a heartbeat every few seconds. */
  feedSilenceMs: 30_000,
  /** The first pause before a connection is tried again; it doubles with each failure in a row. */
  reconnectFirstMs: 250,
  reconnectLongestMs: 10_000,
  /** Connections that fail in a row before a feed is given up: about five minutes. */
  reconnectsInARow: 36,
  /** UTF-16 units of one event: an object of the largest size, in an envelope. */
  feedEventUnits: 4 * 1024 * 1024,
  /** Characters of an answer that are quoted in an error. */
  quotedAnswerChars: 300
} as const
