/**
 * What the live feed lists: graph events, and the beginnings and ends of runs, in one order of time.
 *
 * Pure. Events are told apart by their place in the feed, so that none stands there twice, whichever way it came.
 */
import type { GraphEvent } from "@tropism/domain/graph"
import { isJsonObject, type Properties } from "@tropism/domain/json"
import type { Run } from "@tropism/domain/run"

export type FeedItem =
  | { readonly kind: "event"; readonly id: string; readonly at: string; readonly event: GraphEvent }
  | {
      readonly kind: "run"
      readonly id: string
      readonly at: string
      readonly run: Run
      readonly op: "began" | "ended"
    }

export const placeOf = ({ position }: Pick<GraphEvent, "position">): number => position ?? 0

/** Events with others added, the newest first, each once, at most so many. */
export const withEvents = <A extends Pick<GraphEvent, "position">>(
  known: ReadonlyArray<A>,
  more: ReadonlyArray<A>,
  maxCount: number
): ReadonlyArray<A> => {
  const byPlace = new Map([...known, ...more].map((event) => [placeOf(event), event]))
  if (byPlace.size === known.length) return known
  return [...byPlace.values()].toSorted((a, b) => placeOf(b) - placeOf(a)).slice(0, maxCount)
}

/** The newest place up to which the events have no gap; undefined when there are none. */
export const gaplessPlace = (events: ReadonlyArray<Pick<GraphEvent, "position">>): number | undefined => {
  const places = events.map(placeOf)
  const gap = places.findLastIndex((place, index) => index > 0 && (places[index - 1] ?? 0) !== place + 1)
  return gap === -1 ? places[0] : places[gap]
}

/** One list of both, the newest first. Runs from before the oldest event are left out while older events are not read. */
export const feedItems = (
  events: ReadonlyArray<GraphEvent>,
  runs: ReadonlyArray<Run>
): ReadonlyArray<FeedItem> => {
  const oldest = events.at(-1)
  const since = oldest === undefined || placeOf(oldest) <= 1 ? "" : oldest.createdAt
  const ofRuns = runs.flatMap((run): ReadonlyArray<FeedItem> => [
    { kind: "run", id: `${run.id} began`, at: run.startedAt ?? run.createdAt, run, op: "began" },
    ...(run.completedAt === null
      ? []
      : [{ kind: "run", id: `${run.id} ended`, at: run.completedAt, run, op: "ended" } as const])
  ])
  const ofEvents = events.map((event): FeedItem => ({
    kind: "event",
    id: event.id,
    at: event.createdAt,
    event
  }))
  return [...ofEvents, ...ofRuns.filter(({ at }) => at >= since)].toSorted(byTime)
}

/** Of two at the same instant the later of the feed is above, and a run's end above its beginning. */
const byTime = (a: FeedItem, b: FeedItem): number => {
  if (a.at !== b.at) return a.at < b.at ? 1 : -1
  if (a.kind === "event" && b.kind === "event") return placeOf(b.event) - placeOf(a.event)
  if (a.kind === "run" && b.kind === "run") return a.op === b.op ? 0 : a.op === "ended" ? -1 : 1
  return a.kind === "run" ? -1 : 1
}

/** The key of what an event happened to, or the beginning of its id. */
export const subjectOf = ({ snapshot, entityId }: Pick<GraphEvent, "snapshot" | "entityId">): string => {
  const key = isJsonObject(snapshot) ? snapshot["key"] : undefined
  return typeof key === "string" ? key : entityId.slice(-12)
}

/** The properties that an event tells: those after the change; for a deletion the last. */
export const propertiesOf = ({ snapshot }: Pick<GraphEvent, "snapshot">): Properties => {
  const properties = isJsonObject(snapshot) ? snapshot["properties"] : undefined
  return isJsonObject(properties) ? properties : {}
}
