/**
 * Reads of the graph: a search, an object with its versions, what surrounds it, and imports at work.
 */
import type { Page } from "@tropism/api/page"
import type { Import } from "@tropism/api/transfer-api"
import type { GraphObject, Neighborhood, ObjectVersion, Relationship } from "@tropism/domain/graph"
import type { Provenance } from "@tropism/domain/provenance"
import { queryOptions } from "@tanstack/react-query"
import { limits } from "../limits.ts"
import { reading } from "./reading.ts"

export const objectPath = (objectId: string, rest = ""): string =>
  `objects/${encodeURIComponent(objectId)}${rest}`

/** The objects in which all words occur, the best first. */
export const objectSearchQuery = (projectId: string, words: string, limit: number) =>
  reading<Page<GraphObject>>({
    projectId,
    key: ["objects", "search"],
    path: "objects",
    parameters: { query: words, limit }
  })

/** The objects with exactly this key; each type may have one. */
export const objectKeyQuery = (projectId: string, objectKey: string, limit: number) =>
  reading<Page<GraphObject>>({
    projectId,
    key: ["objects", "keyed"],
    path: "objects",
    parameters: { key: objectKey, limit }
  })

/** What is directly related to an object, as much as one page has. */
export const neighborsQuery = (projectId: string, objectId: string) =>
  reading<Neighborhood>({
    projectId,
    key: ["neighbors", objectId],
    path: objectPath(objectId, "/neighbors"),
    parameters: { limit: limits.rowsPerPage }
  })

/** Why each property has its value; also of a deleted object. */
export const provenanceQuery = (projectId: string, objectId: string) =>
  reading<Provenance>({
    projectId,
    key: ["provenance", objectId],
    path: objectPath(objectId, "/provenance")
  })

/** One version of an object and the one before it. */
export const versionQuery = (projectId: string, objectId: string, version: number) =>
  reading<Page<ObjectVersion>>({
    projectId,
    key: ["history", objectId],
    path: objectPath(objectId, "/history"),
    // Versions are cursors: the list goes on behind this one, the newest first.
    parameters: { cursor: String(version + 1), limit: 2 },
    isLasting: true
  })

/** The relationships that begin or end at an object, the newest first. */
export const relationshipsQuery = (projectId: string, objectId: string) =>
  reading<Page<Relationship>>({
    projectId,
    key: ["relationships", objectId],
    path: "relationships",
    parameters: { objectId, limit: limits.rowsPerPage }
  })

/** The newest imports, read again and again while one of them is at work. */
export const importsQuery = (projectId: string) =>
  queryOptions({
    ...reading<Page<Import>>({
      projectId,
      key: ["imports"],
      path: "imports",
      parameters: { limit: limits.importsShown }
    }),
    refetchInterval: ({ state }) =>
      state.data?.items.some(({ status }) => status === "running") === true ? limits.importRefreshMs : false
  })
