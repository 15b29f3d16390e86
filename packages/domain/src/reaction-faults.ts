/**
 * What makes a rule one that can never wake its agent, or that contradicts itself.
 *
 * Asked when a rule is saved and not when it is read: a rule that was kept once is obeyed as it is.
 */
import type { ReactionConfig } from "./reaction.ts"

interface RuleFault {
  readonly pointer: string
  readonly message: string
}

/** Finds the first fault of a rule, with its place in the agent's definition. */
export const findReactionFault = (config: ReactionConfig): RuleFault | undefined =>
  findEmptyChoice(config) ?? findUnchangeable(config) ?? findShortWait(config)

const findEmptyChoice = ({ where }: ReactionConfig): RuleFault | undefined => {
  const index = where?.properties?.findIndex(
    ({ op, value }) => op === "in" && Array.isArray(value) && value.length === 0
  )
  return index === undefined || index === -1
    ? undefined
    : {
        pointer: `/reactionConfig/where/properties/${index}/value`,
        message: "in [] holds for nothing, so the agent would never be woken: name at least one value"
      }
}

const findUnchangeable = ({ events, where }: ReactionConfig): RuleFault | undefined =>
  where?.changedProperties && events.every((event) => event === "deleted")
    ? {
        pointer: "/reactionConfig/where/changedProperties",
        message:
          "A deletion changes no property, so the agent would never be woken: leave changedProperties out or add another event"
      }
    : undefined

const findShortWait = ({ debounceMs, maxWaitMs }: ReactionConfig): RuleFault | undefined =>
  maxWaitMs !== null && maxWaitMs < debounceMs
    ? {
        pointer: "/reactionConfig/maxWaitMs",
        message: `maxWaitMs is ${maxWaitMs} and would end each wait before debounceMs, which is ${debounceMs}: make it at least as long`
      }
    : undefined
