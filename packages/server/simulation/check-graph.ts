/**
 * Checks the graph: one event per change, a history that folds to the present,
 * a feed without a gap, and nothing lost that anybody was told was done.
 */
import { byCodePoint } from "@tropism/domain/code-points"
import { canonicalJson, changedProperties } from "@tropism/domain/json"
import type { Authored, EntityRow, EventRow, VersionRow } from "./rows.ts"
import { type Checker, countsUp, unless } from "./remains.ts"

const isSame = (a: unknown, b: unknown): boolean => canonicalJson(a) === canonicalJson(b)

const authorOf = ({ actorType, actorId, approvedBy, runId, toolCallId, taskId }: Authored): string =>
  canonicalJson([actorType, actorId, approvedBy, runId, toolCallId, taskId])

/** Versions and events are one to one, and each says the same as the other. */
const eventPerChange: Checker = ({ events, relationshipVersions, versions: objectVersions }) => {
  const eventById = new Map(events.map((event) => [event.id, event]))
  const versions = [...objectVersions, ...relationshipVersions]
  return [
    ...unless(
      events.length === versions.length,
      `${versions.length} versions of objects and relationships have ${events.length} events`
    ),
    ...versions.flatMap((version) => {
      const event = eventById.get(version.eventId)
      const at = `version ${version.version} of ${version.objectId}`
      if (event === undefined) return [`${at} has no event`]
      return [
        ...unless(
          event.entityId === version.objectId &&
            event.version === version.version &&
            event.type === version.type &&
            isSame(event.snapshot.properties, version.properties),
          `the event of ${at} says something else`
        ),
        ...unless(authorOf(event) === authorOf(version), `the event of ${at} has another author`)
      ]
    })
  ]
}

const historyOf = (object: EntityRow, history: ReadonlyArray<VersionRow>): ReadonlyArray<string> => {
  const last = history.at(-1)
  return [
    ...unless(
      countsUp(history.map(({ version }) => version)),
      `the versions of ${object.type} ${object.id} are not contiguous`
    ),
    ...unless(
      last?.version === object.version && isSame(last.properties, object.properties),
      `the history of ${object.type} ${object.id} does not fold to its present state`
    ),
    ...unless(
      (last?.type === "deleted") === object.isDeleted,
      `${object.type} ${object.id} and its history disagree on its deletion`
    ),
    ...unless(
      // What was deleted comes back only by being created again.
      history.every(({ type }, index) => {
        const before = history[index - 1]?.type ?? "deleted"
        return (type === "created") === (before === "deleted")
      }),
      `${object.type} ${object.id} was created or deleted at the wrong place of its history`
    )
  ]
}

const historyFolds: Checker = ({ objects, relationships, relationshipVersions, versions }) => {
  const historyById = Map.groupBy([...versions, ...relationshipVersions], (version) => version.objectId)
  return [...objects, ...relationships].flatMap((entity) =>
    historyOf(entity, historyById.get(entity.id) ?? [])
  )
}

/** The names of the properties whose value changed from one version to the next, or who vouches for it. */
const changedBetween = (before: VersionRow, after: VersionRow): ReadonlyArray<string> => {
  const marks = [...before.untrusted, ...after.untrusted].filter(
    (name) => before.untrusted.includes(name) !== after.untrusted.includes(name)
  )
  return [...new Set([...changedProperties(before.properties, after.properties), ...marks])].toSorted(
    byCodePoint
  )
}

/** An update changes a value or who vouches for it, and its event says of what. */
const changesTold: Checker = ({ versions, events }) => {
  const eventById = new Map(events.map((event) => [event.id, event]))
  return [...Map.groupBy(versions, (version) => version.objectId).values()].flatMap((history) =>
    history.flatMap((version, index) => {
      const before = history[index - 1]
      if (version.type !== "updated" || before === undefined) return []
      const changed = changedBetween(before, version)
      const told = eventById.get(version.eventId)?.changedProperties
      return unless(
        changed.length > 0 && isSame(changed, told),
        `version ${version.version} of object ${version.objectId} changed ${changed.join(", ")} and told ${told?.join(", ")}`
      )
    })
  )
}

/** An object names the version that set each of its properties as its history does. */
const settersKept: Checker = ({ objects, versions }) => {
  const historyById = Map.groupBy(versions, (version) => version.objectId)
  return objects.flatMap((object) => {
    const setters: Record<string, number> = {}
    for (const [index, version] of (historyById.get(object.id) ?? []).entries()) {
      const before = historyById.get(object.id)?.[index - 1]
      for (const name of before === undefined ? [] : changedBetween(before, version))
        setters[name] = version.version
    }
    const expected = Object.fromEntries(Object.entries(setters).filter(([name]) => name in object.properties))
    const kept = object.propertyVersions ?? {}
    return unless(
      isSame(kept, expected),
      `object ${object.id} names ${JSON.stringify(kept)} as the setters of its properties, and its history ${JSON.stringify(expected)}`
    )
  })
}

/** Every event has its place in the feed, without a gap, and an entity's events in their order. */
const feedGapless: Checker = ({ events, lastPosition }) => {
  const places = events.map((event) => event.place).toSorted((a, b) => (a ?? 0) - (b ?? 0))
  const disordered = [...Map.groupBy(events, (event) => event.entityId).values()].filter((told) =>
    told.some((event, index) => index > 0 && (event.place ?? 0) <= (told[index - 1]?.place ?? 0))
  )
  return [
    ...unless(
      countsUp(places) && lastPosition === events.length,
      `the feed's places are ${places.join(", ")}, its last ${lastPosition}`
    ),
    ...disordered.map(
      (told) =>
        `versions ${told.map(({ version }) => version).join(", ")} of ${told[0]?.entityId} stand at the feed's places ${told.map(({ place }) => place).join(", ")}`
    )
  ]
}

/** What a person was told was done has happened, once. */
const acknowledgedKept: Checker = ({ acknowledged, events }) => {
  const eventById = new Map<string, EventRow>(events.map((event) => [event.id, event]))
  return acknowledged.changes.flatMap(({ change, applied }) => {
    if (applied.eventId === null) return []
    const event = eventById.get(applied.eventId)
    const entity = applied.entity.kind === "object" ? applied.entity.object : applied.entity.relationship
    return unless(
      event?.entityId === entity.id &&
        event.version === entity.version &&
        isSame(event.snapshot.properties, entity.properties),
      `a ${change.type} of ${entity.id} was acknowledged and is not there`
    )
  })
}

export const checkGraph = {
  eventPerChange,
  historyFolds,
  changesTold,
  settersKept,
  feedGapless,
  acknowledgedKept
}
