/**
 * For whom a tool acts, and the ports through which it learns more.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Identity comes from the connection and never from arguments: no schema shows
 * it, and no argument can name it. What lies to the left of this stage (the run
 * that calls) is reached through ports that the platform fills.
 */
import type { ContextName } from "@tropism/domain/context-event"
import type { AgentId, AttemptToken, GraphEventId, ProjectId, RunId, UserId } from "@tropism/domain/ids"
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
  readonly userId: UserId | null
  readonly contextName: ContextName
  readonly rootEventId: GraphEventId
  readonly depth: number
  /** What woke the run; part of the evidence of what it suggests. */
  readonly evidence: ReadonlyArray<Evidence>
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
