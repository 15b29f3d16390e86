/**
 * Reads relationships: one, many, their history, and the kinds around an object.
 *
 * Deleted ones appear only in the history, and as of a version or an instant.
 */
import type { RelationshipKind } from "@tropism/domain/capability"
import type { Relationship, RelationshipVersion, Direction, Neighborhood } from "@tropism/domain/graph"
import type { ObjectId, RelationshipId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { graphLimits } from "../limits.ts"
import { type Moment, relationshipHalves, relationshipsAt, upTo, objectsAt } from "./moments.ts"
import {
  relationshipColumns,
  type RelationshipRow,
  toRelationship,
  toVersion,
  type VersionRow,
  objectColumns,
  type ObjectRow,
  toObject
} from "./recording.ts"

export interface RelationshipFilter {
  readonly type?: string | undefined
  readonly fromId?: ObjectId | undefined
  readonly toId?: ObjectId | undefined
  /** Either end. */
  readonly objectId?: ObjectId | undefined
  readonly asOf?: Moment
}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class Relationships extends Context.Service<
  Relationships,
  {
    readonly get: (id: RelationshipId) => Read<Relationship | undefined>
    /** The relationship as it was at an instant. */
    readonly asOf: (id: RelationshipId, moment: Date) => Read<Relationship | undefined>
    /** The relationship at one version; undefined for the version that deleted it. */
    readonly atVersion: (id: RelationshipId, version: number) => Read<Relationship | undefined>
    /** Relationships newest first, after the one whose id is `before`. */
    readonly list: (
      filter: RelationshipFilter,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Relationship>>
    /** Versions newest first, also of a deleted relationship; undefined when there is none. */
    readonly history: (
      id: RelationshipId,
      beforeVersion: number | undefined,
      limit: number
    ) => Read<ReadonlyArray<RelationshipVersion> | undefined>
    /** The kinds of relationships that begin or end at an object, now or at an instant. */
    readonly kindsAround: (id: ObjectId, asOf?: Moment) => Read<ReadonlyArray<RelationshipKind>>
  }
>()("@tropism/server/graph/Relationships") {
  static readonly layer = Layer.effect(
    Relationships,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const columns = sql.literal(relationshipColumns)

      const get = Effect.fn("Relationships.get")(function* (id: RelationshipId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<RelationshipRow>`
          select ${columns} from kb.graph_relationships where id = ${id} and project_id = ${projectId} and deleted_at is null`
        return row && toRelationship(row)
      }, orDie)

      const versionWhere = Effect.fnUntraced(function* (id: RelationshipId, where: ReturnType<typeof upTo>) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<RelationshipRow>`
          select one.id, one.type, one.from_id, one.to_id, was.properties, was.untrusted, was.version, was.actor_type, was.actor_id, one.created_at,
            was.created_at as updated_at
          from kb.graph_relationships one cross join lateral (
            select * from kb.graph_relationship_versions where relationship_id = one.id and ${where}
          ) was
          where one.id = ${id} and one.project_id = ${projectId} and was.type <> 'deleted'`
        return row && toRelationship(row)
      }, orDie)

      const asOf = Effect.fn("Relationships.asOf")((id: RelationshipId, moment: Date) =>
        versionWhere(id, upTo(sql, moment))
      )

      const atVersion = Effect.fn("Relationships.atVersion")((id: RelationshipId, version: number) =>
        versionWhere(id, sql`version = ${version}::bigint`)
      )

      const list = Effect.fn("Relationships.list")(function* (
        { type, fromId, toId, objectId, asOf }: RelationshipFilter,
        before: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const narrowed = [
          sql`project_id = ${projectId}`,
          ...(type === undefined ? [] : [sql`type = ${type}`]),
          ...(fromId === undefined ? [] : [sql`from_id = ${fromId}`]),
          ...(toId === undefined ? [] : [sql`to_id = ${toId}`]),
          ...(before === undefined ? [] : [sql`id < ${before}::uuid`])
        ]
        const isEndGiven = objectId === undefined || objectId === fromId || objectId === toId
        const where = isEndGiven
          ? sql.and(narrowed)
          : sql`id = any(array(${pageAround(sql, objectId, asOf, sql.and(narrowed), limit)}))`
        const rows = yield* sql<RelationshipRow>`
          select ${columns} from ${relationshipsAt(sql, asOf, projectId)} listed where ${where} order by id desc limit ${limit}`
        return rows.map(toRelationship)
      }, orDie)

      const history = Effect.fn("Relationships.history")(function* (
        id: RelationshipId,
        beforeVersion: number | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<VersionRow>`
          select * from kb.graph_relationship_versions where relationship_id = ${id} and project_id = ${projectId}
            and version < ${beforeVersion ?? 2_147_483_647}::bigint order by version desc limit ${limit}`
        if (rows.length > 0) return rows.map(toVersion)
        const [known] =
          yield* sql`select 1 from kb.graph_relationships where id = ${id} and project_id = ${projectId}`
        return known ? [] : undefined
      }, orDie)

      const kindsAround = Effect.fn("Relationships.kindsAround")(function* (id: ObjectId, asOf?: Moment) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<RelationshipKind>`
          select distinct one.type, start.type as from_type, finish.type as to_type from ${relationshipsAt(sql, asOf, projectId)} one
          join kb.graph_objects start on start.id = one.from_id join kb.graph_objects finish on finish.id = one.to_id
          where one.from_id = ${id} or one.to_id = ${id}
          order by 1, 2, 3`
      }, orDie)

      return Relationships.of({ get, asOf, atVersion, list, history, kindsAround })
    })
  )
}

/**
 * Returns the ids of a page of relationships at an object.
 *
 * **Details** Two indexes hold them, and two more hold the deleted ones. A page reads at most its length from each, and
 * relationships of the object with itself from only one.
 */
const pageAround = (
  sql: SqlClient.SqlClient,
  id: ObjectId,
  asOf: Moment,
  narrowed: Statement.Fragment,
  limit: number
) => {
  const parts = (["from_id", "to_id"] as const).flatMap((name) => {
    // A range of one value instead of an equation, as for neighbours: it excludes every index without this order.
    const end = sql.literal(name)
    const once = name === "from_id" ? sql`` : sql`and from_id <> ${id}`
    return relationshipHalves(sql, asOf).map(
      ({ rows, wasThere }) => sql`(
        select id from kb.graph_relationships one
        where ${end} >= ${id} and ${end} <= ${id} ${once} and ${narrowed} and ${rows} and ${wasThere}
        order by ${end} desc, id desc limit ${limit})`
    )
  })
  return sql`select id from (${sql.join(" union all ", false)(parts)}) found order by id desc limit ${limit}`
}

// Finds the neighbourhood of an object, ring by ring, in two statements.
//
// A ring holds the objects related to the ring before that no earlier ring has. Rings are bounded, so a hub with a million
// relationships costs little more than the result. Of each object only the newest relationships are read, up to a bound; where
// an object has more, its ring may be incomplete and no farther ring is returned.

export interface NeighborQuery {
  readonly depth: number
  readonly direction: Direction
  /** Only relationships of this type are followed. */
  readonly type?: string | undefined
  readonly asOf?: Moment
  /** Maximum number of returned objects. */
  readonly limit: number
}

export class Neighborhoods extends Context.Service<
  Neighborhoods,
  {
    /** Returns the neighbourhood of an object, nearest first. */
    readonly around: (
      id: ObjectId,
      query: NeighborQuery
    ) => Effect.Effect<Neighborhood, never, ProjectTransaction>
  }
>()("@tropism/server/graph/Neighborhoods") {
  static readonly layer = Layer.effect(
    Neighborhoods,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const followed = {
        out: [["from_id", "to_id"]],
        in: [["to_id", "from_id"]],
        both: [
          ["from_id", "to_id"],
          ["to_id", "from_id"]
        ]
      } as const satisfies Record<Direction, unknown>

      // Few are looked up by id; without this the planner may read and join all rows.
      const onePerRow = sql.literal("offset 0")

      const objectsAround = Effect.fnUntraced(function* (id: ObjectId, query: NeighborQuery) {
        const { projectId } = yield* ProjectTransaction
        const { depth, direction, type, asOf, limit } = query
        const most = limit + graphLimits.neighborSpareRelationships
        const ofType = type === undefined ? sql`` : sql`and one.type = ${type}`
        const steps = followed[direction].flatMap(([here, there]) => {
          // A range of one value instead of an equation: with statistics full of hubs the planner would take the order from an index of
          // another column and read all of it for an end that is no hub.
          const end = sql.literal(`one.${here}`)
          return relationshipHalves(sql, asOf).map(
            ({ rows, wasThere }) => sql`(
            select id, count(*) over () > ${most}::int as is_cut from (
              select one.${sql.literal(there)} as id from kb.graph_relationships one
              where one.project_id = ${projectId} and ${end} >= near.id and ${end} <= near.id ${ofType} and ${rows} and ${wasThere}
              order by ${end} desc, one.id desc limit ${most + 1}) newest)`
          )
        })
        const ringNames = Array.from({ length: depth + 1 }, (_, distance) => sql.literal(`ring${distance}`))
        const stepNames = Array.from({ length: depth }, (_, index) => sql.literal(`step${index + 1}`))
        const rings = ringNames.slice(1).map((ring, index) => {
          const had = sql.join(
            " union all ",
            false
          )(ringNames.slice(0, index + 1).map((name) => sql`select id from ${name}`))
          const step = stepNames[index] ?? ring
          return sql`, ${step} as materialized (
            select far.id, far.is_cut from ${ringNames[index] ?? ring} near cross join lateral (${sql.join(" union all ", false)(steps)}) far
          ), ${ring} as materialized (select distinct id from ${step} where id not in (${had}) limit ${limit + 1})`
        })
        const reached = sql.join(
          " union all ",
          false
        )(ringNames.slice(1).map((ring, index) => sql`select id, ${index + 1}::int as distance from ${ring}`))
        const cuts = sql.join(
          " union all ",
          false
        )(stepNames.map((step, index) => sql`select ${index + 1}::int as distance from ${step} where is_cut`))
        return yield* sql<ObjectRow & { readonly distance: number; readonly cutAt: number | null }>`
          with ring0 as materialized (select ${id}::uuid as id) ${sql.join(" ", false)(rings)}
          select found.*, distance, cut_at from (select min(distance) as cut_at from (${cuts}) cut) cut cross join (
            select * from (${reached}) reached order by distance, id limit ${limit + 1}
          ) nearest cross join lateral (
            select ${sql.literal(objectColumns)} from ${objectsAt(sql, asOf, projectId)} object where object.id = nearest.id ${onePerRow}
          ) found order by distance, found.id`
      })

      /** The followed relationships between these objects. */
      const relationshipsAmong = Effect.fnUntraced(function* (
        nodes: ReadonlyArray<{ readonly id: ObjectId; readonly distance: number }>,
        { depth, direction, type, asOf }: NeighborQuery
      ) {
        const { projectId } = yield* ProjectTransaction
        const near = sql.literal(
          { out: "start.distance", in: "finish.distance", both: "least(start.distance, finish.distance)" }[
            direction
          ]
        )
        const ofType = type === undefined ? sql`` : sql`and one.type = ${type}`
        const halves = relationshipHalves(sql, asOf).map(
          ({ rows, wasThere }) => sql`
            select one.id from (
              select one.id from node start
              join kb.graph_relationships one on one.from_id = start.id and one.project_id = ${projectId} and ${rows} ${ofType}
              join node finish on finish.id = one.to_id
              where ${near} < ${depth}::int offset 0
            ) one where ${wasThere}`
        )
        return yield* sql<RelationshipRow>`
          with node as materialized (
            select * from jsonb_to_recordset(${JSON.stringify(nodes)}::text::jsonb) as node(id uuid, distance int)
          )
          select found.* from (
            select id from (${sql.join(" union all ", false)(halves)}) one
            order by id desc limit ${graphLimits.neighborRelationships + 1}
          ) followed cross join lateral (
            select ${sql.literal(relationshipColumns)} from ${relationshipsAt(sql, asOf, projectId)} one where one.id = followed.id ${onePerRow}
          ) found order by found.id desc`
      })

      const around = Effect.fn("Neighborhoods.around")(function* (id: ObjectId, query: NeighborQuery) {
        const found = yield* objectsAround(id, query)
        const cutAt = found[0]?.cutAt ?? null
        const nearest = cutAt === null ? found : found.filter(({ distance }) => distance <= cutAt)
        const objects = nearest
          .slice(0, query.limit)
          .map((row) => ({ ...toObject(row), distance: row.distance }))
        const relationships = yield* relationshipsAmong(
          [{ id, distance: 0 }, ...objects.map(({ id, distance }) => ({ id, distance }))],
          query
        )
        return {
          objects,
          relationships: relationships.slice(0, graphLimits.neighborRelationships).map(toRelationship),
          truncated:
            cutAt !== null ||
            found.length > query.limit ||
            relationships.length > graphLimits.neighborRelationships
        }
      }, orDie)

      return Neighborhoods.of({ around })
    })
  )
}
