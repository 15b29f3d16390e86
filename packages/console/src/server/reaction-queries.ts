/**
 * Reads of how agents react: what is pending, and why an event did or did not wake one.
 */
import type { Explanation } from "@tropism/api/explanations-api"
import type { Page } from "@tropism/api/page"
import type { GraphEvent } from "@tropism/domain/graph"
import type { PendingEvent } from "@tropism/domain/processing"
import { Effect } from "effect"
import { limits } from "../limits.ts"
import { agentPath } from "./agent-queries.ts"
import { Problem } from "./problem.ts"
import { reading } from "./reading.ts"
import { call, type Failure, inProject, queryText } from "./request.ts"

export const pendingEventsQuery = (projectId: string, agentId: string) =>
  reading<Page<PendingEvent>>({
    projectId,
    key: ["pending-events", agentId],
    path: agentPath(agentId, "/pending-events"),
    parameters: { limit: limits.rowsPerPage },
    refreshMs: limits.refreshIntervalMs
  })

/** The newest events of the graph, to choose from. */
export const newestEventsQuery = (projectId: string) =>
  reading<Page<GraphEvent>>({
    projectId,
    key: ["newest-events"],
    path: "events",
    parameters: { limit: limits.eventsToChoose, order: "desc" }
  })

/** The event that has this number in the feed. */
export const readEventAt = (projectId: string, number: number): Effect.Effect<GraphEvent, Failure> =>
  call<Page<GraphEvent>>(inProject(projectId, `events${queryText({ after: number - 1, limit: 1 })}`)).pipe(
    Effect.flatMap(({ items }) => {
      const event = items.find(({ position }) => position === number)
      return event === undefined
        ? Effect.fail(new Problem({ status: 404, document: { detail: `Event not found: ${number}` } }))
        : Effect.succeed(event)
    })
  )

export const explanationQuery = (projectId: string, agentId: string, eventId: string) =>
  reading<Explanation>({
    projectId,
    key: ["explanation", agentId, eventId],
    path: agentPath(agentId, "/explain"),
    parameters: { eventId }
  })
