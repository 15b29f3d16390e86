/**
 * Reads relationships: one, many, their history, and what kinds an object has.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Reads only; the gateway writes. What is deleted is found like a deleted
 * object: in its history, and as of a version or an instant.
 */
import type { RelationshipKind } from "@tropism/domain/capability"
import type { Relationship, RelationshipVersion } from "@tropism/domain/graph"
import type { ObjectId, RelationshipId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { type Moment, relationshipHalves, relationshipsAt, upTo } from "./moments.ts"
import { relationshipColumns } from "./recording.ts"
import { type RelationshipRow, toRelationship, toVersion, type VersionRow } from "./rows.ts"

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
    /** The relationship as one version left it; undefined for the version that deleted it. */
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
    /** Which kinds of relationships begin or end at an object, or did at an instant. */
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
 * The ids of a page of what begins or ends at an object.
 *
 * **Details** They lie in two indexes, and those of what was deleted in two more: a page reads no more than its length of each, and
 * what relates the object to itself from one of them.
 */
const pageAround = (
  sql: SqlClient.SqlClient,
  id: ObjectId,
  asOf: Moment,
  narrowed: Statement.Fragment,
  limit: number
) => {
  const parts = (["from_id", "to_id"] as const).flatMap((name) => {
    // A range of one value and not an equation, as for neighbours: no other index has this order.
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
