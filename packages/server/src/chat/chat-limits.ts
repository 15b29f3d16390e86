/**
 * Every bound of chat, with its unit in its name.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 */
export const chatLimits = {
  /** How long a request waits for its answer; the turn goes on behind it. */
  waitMs: 60_000,
  /** The same for one that is told of the answer as it is made. */
  streamWaitMs: 900_000,
  /** Between two looks at a log, and at its run, for what no wake-up told of. */
  sweepIntervalMs: 1_000,
  /** Events of one look. */
  pageEvents: 200,
  /** Bun closes a connection that is quiet for 10 seconds. */
  heartbeatIntervalMs: 4_000,
  /** Of a conversation's title, where its first message gives it. */
  titleMaxChars: 80
} as const
