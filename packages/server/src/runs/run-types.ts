/**
 * A run as the stages hand it on: wanted, and then held by one worker.
 *
 */
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

/** A run to be queued, with the context that it will work on. */
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
  /** What of untrusted sources its context begins with; a run that is spawned inherits its parent's taint by itself. */
  readonly taintedBy?: ReadonlyArray<Taint>
  /** The run that spawns it; absent for one that begins by itself. */
  readonly spawn?: Spawn
  /** The backtest that it belongs to; absent for one that works for real. */
  readonly backtestId?: BacktestId
}

/** A run that begins a chain of its own, named after itself. */
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

/** How a run came to be below another. */
export interface Spawn {
  readonly parentRunId: RunId
  /** The tool call whose outcome its end brings. */
  readonly spawnedBy: ToolCallId
  /** The runs above it, from the first to its parent. */
  readonly ancestors: ReadonlyArray<RunId>
  /** What is set for it alone. */
  readonly limits: LimitOverrides
}

/** A trigger that gets no run, kept in its place with the reason. */
export interface SkippedRun extends Pick<NewRun, "id" | "agentId" | "agentVersion" | "trigger" | "dueAt"> {
  readonly reason: string
}

/** A run that was ended from outside: its worker had gone silent, or nothing came of it. */
export interface FailedRun extends Pick<
  ClaimedRun,
  "id" | "agentId" | "backtestId" | "contextName" | "userId"
> {
  /** What is known of an answer that was broken off; null is nothing. */
  readonly summary: string | null
  readonly errorMessage: string
  readonly failureReason: RunFailure
}

/** A run that this worker holds, with the token that its writes must carry and what it begins with. */
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
  /** The runs above it, from the first to the one that spawned it. */
  readonly ancestors: ReadonlyArray<RunId>
  /** The backtest that it belongs to: then nothing that it does reaches anybody. */
  readonly backtestId: BacktestId | null
  /** What was set for this run alone. */
  readonly limits: LimitOverrides | null
  /** How long it may still work, in milliseconds, when it was claimed; null is unbounded. */
  readonly timeLeftMs: number | null
  /** It came from the queue, so nobody has died over it: a turn that is open was left open for it. */
  readonly wasQueued: boolean
  /** Its attempts died with their servers, so it was claimed in a small group of such runs. */
  readonly isSuspect: boolean
  readonly attempt: number
  readonly attemptToken: AttemptToken
  readonly projectName: string
  /** How many events its log had when it was claimed. */
  readonly loggedEvents: number
  /** Whether its agent's version bounds what one run may spend. */
  readonly hasBudget: boolean
  /** Whether people had rejected anything of its agent about what woke it. */
  readonly hasRejections: boolean
  /** The events that woke it, as the trigger names them. */
  readonly events: ReadonlyArray<GraphEvent>
  /** What foreign servers told, as the trigger names it. */
  readonly occurrences: ReadonlyArray<Occurrence>
}
