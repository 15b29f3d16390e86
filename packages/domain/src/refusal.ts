/**
 * Why an event does not wake an agent, told with the values that decided it.
 *
 * The dispatcher keeps what it says here with the event, and `explain` says it
 * of agents that an event never concerned: both ask the same function.
 */
import { type ChainCap, type ChainLimits, findDepthCap } from "./chain.ts"
import type { AgentId } from "./ids.ts"
import type { PropertyFilter } from "./property-filter.ts"
import { type JudgedEvent, type ReactionConfig, type Refusal, refusalSentences, refuses } from "./reaction.ts"
import { shortened } from "./text-beginning.ts"

/** What keeps an event from waking an agent: a rule of the agent, a cap of the chain, or an oscillation. */
export type RefusalRule = Refusal | ChainCap | "oscillation"

/** A refusal as it is kept and shown. */
export interface Told {
  readonly rule: RefusalRule
  readonly reason: string
}

/** Finds why an event does not wake an agent: its own rules first, then the depth of the chain. */
export const findRefusal = (
  agentId: AgentId,
  config: ReactionConfig,
  event: JudgedEvent,
  limits: ChainLimits
): Told | undefined => {
  const rule = refuses(agentId, config, event, limits.maxDepth)
  if (rule === undefined) return undefined
  return rule === "chainDepth"
    ? findDepthCap(event.depth, limits)
    : { rule, reason: tell(rule, config, event) }
}

/** The types and kinds that an agent listens to are found by an index: who is not concerned is not noted. */
export const isOfNoConcern = (rule: RefusalRule): boolean =>
  rule === "objectType" || rule === "relationshipType" || rule === "eventType"

const tell = (rule: Exclude<Refusal, "chainDepth">, config: ReactionConfig, event: JudgedEvent): string => {
  const sentence = refusalSentences[rule]
  switch (rule) {
    case "objectType":
      return withValues(sentence, `${event.objectType} is not among ${config.objectTypes.join(", ")}`)
    case "relationshipType":
      return config.relationshipTypes === null
        ? withValues(sentence, "it names no relationshipTypes")
        : withValues(sentence, `${event.objectType} is not among ${config.relationshipTypes.join(", ")}`)
    case "properties":
      return withValues(sentence, (config.where?.properties ?? []).map(condition).join(" and "))
    case "changedProperties":
      return withValues(
        sentence,
        `${(config.where?.changedProperties ?? []).join(", ")}; changed were ${event.changedProperties.join(", ") || "none"}`
      )
    case "eventType":
      return withValues(sentence, `${event.type} is not among ${config.events.join(", ")}`)
    default:
      return sentence
  }
}

const condition = ({ op, property, value }: PropertyFilter): string =>
  `${property} ${op} ${JSON.stringify(value)}`

/** Of the values that were compared, in a sentence; a condition may name a thousand. */
const valuesMaxChars = 500

/** Puts what was compared before the end of a sentence. */
const withValues = (sentence: string, values: string): string => {
  return `${sentence.replace(/\.$/, "")}: ${shortened(values, valuesMaxChars)}.`
}
