/**
 * Finds what lies around an object, ring by ring, in two statements.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * A ring holds what the ring before is related to and no ring has had; each is
 * bounded, so a hub with a million relationships costs little more than the
 * answer. Of each object a bounded number of relationships is read, the newest;
 * where one has more, its ring may lack something, and nothing farther is told.
 */
import type { Direction, Neighborhood } from "@tropism/domain/graph"
import type { ObjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { graphLimits } from "../limits.ts"
import { type Moment, objectsAt, relationshipHalves, relationshipsAt } from "./moments.ts"
import { objectColumns, relationshipColumns } from "./recording.ts"
import { type ObjectRow, type RelationshipRow, toObject, toRelationship } from "./rows.ts"

export interface NeighborQuery {
  readonly depth: number
  readonly direction: Direction
  /** Only relationships of this type are followed. */
  readonly type?: string | undefined
  readonly asOf?: Moment
  /** Of the objects that are answered. */
  readonly limit: number
}

export class Neighborhoods extends Context.Service<
  Neighborhoods,
  {
    /** What lies around an object, the nearest first. */
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

      // Few are looked up by their ids; without this the planner may read all there are and join them.
      const onePerRow = sql.literal("offset 0")

      const objectsAround = Effect.fnUntraced(function* (id: ObjectId, query: NeighborQuery) {
        const { projectId } = yield* ProjectTransaction
        const { depth, direction, type, asOf, limit } = query
        const most = limit + graphLimits.neighborSpareRelationships
        const ofType = type === undefined ? sql`` : sql`and one.type = ${type}`
        const steps = followed[direction].flatMap(([here, there]) => {
          // A range of one value and not an equation: statistics full of hubs would let the planner look for the
          // order in an index of another column, and read all of it for an end that is no hub.
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

      /** The relationships that were followed between these. */
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
