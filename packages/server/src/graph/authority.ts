/**
 * The port through which the graph asks what an agent may do now.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Agents are kept by a stage that the graph does not know; whoever assembles
 * the platform fills this port. Authority is judged at the write and not at the
 * start of a run: a person who takes a right away has taken it away at once.
 */
import type { Capabilities, ExecutionMode, HybridPolicy } from "@tropism/domain/capability"
import type { AgentId } from "@tropism/domain/ids"
import { Context, type Effect } from "effect"
import type { ProjectTransaction } from "../database/database.ts"

export interface Authority {
  readonly agentId: AgentId
  readonly name: string
  readonly executionMode: ExecutionMode
  readonly hybridPolicy: HybridPolicy | null
  readonly capabilities: Capabilities | null
  /** False for an agent that is disabled or deleted: it may write nothing. */
  readonly isActive: boolean
}

export class Authorities extends Context.Service<
  Authorities,
  {
    /** What the agent may do at this moment; undefined when the project has no such agent. */
    readonly of: (agentId: AgentId) => Effect.Effect<Authority | undefined, never, ProjectTransaction>
  }
>()("@tropism/server/graph/Authorities") {}
