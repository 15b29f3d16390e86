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
  quotedAnswerChars: 300,
  /** How often a request is made again where nobody says otherwise, and at most. */
  retries: 4,
  retriesMost: 20,
  /** The first pause before a request is made again; it doubles with each failure, and up to half of it is chance. */
  retryFirstMs: 200,
  retryLongestMs: 5_000,
  /** A server that asks for a longer pause is not waited for: the caller is told. */
  retryAfterLongestMs: 60_000,
  /** An answer that has not begun by then does not come: the server itself waits for a minute at most. */
  answerMs: 120_000
} as const
