/**
 * Reads of the feed: its newest events, what was missed, one event, and whom it woke.
 */
import type { Explanation } from "@tropism/api/explanations-api"
import type { Page } from "@tropism/api/page"
import type { GraphEvent } from "@tropism/domain/graph"
import type { Run } from "@tropism/domain/run"
import { queryOptions } from "@tanstack/react-query"
import { Effect } from "effect"
import { limits } from "../limits.ts"
import { reading } from "./reading.ts"
import { call, inProject, queryText } from "./request.ts"

const readFeed = (projectId: string, parameters: Readonly<Record<string, number | string>>) =>
  call<Page<GraphEvent>>(inProject(projectId, `events${queryText(parameters)}`))

/** The newest events, the newest of them first. */
const readNewest = (projectId: string) =>
  Effect.map(readFeed(projectId, { order: "desc", limit: limits.rowsPerPage }), ({ items }) => items)

/** What came behind a place; the newest alone where that is very much. Without a place, the newest. */
export const readMissed = Effect.fnUntraced(function* (projectId: string, after: number | undefined) {
  if (after === undefined) return yield* readNewest(projectId)
  const missed: Array<GraphEvent> = []
  let place = after
  for (let page = 0; page < limits.maxMissedPages; page++) {
    const { items, nextCursor } = yield* readFeed(projectId, { after: place, limit: limits.rowsPerPage })
    missed.push(...items)
    const last = items.at(-1)?.position
    if (nextCursor === null || typeof last !== "number") return missed
    place = last
  }
  return yield* readNewest(projectId)
})

/** A page of what stands before a place. */
export const readBefore = (projectId: string, place: number) => {
  const count = Math.min(limits.rowsPerPage, place - 1)
  return Effect.map(readFeed(projectId, { after: place - 1 - count, limit: count }), ({ items }) => items)
}

/** The newest runs, for their beginnings and ends. */
export const liveRunsQuery = (projectId: string) =>
  reading<Page<Run>>({
    projectId,
    key: ["runs", "live"],
    path: "runs",
    parameters: { limit: limits.rowsPerPage },
    refreshMs: limits.refreshIntervalMs
  })

/** An event by its id or, as the feed counts it, by its place. */
export const eventQuery = (projectId: string, name: string) =>
  queryOptions({
    queryKey: [projectId, "event", name],
    queryFn: ({ signal }) => Effect.runPromise(readEvent(projectId, name), { signal })
  })

export const readEvent = Effect.fnUntraced(function* (projectId: string, name: string) {
  const place = /^[1-9]\d{0,14}$/.test(name) ? Number(name) : undefined
  if (place !== undefined) {
    const { items } = yield* readFeed(projectId, { after: place - 1, limit: 1 })
    const [event] = items
    if (event?.position === place) return event
  }
  return yield* call<GraphEvent>(inProject(projectId, `events/${encodeURIComponent(name)}`))
})

/** What an event was to each agent; read again, because an agent that was busy may wake later. */
export const explanationsQuery = (projectId: string, eventId: string) =>
  reading<Page<Explanation>>({
    projectId,
    key: ["explanations", eventId],
    path: `events/${encodeURIComponent(eventId)}/explanations`,
    parameters: { limit: limits.rowsPerPage },
    refreshMs: limits.wokenRefreshMs
  })
