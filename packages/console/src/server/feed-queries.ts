/**
 * Reads of the feed: its newest events, what was missed, one event, and whom it woke.
 */
import type { Explanation } from "@tropism/api/explanations-api"
import type { Page } from "@tropism/api/page"
import type { GraphEvent } from "@tropism/domain/graph"
import type { Run } from "@tropism/domain/run"
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
    if (nextCursor === null) return missed
    place = Number(nextCursor)
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

export const eventQuery = (projectId: string, eventId: string) =>
  reading<GraphEvent>({
    projectId,
    key: ["event", eventId],
    path: `events/${encodeURIComponent(eventId)}`
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
