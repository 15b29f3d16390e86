/**
 * The rule by which a reaction wakes its agent, as a form holds it.
 *
 * Pure.
 */
import type { ReactionInput } from "@tropism/domain/reaction"
import { Option, Result } from "effect"
import { type ConditionRow, filterOf, rowOf } from "./condition-rows.ts"
import { type DraftFault, given, numberGiven, numberText, partsOf, type Sent, within } from "./draft-texts.ts"
import { listenerOf, type ListenerRow, listenerRowOf } from "./listener-rows.ts"

export interface ReactionDraft {
  /** Parted by commas; empty is all. */
  readonly objectTypes: string
  /** `none` of the relationships, `all`, or `these` types of them. */
  readonly relationships: string
  /** Parted by commas. */
  readonly relationshipTypes: string
  readonly events: ReadonlyArray<string>
  /** Events of foreign MCP servers. */
  readonly listeners: ReadonlyArray<ListenerRow>
  /** What the properties must be, all of it. */
  readonly conditions: ReadonlyArray<ConditionRow>
  /** One a line; empty is any. */
  readonly changedProperties: string
  readonly ignoresItself: boolean
  readonly ignoresAgents: boolean
  readonly concurrencyStrategy: string
  readonly debounceMs: string
  readonly maxWaitMs: string
  readonly batchSize: string
  readonly maxConcurrency: string
  readonly maxRuns: string
  readonly perSeconds: string
}

/** The form of a rule. */
export const reactionDraftOf = (reaction: ReactionInput): ReactionDraft => {
  const { relationshipTypes = null, where, rateLimit } = reaction
  return {
    objectTypes: reaction.objectTypes.join(", "),
    relationships: relationshipTypes === null ? "none" : relationshipTypes.length === 0 ? "all" : "these",
    relationshipTypes: relationshipTypes?.join(", ") ?? "",
    events: reaction.events,
    listeners: (reaction.mcpEvents ?? []).map(listenerRowOf),
    conditions: (where?.properties ?? []).map(rowOf),
    changedProperties: (where?.changedProperties ?? []).map(lineOf).join("\n"),
    ignoresItself: reaction.ignoreSelfTriggered ?? true,
    ignoresAgents: reaction.ignoreAgentTriggered ?? false,
    concurrencyStrategy: reaction.concurrencyStrategy ?? "",
    debounceMs: numberText(reaction.debounceMs),
    maxWaitMs: numberText(reaction.maxWaitMs),
    batchSize: numberText(reaction.batchSize),
    maxConcurrency: numberText(reaction.maxConcurrency),
    maxRuns: numberText(rateLimit?.maxRuns),
    perSeconds: numberText(rateLimit?.perSeconds)
  }
}

/** The rule that a form says, or what cannot be sent of it. */
export const reactionOf = (draft: ReactionDraft): Result.Result<Sent, DraftFault> =>
  Result.gen(function* () {
    const relationshipTypes = yield* relationshipTypesOf(draft)
    const mcpEvents = yield* Result.all(draft.listeners.map(listenerOf))
    const changedProperties = partsOf(draft.changedProperties, /\n/).map(nameOf)
    return {
      objectTypes: partsOf(draft.objectTypes),
      ...relationshipTypes,
      events: draft.events,
      ...(mcpEvents.length > 0 && { mcpEvents }),
      ...within("where", {
        ...(draft.conditions.length > 0 && { properties: draft.conditions.map(filterOf) }),
        ...(changedProperties.length > 0 && { changedProperties })
      }),
      ...(!draft.ignoresItself && { ignoreSelfTriggered: false }),
      ...(draft.ignoresAgents && { ignoreAgentTriggered: true }),
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
  })

/** An empty list would be all types, which is not what "only those named" says. */
const relationshipTypesOf = ({
  relationships,
  relationshipTypes
}: ReactionDraft): Result.Result<Sent, DraftFault> => {
  if (relationships === "none") return Result.succeed({})
  if (relationships === "all") return Result.succeed({ relationshipTypes: [] })
  const types = partsOf(relationshipTypes)
  return types.length > 0
    ? Result.succeed({ relationshipTypes: types })
    : Result.fail({
        pointer: "/reactionConfig/relationshipTypes",
        message: "Enter at least one type, or choose all types."
      })
}

const readText = Option.liftThrowable((line: string): unknown => JSON.parse(line))

/** The name of a property in a line: in quotes where the line would say another name. */
const lineOf = (name: string): string =>
  name === name.trim() && !/^"|[\r\n]/.test(name) ? name : JSON.stringify(name)

const nameOf = (line: string): string => {
  if (!line.startsWith('"')) return line
  const read = Option.getOrUndefined(readText(line))
  return typeof read === "string" ? read : line
}
