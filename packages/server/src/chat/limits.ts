/**
 * Every bound of chat, with its unit in its name.
 *
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
  /** A context that a client of OpenAI's API began is kept for so long after the last word in it: longer than a request may come again. */
  broughtKeepMs: 2_678_400_000,
  /** One that is due and still needed is looked at again so much later. */
  broughtWaitMs: 86_400_000,
  /** Between two looks for those that are due; contexts forgotten in one transaction, and transactions in one look. */
  forgetIntervalMs: 3_600_000,
  forgetBatchContexts: 50,
  forgetMaxBatches: 1_000,
  /** Bun closes a connection that is quiet for 10 seconds. */
  heartbeatIntervalMs: 4_000
} as const
