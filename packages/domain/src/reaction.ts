/**
 * An agent's rule for which graph events wake it, and the judgement itself.
 *
 * The judgement reads the event's actor, never the row's: by the time an event
 * is dispatched the row may have been written by somebody else. It is pure, so
 * `explain` gives the same answer as the dispatcher gave.
 */
import { Schema } from "effect"
import { ChangeType, type GraphEvent, ObjectType } from "./graph.ts"
import type { AgentId } from "./ids.ts"

export const ConcurrencyStrategy = Schema.Literals(["skip", "parallel"])
export type ConcurrencyStrategy = typeof ConcurrencyStrategy.Type

/** The rule as it is kept, every default filled in (S000-R37). */
export const ReactionConfig = Schema.Struct({
  /** Types to react to; [] is all of them (S001-R48). */
  objectTypes: Schema.Array(ObjectType).check(Schema.isMaxLength(100)),
  events: Schema.Array(ChangeType).check(Schema.isBetweenLength(1, 3), Schema.isUnique()),
  /** What to do with an event of an object that the agent is still working on (S001-R23). */
  concurrencyStrategy: ConcurrencyStrategy,
  ignoreSelfTriggered: Schema.Boolean,
  ignoreAgentTriggered: Schema.Boolean
}).annotate({ identifier: "ReactionConfig" })
export type ReactionConfig = typeof ReactionConfig.Type

/** Why an event did not wake an agent. */
export type Refusal =
  | "objectType"
  | "eventType"
  | "selfTriggered"
  | "agentTriggered"
  | "chainDepth"
  | "chainRuns"

export const refusalSentences: Readonly<Record<Refusal, string>> = {
  objectType: "The agent does not react to objects of this type.",
  eventType: "The agent does not react to this kind of event.",
  selfTriggered: "The agent caused this event itself and ignores its own changes.",
  agentTriggered: "An agent caused this event and this agent ignores changes made by agents.",
  chainDepth: "The chain of agents that led to this event has reached its depth cap.",
  chainRuns: "The chain that began with the same root event has reached its cap of runs."
}

/** What the judgement needs to know of an event. */
export type JudgedEvent = Pick<GraphEvent, "objectType" | "type" | "actorType" | "actorId" | "depth">

/** Says why an event does not wake an agent, or undefined when it does (S000-R03…R06, R11, R12; S001-R14…R16). */
export const refuses = (
  agentId: AgentId,
  config: ReactionConfig,
  event: JudgedEvent,
  maxChainDepth: number
): Refusal | undefined => {
  if (config.objectTypes.length > 0 && !config.objectTypes.includes(event.objectType)) return "objectType"
  if (!config.events.includes(event.type)) return "eventType"
  if (event.actorType === "agent") {
    if (config.ignoreSelfTriggered && event.actorId === agentId) return "selfTriggered"
    // Any agent: also this one, should it be told not to ignore itself (S001-R15).
    if (config.ignoreAgentTriggered) return "agentTriggered"
  }
  return event.depth >= maxChainDepth ? "chainDepth" : undefined
}
