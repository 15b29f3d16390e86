/**
 * Reads objects and their relationships for the picture, page by page, up to a bound.
 */
import type { Page } from "@tropism/api/page"
import type { GraphObject, Relationship } from "@tropism/domain/graph"
import { Effect } from "effect"
import { limits } from "../limits.ts"
import { call, inProject, type Parameters, queryText } from "../server/request.ts"

export interface LoadedPart {
  readonly objects: ReadonlyArray<GraphObject>
  readonly relationships: ReadonlyArray<Relationship>
}

/** **Details** `onPart` hears each page. Both lists are read at once, so a relationship may come before its ends. Answers whether all was read. */
export const loadGraph = Effect.fnUntraced(function* (
  projectId: string,
  filters: Parameters,
  onPart: (part: LoadedPart) => void
) {
  const objects = pages<GraphObject>(
    (cursor) =>
      inProject(projectId, `objects${queryText({ ...filters, limit: limits.rowsPerPage, cursor })}`),
    limits.maxDrawnObjects,
    (objects) => onPart({ objects, relationships: [] })
  )
  const relationships = pages<Relationship>(
    (cursor) =>
      inProject(
        projectId,
        `relationships${queryText({ asOf: filters["asOf"], limit: limits.rowsPerPage, cursor })}`
      ),
    limits.maxDrawnRelationships,
    (relationships) => onPart({ objects: [], relationships })
  )
  const [hasAllObjects, hasAllRelationships] = yield* Effect.all([objects, relationships], {
    concurrency: "unbounded"
  })
  return { hasAllObjects, hasAllRelationships }
})

const pages = <A>(
  addressOf: (cursor: string | undefined) => string,
  most: number,
  onItems: (items: ReadonlyArray<A>) => void
) =>
  Effect.gen(function* () {
    let cursor: string | undefined
    for (let count = 0; count < most;) {
      const page = yield* call<Page<A>>(addressOf(cursor))
      onItems(page.items)
      if (page.nextCursor === null) return true
      count += page.items.length
      cursor = page.nextCursor
    }
    return false
  })
