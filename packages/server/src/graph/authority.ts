/**
 * The port through which the graph asks what an agent may do now.
 *
 * Agents are kept by a stage that the graph does not know; whoever assembles
 * the platform fills this port. Authority is judged at the write and not at the
 * start of a run: a person who takes a right away has taken it away at once. In a
 * run that another spawned it is no more than every agent above it has.
 */
import type { ExecutionMode, Powers } from "@tropism/domain/capability"
import type { AgentId, RunId } from "@tropism/domain/ids"
import { type Taint, taintSentence } from "@tropism/domain/taint"
import { Context, type Effect } from "effect"
import type { ProjectTransaction } from "../database/database.ts"

/** What an agent may do in one of its runs; in a tainted one its mode is `suggest`. */
export interface Authority extends Powers {
  readonly agentId: AgentId
  readonly name: string
  /** The names of the agents whose runs led to this run by spawning: it may do no more than each of them. */
  readonly actsFor: ReadonlyArray<string>
  /** The run is a backtest's: what it asks for is judged by the version that it tries out, and never done. */
  readonly isBacktest: boolean
  /** The mode that the agents' definitions give, whatever the run has read. */
  readonly definedMode: ExecutionMode
  /** What of untrusted sources the run's context was shown. */
  readonly taintedBy: ReadonlyArray<Taint>
  /** False when the agent, or one that it acts for, is disabled or deleted: it may write nothing that no person approved. */
  readonly isActive: boolean
}

export class Authorities extends Context.Service<
  Authorities,
  {
    /**
     * What the agent may do at this moment in a run, or null beside any; undefined when the project has no such agent.
     *
     * **Details** Who changes an agent waits for its writes, and its writes wait for who came before them. Who holds the
     * target of the change already does not take its turn: writes before it may wait for that target.
     */
    readonly of: (
      agentId: AgentId,
      runId: RunId | null,
      holdsTarget: boolean
    ) => Effect.Effect<Authority | undefined, never, ProjectTransaction>
  }
>()("@tropism/server/graph/Authorities") {}

/** A denial, with whose rights it may come from. */
export const explainDenial = ({ actsFor }: Pick<Authority, "actsFor">, denial: string): string =>
  actsFor.length === 0
    ? denial
    : `${denial}. It acts for ${actsFor.join(" and ")} and may do no more than they may`

/** Why a run may only suggest what its agent could otherwise do; undefined where it has read nothing untrusted. */
export const explainTaint = ({ definedMode, taintedBy }: Authority): string | undefined =>
  definedMode === "suggest" ? undefined : taintSentence(taintedBy)

/** Why an agent may change nothing. */
export const inactiveSentence = (authority: Authority | undefined): string =>
  authority === undefined || authority.actsFor.length === 0
    ? "The agent is disabled or deleted and may change nothing"
    : `The agent may change nothing: it, or one that it acts for (${authority.actsFor.join(", ")}), is disabled or deleted`
