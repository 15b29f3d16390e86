/**
 * What an agent may do, and whether a change is done, suggested or refused.
 *
 * There is one table of truth: null capabilities are unrestricted, false is denied, a missing flag is
 * allowed, but that of updating or deleting relationships follows the one for objects.
 * `allowedObjectTypes` null is every type and [] is none. Every door asks these functions.
 */
import { Schema } from "effect"
import type { Change } from "./change.ts"
import { ObjectType } from "./graph.ts"

const Flag = Schema.optional(Schema.NullOr(Schema.Boolean))

export const Capabilities = Schema.Struct({
  canCreateObjects: Flag,
  canUpdateObjects: Flag,
  canDeleteObjects: Flag,
  canCreateRelationships: Flag,
  canUpdateRelationships: Flag,
  canDeleteRelationships: Flag,
  allowedObjectTypes: Schema.optional(
    Schema.NullOr(Schema.Array(ObjectType).check(Schema.isMaxLength(1_000)))
  )
}).annotate({ identifier: "Capabilities" })
export type Capabilities = typeof Capabilities.Type

export const ExecutionMode = Schema.Literals(["suggest", "execute", "hybrid"])
export type ExecutionMode = typeof ExecutionMode.Type

export const ChangeKind = Schema.Literals([
  "create",
  "update",
  "delete",
  "createRelationship",
  "updateRelationship",
  "deleteRelationship"
])
export type ChangeKind = typeof ChangeKind.Type

const Share = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

/** After how many reviews, and with what share of them accepted as they were, an agent need not ask any more. */
export const PromotionPolicy = Schema.Struct({
  minReviews: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 })),
  minRate: Share
}).annotate({ identifier: "PromotionPolicy" })
export type PromotionPolicy = typeof PromotionPolicy.Type

/** When a hybrid agent may act without asking. */
export const HybridPolicy = Schema.Struct({
  confidenceThreshold: Schema.optional(Schema.NullOr(Share)),
  alwaysSuggest: Schema.optional(Schema.NullOr(Schema.Array(ChangeKind))),
  /** Null, or absent: nothing is earned. */
  promotion: Schema.optional(Schema.NullOr(PromotionPolicy))
}).annotate({ identifier: "HybridPolicy" })
export type HybridPolicy = typeof HybridPolicy.Type

const flags = {
  create: "canCreateObjects",
  update: "canUpdateObjects",
  delete: "canDeleteObjects",
  createRelationship: "canCreateRelationships",
  updateRelationship: "canUpdateRelationships",
  deleteRelationship: "canDeleteRelationships"
} as const satisfies Record<ChangeKind, keyof Capabilities>

/** Flags that the specification does not have: where one is missing, the flag for objects decides (S001-R30, R31). */
const followed: Partial<Record<ChangeKind, "update" | "delete">> = {
  updateRelationship: "update",
  deleteRelationship: "delete"
}

/** The flag that denies a kind of change; undefined when none does. */
const denyingFlag = (capabilities: Capabilities, kind: ChangeKind): string | undefined => {
  const flag = flags[kind]
  const value = capabilities[flag] ?? undefined
  if (value !== undefined) return value ? undefined : flag
  const other = followed[kind]
  return other && denyingFlag(capabilities, other)
}

/**
 * Says why capabilities forbid a change, or undefined when they permit it.
 *
 * **Details** `objectTypes` are all types the change touches: the type of the
 * object, or the types at both ends of a relationship (S000-R26, R28; S001-R29…R33).
 */
export const denies = (
  capabilities: Capabilities | null,
  kind: ChangeKind,
  objectTypes: ReadonlyArray<string>
): string | undefined => {
  if (capabilities === null) return undefined
  const flag = denyingFlag(capabilities, kind)
  if (flag !== undefined)
    return `The agent's capability ${flag} is false${flag === flags[kind] ? "" : `, and ${flags[kind]} follows it unless set`}`
  const allowed = capabilities.allowedObjectTypes ?? null
  const foreign = allowed === null ? undefined : objectTypes.find((type) => !allowed.includes(type))
  return foreign === undefined
    ? undefined
    : `The agent's capability allowedObjectTypes does not include ${foreign}`
}

/** Whether capabilities forbid every change of a kind, whatever it touches. */
export const isForbidden = (capabilities: Capabilities | null, kind: ChangeKind): boolean =>
  denies(capabilities, kind, []) !== undefined || capabilities?.allowedObjectTypes?.length === 0

/** A kind of relationship that an object has. */
export interface RelationshipKind {
  readonly type: string
  readonly fromType: string
  readonly toType: string
}

/**
 * Says why an object may not be deleted for the sake of its relationships, which would go with it.
 *
 * **Details** Deleting an object must not be a way to delete what the agent may not delete by itself.
 */
export const deniesCascade = (
  capabilities: Capabilities | null,
  around: ReadonlyArray<RelationshipKind>
): string | undefined => {
  for (const { type, fromType, toType } of around) {
    const denial = denies(capabilities, "deleteRelationship", [fromType, toType])
    if (denial !== undefined)
      return `Its relationship ${type} from ${fromType} to ${toType} would be deleted with it. ${denial}`
  }
  return undefined
}

/** What the agent said about its own change. */
export interface Intent {
  readonly confidence: number | null
  readonly suggest: boolean
}

export const hybridDefaults = {
  confidenceThreshold: 0.8,
  alwaysSuggest: ["delete"] as ReadonlyArray<ChangeKind>
}

/** Chooses between doing and suggesting a permitted change (S000-R21, R24, R25). */
export const choosesToSuggest = (
  mode: ExecutionMode,
  policy: HybridPolicy | null,
  kind: Change["type"],
  intent: Intent
): boolean => {
  if (mode === "suggest" || intent.suggest) return true
  if (mode === "execute") return false
  return (
    alwaysSuggestOf(policy).includes(kind) ||
    intent.confidence === null ||
    intent.confidence < thresholdOf(policy)
  )
}

/**
 * Whether a change that is to be suggested would be done, had the agent earned it.
 *
 * **Details** What was earned stands for the confidence, and for nothing else: not for the mode, not for the agent's own wish
 * to ask, and not for what is always suggested.
 */
export const waitsForTrust = (
  mode: ExecutionMode,
  policy: HybridPolicy | null,
  kind: Change["type"],
  intent: Intent
): boolean =>
  mode === "hybrid" &&
  (policy?.promotion ?? null) !== null &&
  choosesToSuggest(mode, policy, kind, intent) &&
  !choosesToSuggest(mode, policy, kind, { ...intent, confidence: 1 })

const thresholdOf = (policy: HybridPolicy | null): number =>
  policy?.confidenceThreshold ?? hybridDefaults.confidenceThreshold

const alwaysSuggestOf = (policy: HybridPolicy | null): ReadonlyArray<ChangeKind> =>
  policy?.alwaysSuggest ?? hybridDefaults.alwaysSuggest

/** What an agent's definition lets it do to the graph. */
export interface Powers {
  readonly executionMode: ExecutionMode
  readonly hybridPolicy: HybridPolicy | null
  readonly capabilities: Capabilities | null
}

/**
 * What an agent may do that acts for another: what both of them may.
 *
 * **Details** A flag is denied where either denies it, a type allowed where both allow it. The mode is the narrower of the
 * two: suggest, then hybrid, then execute. Where both are hybrid the higher threshold holds, what either of them always
 * suggests is suggested, and trust counts where both may earn it.
 */
export const narrow = (own: Powers, above: Powers): Powers => {
  const narrower = breadth[own.executionMode] <= breadth[above.executionMode] ? own : above
  return {
    executionMode: narrower.executionMode,
    hybridPolicy:
      own.executionMode === above.executionMode
        ? narrowPolicy(own.hybridPolicy, above.hybridPolicy)
        : narrower.hybridPolicy,
    capabilities: narrowCapabilities(own.capabilities, above.capabilities)
  }
}

const breadth: Readonly<Record<ExecutionMode, number>> = { suggest: 0, hybrid: 1, execute: 2 }

const narrowPolicy = (own: HybridPolicy | null, above: HybridPolicy | null): HybridPolicy | null =>
  own === null && above === null
    ? null
    : {
        confidenceThreshold: Math.max(thresholdOf(own), thresholdOf(above)),
        alwaysSuggest: [...new Set([...alwaysSuggestOf(own), ...alwaysSuggestOf(above)])],
        promotion: narrowPromotion(own?.promotion ?? null, above?.promotion ?? null)
      }

const narrowPromotion = (
  own: PromotionPolicy | null,
  above: PromotionPolicy | null
): PromotionPolicy | null =>
  own && above
    ? {
        minReviews: Math.max(own.minReviews, above.minReviews),
        minRate: Math.max(own.minRate, above.minRate)
      }
    : null

const narrowCapabilities = (own: Capabilities | null, above: Capabilities | null): Capabilities | null => {
  if (own === null || above === null) return own ?? above
  const [ours, theirs] = [own.allowedObjectTypes ?? null, above.allowedObjectTypes ?? null]
  const allows = (kind: ChangeKind) =>
    denyingFlag(own, kind) === undefined && denyingFlag(above, kind) === undefined
  return {
    // Every flag is set: one that is missing could follow another that only one of the two denies.
    ...Object.fromEntries(ChangeKind.literals.map((kind) => [flags[kind], allows(kind)])),
    allowedObjectTypes:
      ours === null || theirs === null ? (ours ?? theirs) : ours.filter((type) => theirs.includes(type))
  }
}
