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
import { isJsonObject, type Properties } from "./json.ts"
import { McpEventListeners } from "./mcp-event.ts"
import { matches, PropertyFilters } from "./property-filter.ts"

/**
 * What becomes of an event of an object that the agent is still working on.
 *
 * **Details** `skip` lets it go and says so (S001-R24); `parallel` works on both
 * at once (S001-R25); `latest` works once more, on the newest version, when the
 * present run ends; `queue` keeps every event and works on one after the other,
 * in their order (S001-F02).
 */
export const ConcurrencyStrategy = Schema.Literals(["skip", "parallel", "latest", "queue"])
export type ConcurrencyStrategy = typeof ConcurrencyStrategy.Type

/** Which of the events of the right type and kind are meant (S001-F04). Both conditions must hold. */
export const ReactionFilter = Schema.Struct({
  /** Conditions on the state after the change; for `deleted`, on the last state. */
  properties: Schema.optional(Schema.NullOr(PropertyFilters)),
  /** At least one of these top-level properties was changed by the event. */
  changedProperties: Schema.optional(
    Schema.NullOr(
      Schema.Array(Schema.String.check(Schema.isBetweenLength(1, 500))).check(Schema.isBetweenLength(1, 100))
    )
  )
}).annotate({ identifier: "ReactionFilter" })
export type ReactionFilter = typeof ReactionFilter.Type

/** At most `maxRuns` runs begin within any `perSeconds` seconds; what is beyond waits (S001-F03). */
export const RateLimit = Schema.Struct({
  maxRuns: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 })),
  perSeconds: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 86_400 }))
}).annotate({ identifier: "RateLimit" })
export type RateLimit = typeof RateLimit.Type

/** Bounds of a reaction's numbers. */
export const reactionBounds = {
  debounceMaxMs: 3_600_000,
  maxWaitMaxMs: 86_400_000,
  batchMaxSize: 1_000,
  maxConcurrency: 1_000
} as const

/** A rule that names neither changes nor foreign events would wake nobody (S000-R02). */
const hearsSomething = Schema.makeFilter(
  ({
    events,
    mcpEvents
  }: {
    readonly events: ReadonlyArray<ChangeType>
    readonly mcpEvents?: ReadonlyArray<unknown> | null | undefined
  }) =>
    events.length > 0 || (mcpEvents ?? []).length > 0
      ? undefined
      : {
          path: ["events"],
          issue:
            "Expected at least one of created, updated and deleted, or mcpEvents: the agent would hear nothing"
        }
)

/** The rule as it is kept, every default filled in (S000-R37). */
export const ReactionConfig = Schema.Struct({
  /** Types to react to; [] is all of them (S001-R48). */
  objectTypes: Schema.Array(ObjectType).check(Schema.isMaxLength(100)),
  /** Types of relationships to react to; null is none and [] is all of them. */
  relationshipTypes: Schema.NullOr(Schema.Array(ObjectType).check(Schema.isMaxLength(100))),
  /** Kinds of changes of the graph; [] where the agent hears only foreign servers. */
  events: Schema.Array(ChangeType).check(Schema.isMaxLength(3), Schema.isUnique()),
  /** Events of foreign MCP servers that wake the agent, too; absent is none. */
  mcpEvents: Schema.optionalKey(McpEventListeners),
  where: Schema.NullOr(ReactionFilter),
  /** What to do with an event of an object that the agent is still working on (S001-R23). */
  concurrencyStrategy: ConcurrencyStrategy,
  ignoreSelfTriggered: Schema.Boolean,
  ignoreAgentTriggered: Schema.Boolean,
  /** A run begins when its object has been quiet for this long, and gets all events since (S001-F01); 0 is at once. */
  debounceMs: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: reactionBounds.debounceMaxMs })),
  /** A debounced or batched event waits no longer than this. */
  maxWaitMs: Schema.NullOr(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: reactionBounds.maxWaitMaxMs }))
  ),
  /** One run handles up to this many events, of any objects (S001-F01, K03). */
  batchSize: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: reactionBounds.batchMaxSize })),
  rateLimit: Schema.NullOr(RateLimit),
  /** Runs of the agent that are at work at once; null is unbounded (S001-K03). */
  maxConcurrency: Schema.NullOr(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: reactionBounds.maxConcurrency }))
  )
})
  .check(hearsSomething)
  .annotate({ identifier: "ReactionConfig" })
export type ReactionConfig = typeof ReactionConfig.Type

/** The rule as somebody sends it: `objectTypes` and `events` are required, the other fields have defaults (S000-R02; S001-R23, R50). */
export const ReactionInput = Schema.Struct({
  objectTypes: ReactionConfig.fields.objectTypes,
  relationshipTypes: Schema.optional(ReactionConfig.fields.relationshipTypes),
  events: ReactionConfig.fields.events,
  mcpEvents: Schema.optional(Schema.NullOr(McpEventListeners)),
  where: Schema.optional(ReactionConfig.fields.where),
  concurrencyStrategy: Schema.optional(Schema.NullOr(ConcurrencyStrategy)),
  ignoreSelfTriggered: Schema.optional(Schema.NullOr(Schema.Boolean)),
  ignoreAgentTriggered: Schema.optional(Schema.NullOr(Schema.Boolean)),
  debounceMs: Schema.optional(Schema.NullOr(ReactionConfig.fields.debounceMs)),
  maxWaitMs: Schema.optional(ReactionConfig.fields.maxWaitMs),
  batchSize: Schema.optional(Schema.NullOr(ReactionConfig.fields.batchSize)),
  rateLimit: Schema.optional(ReactionConfig.fields.rateLimit),
  maxConcurrency: Schema.optional(ReactionConfig.fields.maxConcurrency)
}).check(hearsSomething)
export type ReactionInput = typeof ReactionInput.Type

/** Fills in every default of a rule. */
export const defineReaction = (input: ReactionInput): ReactionConfig => ({
  objectTypes: input.objectTypes,
  relationshipTypes: input.relationshipTypes ?? null,
  events: input.events,
  ...(input.mcpEvents && input.mcpEvents.length > 0 ? { mcpEvents: input.mcpEvents } : {}),
  where: input.where ?? null,
  concurrencyStrategy: input.concurrencyStrategy ?? "skip",
  ignoreSelfTriggered: input.ignoreSelfTriggered ?? true,
  ignoreAgentTriggered: input.ignoreAgentTriggered ?? false,
  debounceMs: input.debounceMs ?? 0,
  maxWaitMs: input.maxWaitMs ?? null,
  batchSize: input.batchSize ?? 1,
  rateLimit: input.rateLimit ?? null,
  maxConcurrency: input.maxConcurrency ?? null
})

/** Why an event did not wake an agent. */
export type Refusal =
  | "objectType"
  | "relationshipType"
  | "eventType"
  | "selfTriggered"
  | "undone"
  | "agentTriggered"
  | "properties"
  | "changedProperties"
  | "chainDepth"

export const refusalSentences: Readonly<Record<Exclude<Refusal, "chainDepth">, string>> = {
  objectType: "The agent does not react to objects of this type.",
  relationshipType: "The agent does not react to relationships of this type.",
  eventType: "The agent does not react to this kind of event.",
  selfTriggered: "The agent caused this event itself and ignores its own changes.",
  undone:
    "The event takes back what this agent did, and the agent ignores its own changes: it would do them again.",
  agentTriggered: "An agent caused this event and this agent ignores changes made by agents.",
  properties: "The properties after this event do not meet the agent's conditions (where.properties).",
  changedProperties:
    "The event changed none of the properties that the agent looks at (where.changedProperties)."
}

/** What the judgement needs to know of an event. */
export type JudgedEvent = Pick<
  GraphEvent,
  | "entityType"
  | "objectType"
  | "type"
  | "changedProperties"
  | "snapshot"
  | "actorType"
  | "actorId"
  | "undoes"
  | "depth"
>

/** Says why an event does not wake an agent, or undefined when it does (S000-R03…R06, R11, R12; S001-R14…R16, R47, F04). */
export const refuses = (
  agentId: AgentId,
  config: ReactionConfig,
  event: JudgedEvent,
  maxChainDepth: number
): Refusal | undefined => {
  const unheard = refusesKind(config, event)
  if (unheard !== undefined) return unheard
  if (event.actorType === "agent") {
    if (config.ignoreSelfTriggered && event.actorId === agentId) return "selfTriggered"
    // Any agent: also this one, should it be told not to ignore itself (S001-R15).
    if (config.ignoreAgentTriggered) return "agentTriggered"
  }
  if (config.ignoreSelfTriggered && event.undoes?.includes(agentId)) return "undone"
  const unmet = config.where === null ? undefined : refusesWhere(config.where, event)
  return unmet ?? (event.depth >= maxChainDepth ? "chainDepth" : undefined)
}

/** What the index of listeners decides for the dispatcher: type and kind. */
const refusesKind = (config: ReactionConfig, event: JudgedEvent): Refusal | undefined => {
  if (event.entityType === "relationship") {
    const types = config.relationshipTypes
    if (types === null || (types.length > 0 && !types.includes(event.objectType))) return "relationshipType"
  } else if (config.objectTypes.length > 0 && !config.objectTypes.includes(event.objectType))
    return "objectType"
  return config.events.includes(event.type) ? undefined : "eventType"
}

const refusesWhere = (where: ReactionFilter, event: JudgedEvent): Refusal | undefined => {
  const changed = where.changedProperties
  if (changed && !changed.some((property) => event.changedProperties.includes(property)))
    return "changedProperties"
  return where.properties && !matches(where.properties, propertiesOf(event)) ? "properties" : undefined
}

/** The state that the conditions are about: the snapshot's properties. */
const propertiesOf = ({ snapshot }: JudgedEvent): Properties =>
  isJsonObject(snapshot) && isJsonObject(snapshot["properties"]) ? snapshot["properties"] : {}
