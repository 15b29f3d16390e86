/**
 * The principal that a tool acts for, and ports to the calling run.
 *
 * **Invariant** Identity comes from the connection and never from arguments; no schema has a field for it.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type {
  AgentId,
  AttemptToken,
  BacktestId,
  GraphEventId,
  ProjectId,
  RunId,
  UserId
} from "@tropism/domain/ids"
import type { Evidence } from "@tropism/domain/task"
import { Context, type Effect, Schema } from "effect"
import type { ProjectTransaction } from "../database/database.ts"

/** One attempt of one run of an agent. */
export interface RunPrincipal {
  readonly projectId: ProjectId
  readonly runId: RunId
  readonly attemptToken: AttemptToken
  readonly agentId: AgentId
  readonly agentName: string
  readonly agentVersion: number
  /** The user the run works for: the author of the messages in the turn, else the one who started the run. */
  readonly userId: UserId | null
  /** Authors of the messages in the turn; null where no person wrote them or started the run. */
  readonly askedBy: ReadonlyArray<UserId | null>
  /** The backtest of the run, whose changes are never made. */
  readonly backtest: Backtested | null
  readonly contextName: ContextName
  readonly rootEventId: GraphEventId
  readonly depth: number
  /** What woke the run; part of the evidence of its suggestions. */
  readonly evidence: ReadonlyArray<Evidence>
  /** The versions of objects and relationships that woke the run, as it was shown them. */
  readonly wokenBy: ReadonlyArray<{ readonly id: string; readonly version: number }>
}

/** The instant as of which the caller sees the graph; now without a backtest. */
export type Sight = Pick<RunPrincipal, "backtest">

/** The user of the todo tools and the context; a person's own call has no context. */
export interface TodoKeeper {
  readonly userId: UserId | null
  readonly contextName: ContextName | null
  /** For an agent: the authors of the messages in the turn. */
  readonly askedBy?: RunPrincipal["askedBy"]
}

/** The backtest of a run, and the instant as of which it sees the graph. */
export interface Backtested {
  readonly id: BacktestId
  readonly asOf: Date
}

/** The attempt may not write any more: its run was taken over, was cancelled or has ended. */
export class AttemptLost extends Schema.TaggedError<AttemptLost>()("AttemptLost", { runId: Schema.String }) {}

/** Port that checks whether an attempt still holds its run. */
export class RunGuard extends Context.Service<
  RunGuard,
  {
    /** Locks the run for this transaction; fails when the attempt no longer owns it. */
    readonly hold: (principal: RunPrincipal) => Effect.Effect<void, AttemptLost, ProjectTransaction>
  }
>()("@tropism/server/tool/RunGuard") {}
