/**
 * What undoing a cause is for one object or relationship.
 *
 * A later change of somebody else always stands. Where the cause was the last to
 * set a property, it goes back to the value before the first of the cause's
 * settings behind the last foreign one: the last state that was not the cause's.
 * Judged on facts alone; what stands in the way elsewhere in the graph, such as a
 * key that is taken, is asked by the server.
 */
import type { EntityType } from "./graph.ts"
import type { UndoAction, UndoStatus } from "./undo.ts"
import { shortened } from "./text-beginning.ts"

/** A change by somebody who is not the cause. */
export interface LaterChange {
  readonly version: number
  /** Who made it, in words. */
  readonly by: string
}

/** What became of one property that the cause set. */
export interface PropertyFacts {
  readonly property: string
  /** The version before the cause's last uninterrupted settings; 0 is before there was anything. */
  readonly backVersion: number
  /** Whether its value now is what it was then. */
  readonly isSame: boolean
  /** Who set it after the cause did, if somebody did. */
  readonly later: LaterChange | null
  /** Whether somebody else had set it between two settings of the cause. */
  readonly isOverwritten: boolean
}

export interface EntityFacts {
  readonly entityType: EntityType
  readonly isPurged: boolean
  readonly isDeleted: boolean
  /** Whether the cause made it. */
  readonly isCreated: boolean
  /** The newest change of somebody else since the cause first touched it. */
  readonly other: LaterChange | null
  /** What it was before the cause last made or deleted it; null when the cause did neither. */
  readonly life: {
    readonly before: "absent" | "deleted" | "live"
    /** Who made, restored or deleted it after the cause did. */
    readonly later: LaterChange | null
  } | null
  readonly properties: ReadonlyArray<PropertyFacts>
}

export interface DraftProperty {
  readonly property: string
  readonly status: UndoStatus
  readonly backVersion: number
}

/** An item of a plan, before what else is in the graph is looked at. */
export interface Draft {
  readonly action: UndoAction
  readonly status: UndoStatus
  readonly reason: string
  readonly properties: ReadonlyArray<DraftProperty>
}

/** Says how one entity goes back. */
export const draftInverse = (facts: EntityFacts): Draft => {
  if (facts.isPurged) return unneeded("It was purged since: nothing of it is left.")
  if (facts.isDeleted) return draftDeleted(facts)
  if (facts.isCreated) return draftCreated(facts)
  return draftProperties(facts, "update", "Goes back to what it was before.")
}

/** The same item, kept as it is. */
export const inConflict = (draft: Draft, reason: string): Draft => ({
  ...draft,
  status: "conflict",
  reason,
  properties: draft.properties.map((property) =>
    property.status === "ready" ? { ...property, status: "conflict" } : property
  )
})

const unneeded = (reason: string): Draft => ({ action: "none", status: "unneeded", reason, properties: [] })

const draftDeleted = (facts: EntityFacts): Draft => {
  const { life } = facts
  if (life === null || life.later !== null)
    return unneeded(
      `It was deleted since${life?.later ? ` by ${life.later.by} (version ${life.later.version})` : ""}: nothing of it is left.`
    )
  if (life.before !== "live") {
    if (facts.other === null) return unneeded("It was made and deleted again: nothing of it is left.")
    const { by, version } = facts.other
    return {
      action: "restore",
      status: "ready",
      reason: `${by} changed it before it was deleted (version ${version}), so it comes back.`,
      properties: overwrittenOf(facts)
    }
  }
  const { properties } = draftProperties(facts, "restore", "")
  return {
    action: "restore",
    status: "ready",
    reason: `Comes back as it was before${keptWords(facts, properties)}.`,
    properties
  }
}

/** What the cause made goes, unless somebody else has put work into it: then it stays, with the last state of that work. */
const draftCreated = (facts: EntityFacts): Draft => {
  const { other } = facts
  if (other === null)
    return {
      action: "delete",
      status: "ready",
      reason: "It was made and nobody else has changed it: it is deleted.",
      properties: []
    }
  const overwritten = overwrittenOf(facts)
  const stays = `${other.by} changed it (version ${other.version}), so it stays`
  return overwritten.length === 0
    ? { action: "delete", status: "conflict", reason: `${stays}.`, properties: [] }
    : {
        action: "update",
        status: "ready",
        reason: `${stays}; what was overwritten afterwards goes back.`,
        properties: overwritten
      }
}

/** What the cause set over what somebody else had set since the cause first touched it. */
const overwrittenOf = ({ properties }: EntityFacts): ReadonlyArray<DraftProperty> =>
  properties
    .filter(({ isOverwritten, isSame, later }) => isOverwritten && !isSame && later === null)
    .map(({ backVersion, property }) => ({ property, backVersion, status: "ready" }))

const draftProperties = (facts: EntityFacts, action: "update" | "restore", reason: string): Draft => {
  const properties = facts.properties.map(({ property, backVersion, isSame, later }): DraftProperty => ({
    property,
    backVersion,
    status: isSame ? "unneeded" : later === null ? "ready" : "conflict"
  }))
  const has = (status: UndoStatus) => properties.some((property) => property.status === status)
  const kept = keptWords(facts, properties)
  if (has("ready"))
    return { action, status: "ready", reason: `${reason.replace(/\.$/, "")}${kept}.`, properties }
  if (has("conflict"))
    return { action, status: "conflict", reason: `It was changed again${kept}.`, properties }
  return { action: "none", status: "unneeded", reason: "It is what it was before.", properties }
}

/** What stands of somebody else, in a part of a sentence; empty when nothing does. */
const keptWords = (facts: EntityFacts, properties: ReadonlyArray<DraftProperty>): string => {
  const kept = properties.filter(({ status }) => status === "conflict").map(({ property }) => property)
  if (kept.length === 0) return ""
  const [newest] = facts.properties
    .filter(({ property }) => kept.includes(property))
    .flatMap(({ later }) => later ?? [])
    .toSorted((a, b) => b.version - a.version)
  const names = kept.slice(0, namesTold).map((name) => shortened(name, nameMaxChars))
  const more = kept.length > namesTold ? ` and ${kept.length - namesTold} more` : ""
  return `; ${newest?.by ?? "somebody else"} has set ${names.join(", ")}${more} since${newest ? ` (version ${newest.version})` : ""}, and that stays`
}

const namesTold = 5
const nameMaxChars = 60
