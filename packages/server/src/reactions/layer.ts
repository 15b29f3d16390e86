/** Provides everything that triggers runs: events, schedules, external events, webhooks and people. It needs the run engine. */
import { Layer } from "effect"
import { BacktestReading } from "./backtest-reports.ts"
import { Backtester, Backtests } from "./backtests.ts"
import { Chains } from "./chains.ts"
import { Comparisons } from "./comparisons.ts"
import { Dispatcher } from "./dispatcher.ts"
import { Explanations, PendingEvents } from "./explain.ts"
import { SourcePoller } from "./external-events.ts"
import { AgentHealths, ReactionQueues } from "./health.ts"
import { ContextBeginnings } from "./new-contexts.ts"
import { Releaser } from "./releases.ts"
import { Reruns, Resumptions, Retries } from "./manual-retries.ts"
import { Scheduler } from "./schedules.ts"
import { BatchTriggers, Triggers } from "./manual-triggers.ts"
import { Deliveries, Webhooks } from "./webhooks.ts"
export const reactionsLayer = Layer.mergeAll(
  Dispatcher.layer,
  Releaser.layer,
  Scheduler.layer,
  SourcePoller.layer,
  Backtester.layer,
  Backtests.layer,
  BacktestReading.layer,
  Resumptions.layer,
  Layer.provideMerge(Comparisons.layer, Layer.mergeAll(Triggers.layer, ContextBeginnings.layer)),
  Retries.layer,
  AgentHealths.layer,
  ReactionQueues.layer,
  PendingEvents.layer,
  BatchTriggers.layer,
  Reruns.layer,
  Chains.layer,
  Explanations.layer,
  Webhooks.layer,
  Deliveries.layer
)
