/**
 * Reads of the graph: a search, what surrounds an object, and where its properties come from.
 */
import type { Page } from "@tropism/api/page"
import type { GraphObject, Neighborhood } from "@tropism/domain/graph"
import { reading } from "./reading.ts"

/** The objects in which all words occur, the best first. */
export const objectSearchQuery = (projectId: string, words: string, limit: number) =>
  reading<Page<GraphObject>>({
    projectId,
    key: ["objects", "search"],
    path: "objects",
    parameters: { query: words, limit }
  })

export const neighborsQuery = (projectId: string, objectId: string) =>
  reading<Neighborhood>({
    projectId,
    key: ["neighbors", objectId],
    path: `objects/${encodeURIComponent(objectId)}/neighbors`
  })
