/**
 * Reads the graph: objects, their history, and how they hang together.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Reads only; the gateway writes. What is deleted is not found here, except in
 * an object's history, which is kept for ever.
 */
import type { GraphObject, ObjectVersion, Relationship } from "@tropism/domain/graph"
import type { ObjectId, RelationshipId } from "@tropism/domain/ids"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import {
  type ObjectRow,
  type RelationshipRow,
  toObject,
  toRelationship,
  toVersion,
  type VersionRow
} from "./rows.ts"

export interface ObjectFilter {
  readonly type?: string | undefined
  readonly key?: string | undefined
  /** Words that all occur in the object's key or properties. */
  readonly text?: string | undefined
}

export interface RelationshipFilter {
  readonly type?: string | undefined
  readonly objectId?: ObjectId | undefined
}

/** What lies around an object. */
export interface Neighborhood {
  readonly objects: ReadonlyArray<GraphObject>
  readonly relationships: ReadonlyArray<Relationship>
}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class Objects extends Context.Service<
  Objects,
  {
    readonly get: (id: ObjectId) => Read<GraphObject | undefined>
    readonly getRelationship: (id: RelationshipId) => Read<Relationship | undefined>
    /** Objects newest first, after the one whose id is `before`. */
    readonly list: (
      filter: ObjectFilter,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<GraphObject>>
    readonly count: (filter: ObjectFilter) => Read<number>
    readonly listRelationships: (
      filter: RelationshipFilter,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Relationship>>
    /** Versions newest first, also of a deleted object; undefined when there never was one. */
    readonly history: (
      id: ObjectId,
      beforeVersion: number | undefined,
      limit: number
    ) => Read<ReadonlyArray<ObjectVersion> | undefined>
    /** The object as it was at one version. */
    readonly version: (id: ObjectId, version: number) => Read<ObjectVersion | undefined>
    readonly neighbors: (id: ObjectId, depth: number, limit: number) => Read<Neighborhood>
  }
>()("@tropism/server/graph/Objects") {
  static readonly layer = Layer.effect(
    Objects,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const conditions = Effect.fnUntraced(function* ({ type, key, text }: ObjectFilter) {
        const { projectId } = yield* ProjectTransaction
        return [
          sql`project_id = ${projectId} and deleted_at is null`,
          ...(type === undefined ? [] : [sql`type = ${type}`]),
          ...(key === undefined ? [] : [sql`key = ${key}`]),
          ...wordsOf(text).map(
            (word) => sql`position(${word} in lower(coalesce(key, '') || ' ' || properties::text)) > 0`
          )
        ]
      })

      const get = Effect.fn("Objects.get")(function* (id: ObjectId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<ObjectRow>`
          select * from kb.graph_objects where id = ${id} and project_id = ${projectId} and deleted_at is null`
        return row && toObject(row)
      }, orDie)

      const getRelationship = Effect.fn("Objects.getRelationship")(function* (id: RelationshipId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<RelationshipRow>`
          select * from kb.graph_relationships where id = ${id} and project_id = ${projectId} and deleted_at is null`
        return row && toRelationship(row)
      }, orDie)

      const list = Effect.fn("Objects.list")(function* (
        filter: ObjectFilter,
        before: string | undefined,
        limit: number
      ) {
        const where = yield* conditions(filter)
        const rows = yield* sql<ObjectRow>`
          select * from kb.graph_objects where ${sql.and(before === undefined ? where : [...where, sql`id < ${before}`])}
          order by id desc limit ${limit}`
        return rows.map(toObject)
      }, orDie)

      const count = Effect.fn("Objects.count")(function* (filter: ObjectFilter) {
        const where = yield* conditions(filter)
        const row = yield* Effect.flatMap(
          sql<{ count: number }>`select count(*)::int as count from kb.graph_objects where ${sql.and(where)}`,
          onlyRow
        )
        return row.count
      }, orDie)

      const listRelationships = Effect.fn("Objects.listRelationships")(function* (
        { type, objectId }: RelationshipFilter,
        before: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const where = [
          sql`project_id = ${projectId} and deleted_at is null`,
          ...(type === undefined ? [] : [sql`type = ${type}`]),
          ...(objectId === undefined ? [] : [sql`(from_id = ${objectId} or to_id = ${objectId})`]),
          ...(before === undefined ? [] : [sql`id < ${before}`])
        ]
        const rows = yield* sql<RelationshipRow>`
            select * from kb.graph_relationships where ${sql.and(where)} order by id desc limit ${limit}`
        return rows.map(toRelationship)
      }, orDie)

      const history = Effect.fn("Objects.history")(function* (
        id: ObjectId,
        beforeVersion: number | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const [known] =
          yield* sql`select 1 from kb.graph_objects where id = ${id} and project_id = ${projectId}`
        if (!known) return undefined
        const rows = yield* sql<VersionRow>`
          select * from kb.graph_object_versions where object_id = ${id} and project_id = ${projectId}
            and version < ${beforeVersion ?? 2_147_483_647} order by version desc limit ${limit}`
        return rows.map(toVersion)
      }, orDie)

      const version = Effect.fn("Objects.version")(function* (id: ObjectId, number: number) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<VersionRow>`
          select * from kb.graph_object_versions where object_id = ${id} and project_id = ${projectId} and version = ${number}`
        return row && toVersion(row)
      }, orDie)

      /** Goes outward one ring at a time; the number of rings and of objects is bounded by the caller. */
      const neighbors = Effect.fn("Objects.neighbors")(function* (
        id: ObjectId,
        depth: number,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const seen = new Set<ObjectId>([id])
        const relationships = new Map<RelationshipId, Relationship>()
        let ring: ReadonlyArray<ObjectId> = [id]
        for (
          let distance = 0;
          distance < depth && ring.length > 0 && relationships.size < limit;
          distance++
        ) {
          const rows = yield* sql<RelationshipRow>`
            select * from kb.graph_relationships where project_id = ${projectId} and deleted_at is null
              and (from_id = any(${ring}::uuid[]) or to_id = any(${ring}::uuid[])) order by id limit ${limit}`
          for (const row of rows) relationships.set(row.id, toRelationship(row))
          ring = [...new Set(rows.flatMap((row) => [row.fromId, row.toId]))].filter((end) => !seen.has(end))
          for (const end of ring) seen.add(end)
        }
        seen.delete(id)
        const objects = yield* sql<ObjectRow>`
          select * from kb.graph_objects where project_id = ${projectId} and id = any(${[...seen]}::uuid[]) and deleted_at is null
          order by id limit ${limit}`
        return { objects: objects.map(toObject), relationships: [...relationships.values()].slice(0, limit) }
      }, orDie)

      return Objects.of({ get, getRelationship, list, count, listRelationships, history, version, neighbors })
    })
  )
}

const wordsOf = (text: string | undefined): ReadonlyArray<string> =>
  (text ?? "")
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "")
    .slice(0, 10)
