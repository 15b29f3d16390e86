/**
 * Port through which the graph reads what an agent may do now; `agents` implements it.
 *
 * **Invariant** Authority is checked at the write, not at the start of a run, so a revoked right takes effect at once. A
 * spawned run has no more rights than every agent above it.
 */
import type { ExecutionMode, Powers } from "@tropism/domain/capability"
import type { AgentId, RunId } from "@tropism/domain/ids"
import { type Taint, taintSentence } from "@tropism/domain/taint"
import { Context, type Effect } from "effect"
import type { ProjectTransaction } from "../database/database.ts"

/** What an agent may do in one of its runs; the mode of a tainted run is `suggest`. */
export interface Authority extends Powers {
  readonly agentId: AgentId
  readonly name: string
  /** Names of the agents whose runs led to this run by spawning; the run has no more rights than each of them. */
  readonly actsFor: ReadonlyArray<string>
  /** Whether the run belongs to a backtest: the version under test judges its changes, and none is made. */
  readonly isBacktest: boolean
  /** The mode from the agents' definitions, before taint is applied. */
  readonly definedMode: ExecutionMode
  /** The untrusted sources that entered the run's context. */
  readonly taintedBy: ReadonlyArray<Taint>
  /** False when the agent, or one it acts for, is disabled or deleted; only approved changes are written then. */
  readonly isActive: boolean
}

export class Authorities extends Context.Service<
  Authorities,
  {
    /**
     * Returns what the agent may do now, in a run or (null) outside any; undefined when the project has no such agent.
     *
     * **Details** A transaction that changes an agent waits for the agent's writes, and each write queues for the agent's lock
     * (`fair-row-locks.ts`). A caller that already holds the target of its change skips the queue: writes ahead of it may wait
     * for that target.
     */
    readonly of: (
      agentId: AgentId,
      runId: RunId | null,
      holdsTarget: boolean
    ) => Effect.Effect<Authority | undefined, never, ProjectTransaction>
  }
>()("@tropism/server/graph/Authorities") {}

/** Returns the denial, with the agents whose rights may have caused it. */
export const explainDenial = ({ actsFor }: Pick<Authority, "actsFor">, denial: string): string =>
  actsFor.length === 0
    ? denial
    : `${denial}. It acts for ${actsFor.join(" and ")} and may do no more than they may`

/** Returns why taint limits the run to suggestions; undefined when it does not. */
export const explainTaint = ({ definedMode, taintedBy }: Authority): string | undefined =>
  definedMode === "suggest" ? undefined : taintSentence(taintedBy)

/** Returns why an agent may change nothing. */
export const inactiveSentence = (authority: Authority | undefined): string =>
  authority === undefined || authority.actsFor.length === 0
    ? "The agent is disabled or deleted and may change nothing"
    : `The agent may change nothing: it, or one that it acts for (${authority.actsFor.join(", ")}), is disabled or deleted`
