/**
 * The rule by which a reaction wakes its agent, as a form holds it.
 *
 * Pure. What the form has no field for is kept as JSON beside it.
 */
import type { ReactionInput } from "@tropism/domain/reaction"
import { type ConditionRow, filterOf, rowOf } from "./condition-rows.ts"
import { given, jsonText, numberGiven, numberText, partsOf, type Sent, within } from "./draft-texts.ts"

export interface ReactionDraft {
  /** Parted by commas; empty is all. */
  readonly objectTypes: string
  readonly events: ReadonlyArray<string>
  /** What the object's properties must be, all of it. */
  readonly conditions: ReadonlyArray<ConditionRow>
  /** One a line; empty is any. */
  readonly changedProperties: string
  readonly concurrencyStrategy: string
  readonly debounceMs: string
  readonly maxWaitMs: string
  readonly batchSize: string
  readonly maxConcurrency: string
  readonly maxRuns: string
  readonly perSeconds: string
  readonly reactionRest: string
}

/** The form of a rule. */
export const reactionDraftOf = (reaction: ReactionInput): ReactionDraft => {
  const { objectTypes, events, where, concurrencyStrategy, rateLimit, ...more } = reaction
  const { debounceMs, maxWaitMs, batchSize, maxConcurrency, ...reactionRest } = more
  const changed = where?.changedProperties ?? []
  // A name that no line can hold stays in JSON, with what stands beside it.
  const isPlain = changed.every((name) => name === name.trim() && !lineEnds.test(name))
  return {
    objectTypes: objectTypes.join(", "),
    events,
    conditions: isPlain ? (where?.properties ?? []).map(rowOf) : [],
    changedProperties: isPlain ? changed.join("\n") : "",
    concurrencyStrategy: concurrencyStrategy ?? "",
    debounceMs: numberText(debounceMs),
    maxWaitMs: numberText(maxWaitMs),
    batchSize: numberText(batchSize),
    maxConcurrency: numberText(maxConcurrency),
    maxRuns: numberText(rateLimit?.maxRuns),
    perSeconds: numberText(rateLimit?.perSeconds),
    reactionRest: jsonText({ ...reactionRest, ...(!isPlain && { where }) })
  }
}

/** The rule that a form says; `rest` is what it has no field for. */
export const reactionOf = (draft: ReactionDraft, rest: Sent): Sent => {
  const changedProperties = partsOf(draft.changedProperties, lineEnds)
  return {
    ...rest,
    objectTypes: partsOf(draft.objectTypes),
    events: draft.events,
    ...within("where", {
      ...(draft.conditions.length > 0 && { properties: draft.conditions.map(filterOf) }),
      ...(changedProperties.length > 0 && { changedProperties })
    }),
    ...given("concurrencyStrategy", draft.concurrencyStrategy),
    ...numberGiven("debounceMs", draft.debounceMs),
    ...numberGiven("maxWaitMs", draft.maxWaitMs),
    ...numberGiven("batchSize", draft.batchSize),
    ...numberGiven("maxConcurrency", draft.maxConcurrency),
    ...within("rateLimit", {
      ...numberGiven("maxRuns", draft.maxRuns),
      ...numberGiven("perSeconds", draft.perSeconds)
    })
  }
}

const lineEnds = /\n/
