/** The types of a run: to be queued, skipped, claimed and failed. */
import type { ContextName } from "@tropism/domain/context-event"
import type { GraphEvent } from "@tropism/domain/graph"
import type {
  AgentId,
  AttemptToken,
  BacktestId,
  GraphEventId,
  ProjectId,
  RunId,
  ToolCallId,
  UserId
} from "@tropism/domain/ids"
import type { Occurrence } from "@tropism/domain/mcp-event"
import type { LimitOverrides, RunFailure, Trigger } from "@tropism/domain/run"
import type { Taint } from "@tropism/domain/taint"

/** A run to queue, with the context it will work on. */
export interface NewRun {
  readonly id: RunId
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly trigger: Trigger
  readonly contextName: ContextName
  readonly rootEventId: GraphEventId
  readonly depth: number
  readonly userId: UserId | null
  readonly dueAt: string | null
  /** The untrusted sources that its context begins with; a sub-run inherits its parent's taint automatically. */
  readonly taintedBy?: ReadonlyArray<Taint>
  /** The run that spawns it; absent for a run that is not a sub-run. */
  readonly spawn?: Spawn
  /** The backtest that it belongs to; absent for a real run. */
  readonly backtestId?: BacktestId
}

/** Returns the chain fields of a run that begins a chain of its own, named after the run. */
export const chainRoot = (
  id: RunId,
  agent: { readonly id: AgentId; readonly version: number },
  begun: Pick<NewRun, "contextName" | "trigger" | "userId">
): NewRun => ({
  ...begun,
  id,
  agentId: agent.id,
  agentVersion: agent.version,
  rootEventId: id as string as GraphEventId,
  depth: 0,
  dueAt: null
})

/** How a sub-run relates to the runs above it. */
export interface Spawn {
  readonly parentRunId: RunId
  /** The tool call whose outcome its end delivers. */
  readonly spawnedBy: ToolCallId
  /** The runs above it, from the root to its parent. */
  readonly ancestors: ReadonlyArray<RunId>
  /** Its own limits. */
  readonly limits: LimitOverrides
}

/** A trigger that gets no run, recorded with the reason. */
export interface SkippedRun extends Pick<NewRun, "id" | "agentId" | "agentVersion" | "trigger" | "dueAt"> {
  readonly reason: string
}

/** A run that was failed from outside: its worker disappeared, or it made no progress. */
export interface FailedRun extends Pick<
  ClaimedRun,
  "id" | "agentId" | "backtestId" | "contextName" | "userId"
> {
  /** The partial text of an answer that broke off; null without one. */
  readonly summary: string | null
  readonly errorMessage: string
  readonly failureReason: RunFailure
}

/** A run that this worker holds, with the token that its writes must carry and the state it begins with. */
export interface ClaimedRun {
  readonly id: RunId
  readonly projectId: ProjectId
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly trigger: Trigger
  readonly contextName: ContextName
  readonly rootEventId: GraphEventId
  readonly depth: number
  readonly userId: UserId | null
  /** The runs above it, from the root to its parent. */
  readonly ancestors: ReadonlyArray<RunId>
  /** The backtest that it belongs to; nothing that such a run does is delivered to anyone. */
  readonly backtestId: BacktestId | null
  /** The run's own limits. */
  readonly limits: LimitOverrides | null
  /** Its remaining time in milliseconds at the claim; null without a limit. */
  readonly timeLeftMs: number | null
  /** It came from the queue, so its last attempt did not die: an open turn was left open for it. */
  readonly wasQueued: boolean
  /** Its attempts died with their servers, so it was claimed in a small group of such runs. */
  readonly isSuspect: boolean
  readonly attempt: number
  readonly attemptToken: AttemptToken
  readonly projectName: string
  /** The number of events in its log at the claim. */
  readonly loggedEvents: number
  /** Whether its agent's version limits the spending of one run. */
  readonly hasBudget: boolean
  /** Whether people had rejected suggestions of its agent about the triggering objects. */
  readonly hasRejections: boolean
  /** The triggering events, as the trigger names them. */
  readonly events: ReadonlyArray<GraphEvent>
  /** The triggering events from external servers, as the trigger names them. */
  readonly occurrences: ReadonlyArray<Occurrence>
}
