/** Limits of chat; each unit is in its name. */

export const chatLimits = {
  /** How long a request waits for its answer; the turn continues afterwards. */
  waitMs: 60_000,
  /** The same for a streamed answer. */
  streamWaitMs: 900_000,
  /** Between two reads of a log and its run, in case a notification was lost. */
  sweepIntervalMs: 1_000,
  /** Events of one read. */
  pageEvents: 200,
  /** Retention of an OpenAI client's context after its last message: longer than a request may be repeated. */
  broughtKeepMs: 2_678_400_000,
  /** A due context that is still needed is checked again after this time. */
  broughtWaitMs: 86_400_000,
  /** Between two sweeps; contexts purged in one transaction, and transactions of one sweep. */
  forgetIntervalMs: 3_600_000,
  forgetBatchContexts: 50,
  forgetMaxBatches: 1_000,
  /** Bun closes a connection that is quiet for 10 seconds. */
  heartbeatIntervalMs: 4_000
} as const
