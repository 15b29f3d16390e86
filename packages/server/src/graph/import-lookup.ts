/**
 * Finds what the lines of a batch speak of, all at once.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Objects that lines may change are locked, in the order of their ids, so two
 * imports of the same objects wait for each other and do not mislead each other.
 * The number of statements does not grow with the batch.
 */
import type { GraphObject } from "@tropism/domain/graph"
import type { ObjectId, RelationshipId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import type { LineEnd, ObjectLine } from "@tropism/domain/transfer-line"
import type { Untrusted } from "@tropism/domain/untrusted"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"

/** An object that a line may mean. */
export interface KnownObject {
  readonly id: ObjectId
  readonly type: string
  /** The line that made it; 0 when it was there before the batch. */
  readonly line: number
  properties: Properties
  untrusted: Untrusted
}

export interface KnownRelationship {
  readonly id: RelationshipId
  readonly properties: Properties
  readonly untrusted: Untrusted
}

export interface Pair {
  readonly type: string
  readonly fromId: ObjectId
  readonly toId: ObjectId
}

/** An object by what a file calls it. */
export interface NamedObject {
  readonly sourceId: ObjectId
  readonly objectId: ObjectId
}

/** What is known of the objects of a batch; it learns of those that the batch makes. */
export interface KnownObjects {
  readonly find: (line: ObjectLine) => KnownObject | undefined
  readonly end: (end: LineEnd) => KnownObject | undefined
  readonly made: (line: ObjectLine, object: GraphObject, lineNumber: number) => void
  /** The ids of the file that were met for the first time. */
  readonly named: () => ReadonlyArray<NamedObject>
}

export const pairOf = ({ type, fromId, toId }: Pair): string => `${fromId}${toId}${type}`

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class ImportLookup extends Context.Service<
  ImportLookup,
  {
    readonly objects: (
      lines: ReadonlyArray<ObjectLine>,
      ends: ReadonlyArray<LineEnd>
    ) => InProject<KnownObjects>
    readonly relationships: (pairs: ReadonlyArray<Pair>) => InProject<Map<string, KnownRelationship>>
    /** Keeps what the files' ids stand for here; false when another import just said something else. */
    readonly remember: (named: ReadonlyArray<NamedObject>) => InProject<boolean>
  }
>()("@tropism/server/graph/ImportLookup") {
  static readonly layer = Layer.effect(
    ImportLookup,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const byKeys = Effect.fnUntraced(function* (keyed: ReadonlyArray<Keyed>, isLocked: boolean) {
        if (keyed.length === 0) return []
        const { projectId } = yield* ProjectTransaction
        return yield* sql<KnownRow>`
          select id, type, key, properties, untrusted from kb.graph_objects
          where project_id = ${projectId} and deleted_at is null
            and (type, key) in (select * from unnest(${keyed.map(({ type }) => type)}::text[], ${keyed.map(({ key }) => key)}::text[]))
          order by id ${sql.literal(isLocked ? "for update" : "")}`
      })

      /** Objects by the ids that a file gives them: their own, or the ones they had where they came from. */
      const byIds = Effect.fnUntraced(function* (ids: ReadonlyArray<ObjectId>) {
        if (ids.length === 0) return []
        const { projectId } = yield* ProjectTransaction
        return yield* sql<KnownRow & { readonly sourceId: ObjectId }>`
          select one.source_id, object.id, object.type, object.key, object.properties, object.untrusted
          from (
            select source_id, object_id from kb.imported_objects where project_id = ${projectId} and source_id = any(${ids}::uuid[])
            union all select id, id from unnest(${ids}::uuid[]) own(id)
          ) one join kb.graph_objects object on object.id = one.object_id
          where object.project_id = ${projectId} and object.deleted_at is null
          order by object.id for update of object`
      })

      const objects = Effect.fn("ImportLookup.objects")(function* (
        lines: ReadonlyArray<ObjectLine>,
        ends: ReadonlyArray<LineEnd>
      ) {
        const wanted = new Map<string, Keyed>()
        for (const { type, key } of lines) if (key) wanted.set(keyOf(type, key), { type, key })
        const seen = new Map<string, Keyed>()
        const ids = new Set<ObjectId>(lines.flatMap(({ id }) => id ?? []))
        for (const end of ends) {
          if (typeof end === "string") ids.add(end)
          else if (!wanted.has(keyOf(end.type, end.key))) seen.set(keyOf(end.type, end.key), end)
        }
        const rows = [
          ...(yield* byKeys([...wanted.values()], true)),
          ...(yield* byKeys([...seen.values()], false))
        ]
        return makeKnown(rows, yield* byIds([...ids]))
      }, orDie)

      const relationships = Effect.fn("ImportLookup.relationships")(function* (pairs: ReadonlyArray<Pair>) {
        if (pairs.length === 0) return new Map<string, KnownRelationship>()
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<KnownRelationship & Pair>`
          select id, type, from_id, to_id, properties, untrusted from kb.graph_relationships
          where project_id = ${projectId} and deleted_at is null and (type, from_id, to_id) in (
            select * from unnest(${pairs.map(({ type }) => type)}::text[], ${pairs.map(({ fromId }) => fromId)}::uuid[], ${pairs.map(({ toId }) => toId)}::uuid[]))`
        return new Map(rows.map((row): [string, KnownRelationship] => [pairOf(row), row]))
      }, orDie)

      const remember = Effect.fn("ImportLookup.remember")(function* (named: ReadonlyArray<NamedObject>) {
        if (named.length === 0) return true
        const { projectId } = yield* ProjectTransaction
        const rows = JSON.stringify(named)
        const made = yield* sql<{ sourceId: ObjectId }>`
          insert into kb.imported_objects (project_id, source_id, object_id)
          select ${projectId}::uuid, row."sourceId", row."objectId"
          from jsonb_to_recordset(${rows}::text::jsonb) as row("sourceId" uuid, "objectId" uuid) order by 2
          on conflict (project_id, source_id) do nothing returning source_id`
        if (made.length === named.length) return true
        // A statement sees nothing that was committed after it began: the row is held first, and judged by the next.
        const isMade = new Set(made.map(({ sourceId }) => sourceId))
        const others = named.flatMap(({ sourceId }) => (isMade.has(sourceId) ? [] : sourceId))
        yield* sql`
          select 1 from kb.imported_objects where project_id = ${projectId} and source_id = any(${others}::uuid[])
          order by source_id for update`
        // What an id stood for may be deleted; then, and only then, it stands for another object from now on.
        const again = yield* sql`
          update kb.imported_objects known set object_id = row."objectId"
          from jsonb_to_recordset(${rows}::text::jsonb) as row("sourceId" uuid, "objectId" uuid)
          where known.project_id = ${projectId} and known.source_id = row."sourceId" and known.source_id = any(${others}::uuid[])
            and not exists (select 1 from kb.graph_objects object where object.id = known.object_id and object.deleted_at is null)
          returning 1`
        return again.length === others.length
      }, orDie)

      return ImportLookup.of({ objects, relationships, remember })
    })
  )
}

interface Keyed {
  readonly type: string
  readonly key: string
}

interface KnownRow extends Omit<KnownObject, "line"> {
  readonly key: string | null
}

/** Type and key as one text; the length of the first says where the second begins. */
const keyOf = (type: string, key: string): string => `${type.length}:${type}${key}`

const makeKnown = (
  rows: ReadonlyArray<KnownRow>,
  rowsById: ReadonlyArray<KnownRow & { readonly sourceId: ObjectId }>
): KnownObjects => {
  const byKey = new Map<string, KnownObject>()
  const byId = new Map<ObjectId, KnownObject>()
  const named = new Map<ObjectId, ObjectId>()
  const shared = new Map<ObjectId, KnownObject>()
  /** One object is one value here, however it was found. */
  const known = ({ id, type, properties, untrusted }: KnownRow): KnownObject => {
    const one = shared.get(id) ?? { id, type, properties, untrusted, line: 0 }
    shared.set(id, one)
    return one
  }
  for (const row of rows) byKey.set(keyOf(row.type, row.key ?? ""), known(row))
  for (const row of rowsById)
    if (row.id === row.sourceId || !byId.has(row.sourceId)) byId.set(row.sourceId, known(row))

  /** An object without a key is called by its id; whoever has a key may be called by either. */
  const name = (id: ObjectId | null | undefined, object: KnownObject): void => {
    if (!id || byId.get(id) === object) return
    byId.set(id, object)
    if (id !== object.id) named.set(id, object.id)
  }

  return {
    find: ({ id, type, key }) => {
      if (!key) return id ? byId.get(id) : undefined
      const object = byKey.get(keyOf(type, key))
      if (object && id && !byId.has(id)) name(id, object)
      return object
    },
    end: (end) => (typeof end === "string" ? byId.get(end) : byKey.get(keyOf(end.type, end.key))),
    made: ({ id, type, key }, { id: objectId, properties, untrusted }, line) => {
      const object: KnownObject = { id: objectId, type, properties, untrusted, line }
      if (key) byKey.set(keyOf(type, key), object)
      name(id, object)
    },
    named: () => [...named].map(([sourceId, objectId]) => ({ sourceId, objectId }))
  }
}
