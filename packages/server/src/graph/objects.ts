/**
 * Reads objects: one, many, and their history.
 *
 * Deleted objects appear only in an object's history, and as of a version or an instant at which they existed.
 */
import type { GraphObject, ObjectVersion } from "@tropism/domain/graph"
import type { ObjectId } from "@tropism/domain/ids"
import { namedObjectBounds } from "@tropism/domain/named-object"
import { type PropertyFilters, pathSteps, type PropertyFilter } from "@tropism/domain/property-filter"
import { Context, Effect, Layer, type Schema } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { graphLimits } from "../limits.ts"
import { type Moment, objectsAt, upTo } from "./moments.ts"
import { objectColumns, type ObjectRow, toObject, toVersion, type VersionRow } from "./recording.ts"

export interface ObjectFilter {
  readonly type?: string | undefined
  readonly key?: string | undefined
  /** Words, or beginnings of words, that all occur in the object's key, type or properties. */
  readonly text?: string | undefined
  readonly where?: PropertyFilters | undefined
  readonly asOf?: Moment
}

/** An object with its cursor position. */
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
    /** The object at one version; undefined for the version that deleted it. */
    readonly atVersion: (id: ObjectId, version: number) => Read<GraphObject | undefined>
    /** Lists objects in an order, after a cursor position. */
    readonly list: (
      filter: ObjectFilter,
      order: ObjectOrder,
      after: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Listed>>
    /** Counts matching objects up to a bound. */
    readonly count: (filter: ObjectFilter) => Read<number>
    /** Versions newest first, also of a deleted object; undefined when there is none. */
    readonly history: (
      id: ObjectId,
      beforeVersion: number | undefined,
      limit: number
    ) => Read<ReadonlyArray<ObjectVersion> | undefined>
    /** Returns one version of the object. */
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

      /** Reads one version in the shape of the object. */
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

      /** The matching objects, unordered; undefined when a search contains no word. */
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

      /** The newest matching objects, each with its rank. */
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

// Translates a property filter to SQL with every value a bound parameter.
//
// Same semantics as `matches` of `domain/property-filter`; a test proves it on many values. No expression may fail on any
// document, because the database may evaluate it before it filters by project.

/** Returns the conditions, for a statement with a column `properties`. */
export const filterConditions = (
  sql: SqlClient.SqlClient,
  filters: PropertyFilters
): ReadonlyArray<Statement.Fragment> => filters.map((filter) => condition(sql, filter))

const condition = (sql: SqlClient.SqlClient, { property, op, value }: PropertyFilter): Statement.Fragment => {
  const steps = pathSteps(property)
  // Text steps one by one: lists are not traversed, and a missing value is null.
  const found = steps.reduce<Statement.Fragment>(
    (at, step) => sql`${at} -> ${step}::text`,
    sql.literal("properties")
  )
  switch (op) {
    case "exists":
      return value === true ? sql`(${found}) is not null` : sql`(${found}) is null`
    case "ne":
      return sql`(${found}) is distinct from ${json(sql, value)}`
    case "eq":
      return equals(sql, found, steps, value)
    case "in":
      return Array.isArray(value) && value.length > 0
        ? sql.or(value.map((choice) => equals(sql, found, steps, choice)))
        : sql.literal("false")
    case "contains":
      return contains(sql, found, value)
    case "startsWith":
      return sql`(jsonb_typeof(${found}) = 'string' and starts_with((${found}) #>> '{}', ${String(value)}))`
    default:
      return ordered(sql, found, op, value)
  }
}

/** Adds containment, which equality implies and which has an index. */
const equals = (
  sql: SqlClient.SqlClient,
  found: Statement.Fragment,
  steps: ReadonlyArray<string>,
  value: Schema.Json
) => {
  const document = steps.reduceRight<Schema.Json>((inner, step) => Object.fromEntries([[step, inner]]), value)
  return sql`(properties @> ${json(sql, document)} and (${found}) = ${json(sql, value)})`
}

const contains = (sql: SqlClient.SqlClient, found: Statement.Fragment, value: Schema.Json) => {
  const inList = sql`exists (
    select from jsonb_array_elements(case jsonb_typeof(${found}) when 'array' then ${found} else '[]' end) item
    where item = ${json(sql, value)})`
  return typeof value === "string"
    ? sql`(${inList} or (jsonb_typeof(${found}) = 'string' and strpos((${found}) #>> '{}', ${value}) > 0))`
    : inList
}

const comparisons = { gt: ">", gte: ">=", lt: "<", lte: "<=" } as const

const ordered = (
  sql: SqlClient.SqlClient,
  found: Statement.Fragment,
  op: keyof typeof comparisons,
  value: Schema.Json
) => {
  const compares = sql.literal(comparisons[op])
  return typeof value === "string"
    ? sql`(jsonb_typeof(${found}) = 'string' and ((${found}) #>> '{}') collate "C" ${compares} ${value} collate "C")`
    : sql`(jsonb_typeof(${found}) = 'number' and (${found}) ${compares} ${json(sql, value)})`
}

const json = (sql: SqlClient.SqlClient, value: Schema.Json) => sql`${JSON.stringify(value)}::text::jsonb`

// The list orders and their cursor positions.
//
// A position holds the values that its order compares, so a list continues even when the object at that position is gone. Every
// order but `relevance` has an index.

/** Sort order: newest, last changed, best match, or alphabetical. */
export type ObjectOrder = "createdAt" | "updatedAt" | "relevance" | "name" | "type"

const id = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

/** Position format: an instant in microseconds and an id. */
export const instantPlace = new RegExp(`^\\d{1,17}~${id}$`)

const namePlace = new RegExp(`^[A-Za-z][A-Za-z0-9_.-]{0,99}~[A-Za-z0-9_-]{0,540}~${id}$`)

/** Position format of each order. */
export const placePatterns: Readonly<Record<ObjectOrder, RegExp>> = {
  createdAt: new RegExp(`^${id}$`),
  updatedAt: instantPlace,
  relevance: new RegExp(`^\\d\\.?\\d{0,12}(e-\\d{1,2})?~${id}$`),
  name: namePlace,
  type: namePlace
}

/** Parts of a statement that lists objects. */
export interface Ordering {
  /** The position of a row. */
  readonly place: Statement.Fragment
  readonly by: Statement.Fragment
  /** A condition that is true of every row; the order's partial index requires it. */
  readonly among: Statement.Fragment
  /** Whether a row comes after a position. */
  readonly behind: (place: string) => Statement.Fragment
}

export const ordering = (sql: SqlClient.SqlClient, order: ObjectOrder): Ordering => {
  switch (order) {
    case "createdAt":
      return {
        place: sql.literal("id::text"),
        by: sql.literal("id desc"),
        among: sql.literal("true"),
        behind: (place) => sql`id < ${place}::uuid`
      }
    case "updatedAt":
      return {
        place: sql.literal("(extract(epoch from updated_at) * 1000000)::bigint || '~' || id"),
        by: sql.literal("updated_at desc, id desc"),
        among: sql.literal("true"),
        behind: (place) => {
          const [micros, id] = place.split("~")
          return sql`(updated_at, id) < ('epoch'::timestamptz + ${micros}::bigint * interval '1 microsecond', ${id}::uuid)`
        }
      }
    case "relevance":
      return {
        place: sql.literal("rank || '~' || id"),
        by: sql.literal("rank desc, id desc"),
        among: sql.literal("true"),
        behind: (place) => {
          const [rank, id] = place.split("~")
          // A forged position may be closer to zero than PostgreSQL accepts for a `real`.
          return sql`(rank::float8, id) < (${Math.fround(Number(rank))}::float8, ${id}::uuid)`
        }
      }
    case "name":
      return {
        place: sql.literal(nameAndPlace),
        by: sql.literal(`${name}, id`),
        among: sql.literal(isNamed),
        behind: (place) => {
          const { known, id } = nameIn(place)
          return sql`(${sql.literal(name)}, id) > (${known}, ${id}::uuid)`
        }
      }
    case "type":
      return {
        place: sql.literal(nameAndPlace),
        by: sql.literal(`type, ${name}, id`),
        among: sql.literal(isNamed),
        behind: (place) => {
          const { type, known, id } = nameIn(place)
          return sql`(type, ${sql.literal(name)}, id) > (${type}, ${known}, ${id}::uuid)`
        }
      }
  }
}

/** The expression of the indexes. */
const name = `kb.sorting_name(key, properties) collate "C"`

const isNamed = "kb.sorting_name(key, properties) is not null"

/** A name may contain any character, so a position holds it as base64url. */
const nameAndPlace = `type || '~' || translate(encode(convert_to(${name}, 'UTF8'), 'base64'), E'+/=\\n', '-_') || '~' || id`

const nameIn = (place: string) => {
  const [type, base64 = "", id] = place.split("~")
  // A forged cursor may contain U+0000, the one character that PostgreSQL text cannot hold.
  return { type, known: Buffer.from(base64, "base64url").toString("utf8").replaceAll("\0", ""), id }
}

// The display name of an object inside another query: one primary-key lookup per row.

/** Returns a `NamedObject`, or null when the project has no such object. */
export const objectNamed = (
  sql: SqlClient.SqlClient,
  projectId: Statement.Fragment,
  id: Statement.Fragment
): Statement.Fragment => {
  const said = (property: string) =>
    sql`case jsonb_typeof(named.properties -> ${property}) when 'string' then nullif(btrim(named.properties ->> ${property}), '') end`
  return sql`(
    select jsonb_build_object('objectId', named.id, 'type', named.type,
      'name', left(coalesce(named.key, ${said("name")}, ${said("title")}, ${said("label")}), ${namedObjectBounds.nameMaxChars}))
    from kb.graph_objects named where named.id = ${id} and named.project_id = ${projectId})`
}

// Turns typed text into a full-text query that always parses.
//
// Words are split where `kb.search_words` splits them. Only the database lower-cases, because JavaScript differs, for instance
// for `Σ` and `İ`. Only words enter the query, so no operator can come from outside.

const separators =
  // oxlint-disable-next-line no-control-regex -- control characters part words
  /[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u00bf\u00d7\u00f7\u2000-\u206f\u3000-\u3020]+/u

/** Returns the words of a text. */
export const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .split(separators)
    .filter((word) => word !== "")
    .slice(0, graphLimits.searchWords)

/** Returns a query for all words or their beginnings; undefined when there is no word. */
export const searchQuery = (text: string): string | undefined => {
  const words = wordsOf(text)
  return words.length === 0 ? undefined : words.map((word) => `'${word}':*`).join(" & ")
}

/** Returns the query, lower-cased like the indexed text. */
export const asked = (sql: SqlClient.SqlClient, query: string) =>
  sql`to_tsquery('simple', lower(${query}::text))`
