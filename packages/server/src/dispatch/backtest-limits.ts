/**
 * Every bound of backtests, with its unit in its name; what a person may ask for stands in `domain/backtest.ts`.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 */
export const backtestLimits = {
  /** Backtests of one project that are looked at in one transaction. */
  batchBacktests: 20,
  /** Runs of one backtest that are in the queue or at work at once: what was not begun is easily not run. */
  liveRuns: 8,
  /** Places of the feed that are looked at in one query. */
  pagePlaces: 2_000,
  /** Events of the window that are looked at in all. */
  lookedEvents: 500_000
} as const
