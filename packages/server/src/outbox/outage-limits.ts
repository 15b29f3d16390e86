/**
 * The bounds of a database that is away: how it is told, and how what matters is tried again.
 *
 * Flow: graph → **outbox** → dispatch → run → tool → task
 */
export const outageLimits = {
  /** Between two lines of the log that say so. */
  tellIntervalMs: 60_000,
  /** Before what did not reach it is tried again, where that matters: heartbeats, and what was paid for. */
  retryMs: 1_000,
  /** For so long, however long each try takes; where the database answers others meanwhile, what it does not take is no outage. */
  tryForMs: 30_000,
  /** For so long whoever has waited for an answer asks for it once more, however late. */
  lastTryMs: 5_000,
  /** Runs that it broke again and again are given back more slowly: this often four times as long. */
  slowings: 2
} as const
