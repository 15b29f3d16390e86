/**
 * Names the places where a process may crash between two durable steps.
 *
 * A no-op in production. A simulation stops the server at one of them, and nothing after it runs: only the database's content remains.
 */
import { Context, Effect } from "effect"

export type CrashPointName =
  | "graph.beforeCommit"
  | "graph.afterCommit"
  | "batch.beforeCommit"
  | "batch.afterCommit"
  | "dispatch.beforeCommit"
  | "dispatch.afterCommit"
  | "release.beforeCommit"
  | "release.afterCommit"
  | "run.afterClaim"
  | "run.afterTurnStarted"
  | "run.afterFlowStep"
  | "run.beforeModel"
  | "run.afterModel"
  | "run.beforeSummary"
  | "run.afterSummary"
  | "run.afterNotes"
  | "run.afterStep"
  | "run.afterDebounce"
  | "run.afterWait"
  | "run.afterSpawn"
  | "run.afterReport"
  | "run.beforeForeignCall"
  | "run.afterForeignCall"
  | "tool.beforeCommit"
  | "tool.afterCommit"
  | "run.beforeComplete"
  | "run.afterComplete"
  | "chat.beforeCommit"
  | "chat.afterCommit"
  | "task.beforeChange"
  | "task.beforeCommit"
  | "task.afterCommit"
  | "schedule.beforeCommit"
  | "schedule.afterCommit"
  | "source.afterClaim"
  | "source.beforeKeep"
  | "source.beforeCommit"
  | "source.afterCommit"
  | "backtest.beforeBegun"
  | "backtest.beforeQueued"
  | "backtest.afterCommit"
  | "delivery.beforeRecord"

export class CrashPoint extends Context.Reference<{
  readonly hit: (name: CrashPointName) => Effect.Effect<void>
}>("@tropism/server/CrashPoint", { defaultValue: () => ({ hit: () => Effect.void }) }) {
  /** Passes the named place. */
  static readonly hit = (name: CrashPointName): Effect.Effect<void> =>
    Effect.flatMap(CrashPoint, (point) => point.hit(name))
}
