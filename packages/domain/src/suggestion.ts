/**
 * What a suggestion is about, and what two suggestions about the same become.
 *
 * Two suggestions of one agent about the same subject are one: the newer words
 * refine the older. Two updates of one thing are about the same only where they
 * name a property that both would write.
 */
import type { Change } from "./change.ts"
import type { Relationship } from "./graph.ts"
import {
  canonicalJson,
  changedProperties,
  findPropertiesFault,
  isJsonObject,
  type Properties
} from "./json.ts"

/** The text whose digest tells one creation without a key from another: the same words about another object are another wish. */
export const creationText = (change: Change, wokenBy: ReadonlyArray<string>): string =>
  canonicalJson([change, [...new Set(wokenBy)].toSorted()])

/** What a change is about, as text; `creationDigest` stands for the key of a creation that has none. */
export const subjectOf = (change: Change, creationDigest: string): string => {
  switch (change.type) {
    case "create":
      return change.key === null
        ? `create:${change.objectType}#${creationDigest}`
        : `create:${change.objectType}:${change.key}`
    case "update":
    case "delete":
      return `${change.type}:${change.objectId}`
    case "createRelationship": {
      const { fromId, toId, type } = change.relationship
      return `createRelationship:${type}:${fromId}:${toId}`
    }
    case "updateRelationship":
    case "deleteRelationship":
      return `${change.type}:${change.relationshipId}`
  }
}

/** The objects that a change touches by itself; of a relationship that is there, its ends. */
export const touchedBy = (change: Change, relationship: Relationship | null): ReadonlyArray<string> => {
  switch (change.type) {
    case "create":
      return []
    case "update":
    case "delete":
      return [change.objectId]
    case "createRelationship":
      return [change.relationship.fromId, change.relationship.toId]
    case "updateRelationship":
    case "deleteRelationship":
      return relationship ? [relationship.fromId, relationship.toId] : []
  }
}

/** The properties that a patch would write; undefined for a change that is no patch. */
export const patchedBy = (change: Change): ReadonlyArray<string> | undefined =>
  change.type === "update" || change.type === "updateRelationship" ? Object.keys(change.data) : undefined

/** What was said before, with the properties of its target as it was then and as it is now. */
export interface Said {
  readonly change: Change
  readonly before: Properties
  readonly now: Properties
}

/**
 * What an open suggestion says once its agent has said more about the same.
 *
 * **Details** Of patches the newer lies over the older ones, oldest first. What has moved since under an older one is let
 * go of: it was said of another state, and would overwrite what somebody wrote meanwhile. Every other change says the
 * whole of what it wants, so the newer stands alone; so does a patch that the older would make larger than may be kept.
 */
export const refine = (older: ReadonlyArray<Said>, newer: Change): Change => {
  if (newer.type !== "update" && newer.type !== "updateRelationship") return newer
  const unmoved = older.map(({ before, change, now }) =>
    without("data" in change ? change.data : {}, changedProperties(before, now))
  )
  const data = [...unmoved, newer.data].reduce(overlay, {})
  return findPropertiesFault(data) === undefined ? { ...newer, data } : newer
}

/** Whether what a newer change writes has moved since one of the older ones; a deletion writes all. */
export const meetsMove = (older: ReadonlyArray<Said>, newer: Change): boolean => {
  const written = patchedBy(newer)
  return older
    .flatMap(({ before, now }) => changedProperties(before, now))
    .some((key) => written?.includes(key) ?? true)
}

/** Two merge patches as one: what the second says of a place is said, also that it is removed. */
const overlay = (first: Properties, second: Properties): Properties => {
  const both = { ...first }
  for (const [key, value] of Object.entries(second)) {
    const under = Object.hasOwn(both, key) ? both[key] : undefined
    both[key] = isJsonObject(under) && isJsonObject(value) ? overlay(under, value) : value
  }
  return both
}

const without = (data: Properties, keys: ReadonlyArray<string>): Properties =>
  Object.fromEntries(Object.entries(data).filter(([key]) => !keys.includes(key)))
