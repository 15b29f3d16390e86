/**
 * Whether the graph moved since a change was suggested, and what that means for it.
 *
 * One rule for the server, which holds the target while it asks, and for whoever
 * shows a suggestion before the click. What others have set stays: a suggestion
 * is applied on top of what moved beside it, and never over what moved in the
 * places that it would write. Pure; who reads the graph is not known here.
 */
import { Schema } from "effect"
import type { Change } from "./change.ts"
import { Relationship } from "./graph.ts"
import { canonicalJson, isJsonObject, mergePatch, pointerStep, type Properties } from "./json.ts"
import { diffJson, ownValue } from "./json-diff.ts"

/** One place that moved under a change, in three versions; each is missing where there was, is or would be nothing. */
export const PropertyConflict = Schema.Struct({
  pointer: Schema.String,
  /** What the agent saw. */
  base: Schema.optionalKey(Schema.Json),
  /** What stands there now. */
  current: Schema.optionalKey(Schema.Json),
  /** What the change would make of it. */
  suggested: Schema.optionalKey(Schema.Json)
}).annotate({ identifier: "PropertyConflict" })
export type PropertyConflict = typeof PropertyConflict.Type

/** A relationship that would fall with an object. */
export const AddedRelationship = Schema.Struct({
  id: Relationship.fields.id,
  type: Relationship.fields.type,
  fromId: Relationship.fields.fromId,
  toId: Relationship.fields.toId
}).annotate({ identifier: "AddedRelationship" })
export type AddedRelationship = typeof AddedRelationship.Type

/**
 * What approving would meet now.
 *
 * **Details** `fresh`: what the agent saw. `rebasable`: other places moved, and the change is applied on top of them.
 * `outdated`: what it would write, or what would fall with it, has moved. `gone`: there is nothing left to change.
 */
export const StalenessState = Schema.Literals(["fresh", "rebasable", "outdated", "gone"])
export type StalenessState = typeof StalenessState.Type

/** An object that the run had read and that is another now. */
export const ChangedEvidence = Schema.Struct({
  objectId: Schema.String,
  type: Schema.String,
  /** The newest version that the run had read. */
  version: Schema.Int,
  /** Null when the object is deleted. */
  currentVersion: Schema.NullOr(Schema.Int)
})
export type ChangedEvidence = typeof ChangedEvidence.Type

/** How much a suggestion tells of what moved. */
export const stalenessBounds = {
  /** Places that moved. */
  toldPointers: 200,
  /** Relationships at an object to delete, on either side and newest first, among which new ones are looked for; an approval looks at all. */
  lookedRelationships: 50
} as const

/** Places as they are told: not more than a person reads. */
export const toldPointers = (pointers: ReadonlyArray<string>): ReadonlyArray<string> =>
  pointers.slice(0, stalenessBounds.toldPointers)

/** What a suggestion that waits says of the graph before the click; an approval judges again. */
export const Staleness = Schema.Struct({
  state: StalenessState,
  /** The version of the target now; null when there is none. */
  currentVersion: Schema.NullOr(Schema.Int),
  /** What moved since the base version, as JSON pointers into the properties; at most 200. */
  moved: Schema.Array(Schema.String),
  /** Those among them that the change would write; a deletion meets them all. */
  conflicts: Schema.Array(Schema.String),
  /** Relationships that somebody else made since at an object that would be deleted. */
  added: Schema.Array(AddedRelationship),
  /** Who has the key, or the place between two ends, that the change wants. */
  takenBy: Schema.NullOr(Schema.String),
  evidenceChanged: Schema.Array(ChangedEvidence)
}).annotate({ identifier: "Staleness" })
export type Staleness = typeof Staleness.Type

/** What a change meets in the graph: what it is about, as it was seen and as it is. */
export interface Standing {
  /** The version that was seen; null when the change is of nothing that was there, or nobody knows it. */
  readonly base: State | null
  /** The target as it is now; null when there is none, or none any more. */
  readonly current: State | null
  /** Whether the target, or an end of a new relationship, is no longer there. */
  readonly isGone: boolean
  /** Relationships of an object to delete that somebody else made after the base. */
  readonly added: ReadonlyArray<AddedRelationship>
  /** Who has the key, or the place between two ends, that the change wants. */
  readonly takenBy: string | null
}

interface State {
  readonly version: number
  readonly properties: Properties
}

export interface Judgement {
  readonly state: StalenessState
  /** Every place that differs from what was seen, as JSON pointers. */
  readonly moved: ReadonlyArray<string>
  /** Those among them that the change would write, and did not write already. */
  readonly conflicts: ReadonlyArray<PropertyConflict>
}

/** Judges a change by what it meets. */
export const judgeStaleness = (change: Change, standing: Standing): Judgement => {
  const { base, current, added, isGone, takenBy } = standing
  if (isGone) return { state: "gone", moved: [], conflicts: [] }
  if (takenBy !== null) return { state: "outdated", moved: [], conflicts: [] }
  const hasMoved = base !== null && current !== null && base.version !== current.version
  const moved = hasMoved ? diffJson(base.properties, current.properties) : []
  const conflicts = hasMoved ? conflictsOf(change, base.properties, current.properties) : []
  return {
    state: conflicts.length > 0 || added.length > 0 ? "outdated" : hasMoved ? "rebasable" : "fresh",
    moved: moved.map(({ pointer }) => pointer),
    conflicts
  }
}

/** The judgement as a suggestion tells it. */
export const toldStaleness = (
  change: Change,
  standing: Standing,
  evidenceChanged: ReadonlyArray<ChangedEvidence>
): Staleness => {
  const { conflicts, moved, state } = judgeStaleness(change, standing)
  return {
    state,
    currentVersion: standing.current?.version ?? null,
    moved: toldPointers(moved),
    conflicts: toldPointers(conflicts.map(({ pointer }) => pointer)),
    added: standing.added,
    takenBy: standing.takenBy,
    evidenceChanged
  }
}

/** A deletion meets every movement, an update those in its leaves. */
const conflictsOf = (
  change: Change,
  base: Properties,
  current: Properties
): ReadonlyArray<PropertyConflict> => {
  switch (change.type) {
    case "delete":
    case "deleteRelationship":
      return diffJson(base, current).map(({ pointer, before, after }) =>
        conflict(pointer, before, after, undefined)
      )
    case "update":
    case "updateRelationship":
      return leavesInConflict(change.data, base, current, "")
    default:
      return []
  }
}

/** Walks the patch down to its leaves, as a merge would. */
const leavesInConflict = (
  patch: Properties,
  base: Properties,
  current: Properties,
  pointer: string
): ReadonlyArray<PropertyConflict> =>
  Object.keys(patch).flatMap((key) => {
    const at = pointer + pointerStep(key)
    const wanted = ownValue(patch, key) ?? null
    const [before, now] = [ownValue(base, key), ownValue(current, key)]
    if (isJsonObject(wanted) && isJsonObject(now) && (before === undefined || isJsonObject(before)))
      return leavesInConflict(wanted, before ?? {}, now, at)
    return isSame(before, now) || isSame(now, merged(now, wanted))
      ? []
      : [conflict(at, before, now, merged(before, wanted))]
  })

/** What a merge patch makes of one value; undefined when it removes it. */
const merged = (value: Schema.Json | undefined, patch: Schema.Json): Schema.Json | undefined =>
  patch === null ? undefined : mergePatch(value ?? null, patch)

const isSame = (one: Schema.Json | undefined, other: Schema.Json | undefined): boolean =>
  one === undefined || other === undefined ? one === other : canonicalJson(one) === canonicalJson(other)

const conflict = (
  pointer: string,
  base: Schema.Json | undefined,
  current: Schema.Json | undefined,
  suggested: Schema.Json | undefined
): PropertyConflict => ({
  pointer,
  ...(base === undefined ? {} : { base }),
  ...(current === undefined ? {} : { current }),
  ...(suggested === undefined ? {} : { suggested })
})
