/**
 * For whom a tool acts, and the ports through which it learns more.
 *
 * Identity comes from the connection and never from arguments: no schema shows
 * it, and no argument can name it. What lies to the left of this stage (the run
 * that calls) is reached through ports that the platform fills.
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
  /** For whom it works: the one whose words the turn reads, else who began the run. */
  readonly userId: UserId | null
  /** Whose words the turn reads; null where nobody began the run and no person said them. */
  readonly askedBy: ReadonlyArray<UserId | null>
  /** Of a run that only tries out what its agent would do: nothing that it asks for is done. */
  readonly backtest: Backtested | null
  readonly contextName: ContextName
  readonly rootEventId: GraphEventId
  readonly depth: number
  /** What woke the run; part of the evidence of what it suggests. */
  readonly evidence: ReadonlyArray<Evidence>
  /** The versions of what woke the run, of objects and of relationships, as it was shown them. */
  readonly wokenBy: ReadonlyArray<{ readonly id: string; readonly version: number }>
}

/** As of when whoever asks sees the graph: as it is, where there is no backtest. */
export type Sight = Pick<RunPrincipal, "backtest">

/** For whom the todo tools act, and in which context; a person who calls for himself is in none. */
export interface TodoKeeper {
  readonly userId: UserId | null
  readonly contextName: ContextName | null
  /** Whose words the turn reads, of an agent's. */
  readonly askedBy?: RunPrincipal["askedBy"]
}

/** The backtest that a run belongs to, and the instant as of which it sees the graph. */
export interface Backtested {
  readonly id: BacktestId
  readonly asOf: Date
}

/** The attempt may not write any more: the run was taken over, cancelled or has ended. */
export class AttemptLost extends Schema.TaggedError<AttemptLost>()("AttemptLost", { runId: Schema.String }) {}

/** The port that says whether an attempt still holds its run. */
export class RunGuard extends Context.Service<
  RunGuard,
  {
    /** Holds the run for this transaction, or fails when the attempt is not the one that may write. */
    readonly hold: (principal: RunPrincipal) => Effect.Effect<void, AttemptLost, ProjectTransaction>
  }
>()("@tropism/server/tool/RunGuard") {}
