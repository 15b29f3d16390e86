/**
 * Reads objects: one, many, and how they came to be what they are.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Reads only; the gateway writes. What is deleted is not found here, except in
 * an object's history and as of a version or an instant at which it was there.
 */
import type { GraphObject, ObjectVersion } from "@tropism/domain/graph"
import type { ObjectId } from "@tropism/domain/ids"
import type { PropertyFilters } from "@tropism/domain/property-filter"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { graphLimits } from "../limits.ts"
import { type Moment, objectsAt, upTo } from "./moments.ts"
import { type ObjectOrder, ordering } from "./object-orders.ts"
import { filterConditions } from "./property-sql.ts"
import { objectColumns } from "./recording.ts"
import { type ObjectRow, toObject, toVersion, type VersionRow } from "./rows.ts"
import { asked, searchQuery } from "./search-words.ts"

export interface ObjectFilter {
  readonly type?: string | undefined
  readonly key?: string | undefined
  /** Words that all occur, or begin words that occur, in the object's key, type or properties. */
  readonly text?: string | undefined
  readonly where?: PropertyFilters | undefined
  readonly asOf?: Moment
}

/** An object and its place in the list, after which the list goes on. */
export interface Listed {
  readonly object: GraphObject
  readonly place: string
}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class Objects extends Context.Service<
  Objects,
  {
    readonly get: (id: ObjectId) => Read<GraphObject | undefined>
    /** The object as it was at an instant. */
    readonly asOf: (id: ObjectId, moment: Date) => Read<GraphObject | undefined>
    /** The object as one version left it; undefined for the version that deleted it. */
    readonly atVersion: (id: ObjectId, version: number) => Read<GraphObject | undefined>
    /** Objects in an order, after a place of that order. */
    readonly list: (
      filter: ObjectFilter,
      order: ObjectOrder,
      after: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Listed>>
    /** How many there are, counted up to a bound. */
    readonly count: (filter: ObjectFilter) => Read<number>
    /** Versions newest first, also of a deleted object; undefined when there is none. */
    readonly history: (
      id: ObjectId,
      beforeVersion: number | undefined,
      limit: number
    ) => Read<ReadonlyArray<ObjectVersion> | undefined>
    /** What one version of the object says. */
    readonly version: (id: ObjectId, version: number) => Read<ObjectVersion | undefined>
  }
>()("@tropism/server/graph/Objects") {
  static readonly layer = Layer.effect(
    Objects,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const columns = sql.literal(objectColumns)

      const get = Effect.fn("Objects.get")(function* (id: ObjectId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<ObjectRow>`
          select ${columns} from kb.graph_objects where id = ${id} and project_id = ${projectId} and deleted_at is null`
        return row && toObject(row)
      }, orDie)

      /** One version of an object, in the shape of the object. */
      const versionWhere = Effect.fnUntraced(function* (id: ObjectId, where: ReturnType<typeof upTo>) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<ObjectRow>`
          select object.id, object.type, object.key, was.properties, was.untrusted, was.version, was.actor_type, was.actor_id, object.created_at,
            was.created_at as updated_at
          from kb.graph_objects object cross join lateral (
            select * from kb.graph_object_versions where object_id = object.id and ${where}
          ) was
          where object.id = ${id} and object.project_id = ${projectId} and was.type <> 'deleted'`
        return row && toObject(row)
      }, orDie)

      const asOf = Effect.fn("Objects.asOf")((id: ObjectId, moment: Date) =>
        versionWhere(id, upTo(sql, moment))
      )

      const atVersion = Effect.fn("Objects.atVersion")((id: ObjectId, version: number) =>
        versionWhere(id, sql`version = ${version}::bigint`)
      )

      /** The objects that fit, unordered; undefined when a search has no word to look for. */
      const fitting = Effect.fnUntraced(function* ({ type, key, text, where, asOf }: ObjectFilter) {
        const { projectId } = yield* ProjectTransaction
        const query = text === undefined ? undefined : searchQuery(text)
        if (text !== undefined && query === undefined) return undefined
        const conditions = [
          ...(type === undefined ? [] : [sql`type = ${type}`]),
          ...(key === undefined ? [] : [sql`key = ${key}`]),
          ...(query === undefined ? [] : [sql`search @@ ${asked(sql, query)}`]),
          ...filterConditions(sql, where ?? [])
        ]
        const source = sql`${objectsAt(sql, asOf, projectId)} listed`
        return {
          query,
          source: conditions.length === 0 ? source : sql`${source} where ${sql.and(conditions)}`
        }
      })

      /** The newest of what fits, each with how well it fits. */
      const ranked = (source: Statement.Fragment, query: string) => sql`
        select *, ts_rank(search, ${asked(sql, query)}) as rank
        from (select * from ${source} order by id desc limit ${graphLimits.rankedObjects}) newest`

      const list = Effect.fn("Objects.list")(function* (
        filter: ObjectFilter,
        order: ObjectOrder,
        after: string | undefined,
        limit: number
      ) {
        const found = yield* fitting(filter)
        if (found === undefined) return []
        const { source, query } = found
        const { place, by, among, behind } = ordering(sql, order)
        const rows = yield* sql<PlacedRow>`
          select ${columns}, ${place} as place from (
            ${order === "relevance" ? ranked(source, query ?? "") : sql`select * from ${source}`}
          ) found where ${among} ${after === undefined ? sql`` : sql`and ${behind(after)}`} order by ${by} limit ${limit}`
        return rows.map((row): Listed => ({ object: toObject(row), place: row.place }))
      }, orDie)

      const count = Effect.fn("Objects.count")(function* (filter: ObjectFilter) {
        const found = yield* fitting(filter)
        if (found === undefined) return 0
        const row = yield* Effect.flatMap(
          sql<{ count: number }>`
            select count(*)::int as count from (select 1 from ${found.source} limit ${graphLimits.countedObjects}) found`,
          onlyRow
        )
        return row.count
      }, orDie)

      const history = Effect.fn("Objects.history")(function* (
        id: ObjectId,
        beforeVersion: number | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const [known] =
          yield* sql`select 1 from kb.graph_objects where id = ${id} and project_id = ${projectId} and purged_at is null`
        if (!known) return undefined
        const rows = yield* sql<VersionRow>`
          select * from kb.graph_object_versions where object_id = ${id} and project_id = ${projectId}
            and version < ${beforeVersion ?? 2_147_483_647}::bigint order by version desc limit ${limit}`
        return rows.map(toVersion)
      }, orDie)

      const version = Effect.fn("Objects.version")(function* (id: ObjectId, number: number) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<VersionRow>`
          select * from kb.graph_object_versions where object_id = ${id} and project_id = ${projectId} and version = ${number}`
        return row && toVersion(row)
      }, orDie)

      return Objects.of({ get, asOf, atVersion, list, count, history, version })
    })
  )
}

interface PlacedRow extends ObjectRow {
  readonly place: string
}
