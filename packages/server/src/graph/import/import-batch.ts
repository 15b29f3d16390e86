/**
 * Applies a batch of lines to the graph in the caller's transaction.
 *
 * The objects of all lines are read at once under lock; then each change passes through the gateway. A line that is
 * already true writes nothing. Refusals are rare, so a batch runs without savepoints first. After a refusal or a lost
 * race the transaction is rolled back and the batch repeated with more care.
 */
import type { LineCounts } from "@tropism/api/transfer-api"
import type { Change } from "@tropism/domain/change"
import type { GraphObject } from "@tropism/domain/graph"
import type { ObjectId, RelationshipId } from "@tropism/domain/ids"
import { canonicalJson, isJsonObject, type Properties } from "@tropism/domain/json"
import type { LineEnd, ObjectLine, RelationshipLine } from "@tropism/domain/transfer-line"
import { untrustedNames, type Untrusted } from "@tropism/domain/untrusted"
import { Context, Effect, Layer, Result, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Database, ProjectTransaction, orDie } from "../../database/database.ts"
import type { ChangeRefused } from "../change-refused.ts"
import { Gateway } from "../gateway.ts"
import type { Author, Content } from "../recording.ts"
import { noCounts } from "./imports.ts"

/** Who imports, and whether all imported content is untrusted. */
export interface BatchTerms {
  readonly author: Author
  readonly untrusted: boolean
}

/** A line that was read without a fault. */
export interface ReadLine {
  readonly line: number
  readonly value: ObjectLine | RelationshipLine
}

/** Outcome of a batch. */
export interface BatchOutcome {
  readonly counts: LineCounts
  readonly badLines: ReadonlyArray<{ readonly line: number; readonly message: string }>
}

/** The batch met an unexpected refusal: roll back its transaction and repeat it with more care. */
export class BatchUndone extends Schema.TaggedError<BatchUndone>()("BatchUndone", {}) {}

/**
 * How a batch is applied.
 *
 * - `quick`: without savepoints; the first refusal rolls the batch back.
 * - `careful`: a savepoint for each line; a refusal that a concurrent write explains rolls the batch back.
 * - `last`: like `careful`, but a lost race makes a bad line.
 */
export type BatchCare = "quick" | "careful" | "last"

export class ImportBatch extends Context.Service<
  ImportBatch,
  {
    /** Applies the lines in the caller's transaction. */
    readonly apply: (
      lines: ReadonlyArray<ReadLine>,
      terms: BatchTerms,
      care: BatchCare
    ) => Effect.Effect<BatchOutcome, BatchUndone, ProjectTransaction>
  }
>()("@tropism/server/graph/ImportBatch") {
  static readonly layer = Layer.effect(
    ImportBatch,
    Effect.gen(function* () {
      const database = yield* Database
      const gateway = yield* Gateway
      const lookup = yield* ImportLookup

      const apply = Effect.fn("ImportBatch.apply")(function* (
        lines: ReadonlyArray<ReadLine>,
        { author, untrusted: isUntrusted }: BatchTerms,
        care: BatchCare
      ) {
        const objectLines = lines.filter(isObjectLine)
        const relationshipLines = lines.filter(isRelationshipLine)
        const known = yield* lookup.objects(
          objectLines.map(({ value }) => value),
          relationshipLines.flatMap(({ value }) => [value.relationship.from, value.relationship.to])
        )
        const counts: { -readonly [K in keyof LineCounts]: number } = { ...noCounts }
        const badLines: Array<{ readonly line: number; readonly message: string }> = []
        const refuse = (line: number, message: string) =>
          Effect.sync(() => {
            counts.failed += 1
            badLines.push({ line, message })
          })

        const change = (wanted: Change) => gateway.apply(wanted, author)

        /** Names of a line's untrusted properties; all of them in an untrusted file. The names were checked when the line was read. */
        const marksOf = ({ properties, untrusted }: ReadLine["value"]) =>
          Result.getOrElse(untrustedNames(isUntrusted || untrusted, properties ?? {}), () => [])

        /** Applies one line. A refusal rolls back the whole batch or this line alone. */
        const each =
          <A extends ReadLine>(act: (line: A) => Effect.Effect<void, ChangeRefused, ProjectTransaction>) =>
          (line: A) =>
            Effect.catchTag(
              care === "quick" ? act(line) : database.attempt(act(line)),
              "ChangeRefused",
              (refusal) =>
                care === "quick" || (care === "careful" && raced.has(refusal.reason))
                  ? Effect.fail(new BatchUndone())
                  : refuse(line.line, sentenceOf(refusal))
            )

        const putObject = Effect.fnUntraced(function* ({ line, value }: ObjectReadLine) {
          const found = known.find(value)
          const other = value.id ? known.end(value.id) : undefined
          const properties = value.properties ?? {}
          const untrusted = marksOf(value)
          if (other && other !== found) {
            yield* refuse(line, `/id: ${value.id} is another object here than ${value.type} ${value.key}`)
          } else if (!found) {
            const { entity } = yield* change({
              type: "create",
              objectType: value.type,
              key: value.key ?? null,
              data: properties,
              untrusted
            })
            if (entity.kind === "object") known.made(value, entity.object, line)
            counts.created += 1
          } else if (found.type !== value.type) {
            yield* refuse(
              line,
              `/type: The object with the id ${value.id} is a ${found.type} here and no ${value.type}`
            )
          } else {
            const patch = contentTo(found, properties, untrusted)
            if (isEmpty(patch)) return void (counts.unchanged += 1)
            const applied = yield* change({
              type: "update",
              objectId: found.id,
              data: patch,
              untrusted: untrusted.filter((name) => Object.hasOwn(patch, name))
            })
            if (applied.entity.kind === "object") {
              found.properties = applied.entity.object.properties
              found.untrusted = applied.entity.object.untrusted
            }
            counts[applied.change === "unchanged" ? "unchanged" : "updated"] += 1
          }
        })

        /** An end must be defined before the line that names it, so that the file's meaning does not depend on its batches. */
        const endId = (end: LineEnd, line: number): ObjectId | undefined => {
          const object = known.end(end)
          return object && object.line < line ? object.id : undefined
        }

        const pairFor = ({ line, value: { relationship } }: RelationshipReadLine): Pair | undefined => {
          const fromId = endId(relationship.from, line)
          const toId = endId(relationship.to, line)
          return fromId && toId && { type: relationship.type, fromId, toId }
        }

        const putRelationship = (present: Map<string, KnownRelationship>) =>
          Effect.fnUntraced(function* (one: RelationshipReadLine) {
            const pair = pairFor(one)
            if (!pair)
              return yield* refuse(
                one.line,
                noEnd(one, (end) => endId(end, one.line) !== undefined)
              )
            const before = present.get(pairOf(pair))
            const properties = one.value.properties ?? {}
            const untrusted = marksOf(one.value)
            const patch = contentTo(before ?? { properties: {}, untrusted: [] }, properties, untrusted)
            if (before && isEmpty(patch)) return void (counts.relationshipsUnchanged += 1)
            const { entity } = yield* change(
              before
                ? {
                    type: "updateRelationship",
                    relationshipId: before.id,
                    data: patch,
                    untrusted: untrusted.filter((name) => Object.hasOwn(patch, name))
                  }
                : { type: "createRelationship", relationship: pair, data: properties, untrusted }
            )
            if (entity.kind === "relationship") present.set(pairOf(pair), entity.relationship)
            counts[before ? "relationshipsUpdated" : "relationshipsCreated"] += 1
          })

        yield* Effect.forEach(objectLines, each(putObject), { discard: true })
        if (!(yield* lookup.remember(known.named()))) return yield* new BatchUndone()
        const present = yield* lookup.relationships(relationshipLines.flatMap((one) => pairFor(one) ?? []))
        yield* Effect.forEach(relationshipLines, each(putRelationship(present)), { discard: true })
        return { counts, badLines: badLines.toSorted((a, b) => a.line - b.line) }
      })

      return ImportBatch.of({ apply })
    })
  )
}

type ObjectReadLine = { readonly line: number; readonly value: ObjectLine }
type RelationshipReadLine = { readonly line: number; readonly value: RelationshipLine }

const isRelationshipLine = (one: ReadLine): one is RelationshipReadLine => "relationship" in one.value
const isObjectLine = (one: ReadLine): one is ObjectReadLine => !isRelationshipLine(one)

/** Refusals that a write between our read and our write explains. */
const raced: ReadonlySet<string> = new Set(["keyTaken", "relationshipExists", "notFound", "version"])

const sentenceOf = ({ detail, pointer }: ChangeRefused): string =>
  pointer === undefined || pointer === "" ? detail : `${pointer}: ${detail}`

const noEnd = (
  { value: { relationship } }: RelationshipReadLine,
  isThere: (end: LineEnd) => boolean
): string => {
  const pointer = isThere(relationship.from) ? "to" : "from"
  const end = relationship[pointer]
  const what = typeof end === "string" ? `object ${end}` : `${end.type} with the key ${end.key}`
  return `/relationship/${pointer}: There is no ${what} in the graph or in an earlier line`
}

const isEmpty = (patch: Properties): boolean => Object.keys(patch).length === 0

/** Returns what a line changes. A property whose mark is or was different is replaced whole, so that nothing of the old value remains. */
const contentTo = (before: Content, wanted: Properties, untrusted: Untrusted): Properties => {
  const whole = Object.entries(wanted).filter(
    ([name]) =>
      Object.hasOwn(before.properties, name) && before.untrusted.includes(name) !== untrusted.includes(name)
  )
  return { ...mergePatchTo(before.properties, wanted), ...Object.fromEntries(whole) }
}

/** Returns what a line changes as a merge patch: null removes, objects merge, other values replace. */
export const mergePatchTo = (before: Properties, wanted: Properties): Properties => {
  const patch = new Map<string, Schema.Json>()
  for (const [name, value] of Object.entries(wanted)) {
    const old = Object.hasOwn(before, name) ? before[name] : undefined
    if (isJsonObject(old) && isJsonObject(value)) {
      const inner = mergePatchTo(old, value)
      if (!isEmpty(inner)) patch.set(name, inner)
    } else if (canonicalJson(old ?? null) !== canonicalJson(value)) patch.set(name, value)
  }
  return Object.fromEntries(patch)
}

// Finds all objects that the lines of a batch name.
//
// Objects that lines may change are locked in id order, so two imports of the same objects wait for each other and do not
// deadlock. The number of statements does not grow with the batch.

/** An object that a line may refer to. */
export interface KnownObject {
  readonly id: ObjectId
  readonly type: string
  /** The line that created it; 0 when it existed before the batch. */
  readonly line: number
  properties: Properties
  untrusted: Untrusted
}

interface KnownRelationship {
  readonly id: RelationshipId
  readonly properties: Properties
  readonly untrusted: Untrusted
}

interface Pair {
  readonly type: string
  readonly fromId: ObjectId
  readonly toId: ObjectId
}

/** An object with the name that a file gives it. */
export interface NamedObject {
  readonly sourceId: ObjectId
  readonly objectId: ObjectId
}

/** The known objects of a batch, including those that the batch creates. */
export interface KnownObjects {
  readonly find: (line: ObjectLine) => KnownObject | undefined
  readonly end: (end: LineEnd) => KnownObject | undefined
  readonly made: (line: ObjectLine, object: GraphObject, lineNumber: number) => void
  /** Ids of the file that appeared for the first time. */
  readonly named: () => ReadonlyArray<NamedObject>
}

const pairOf = ({ type, fromId, toId }: Pair): string => `${fromId}${toId}${type}`

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class ImportLookup extends Context.Service<
  ImportLookup,
  {
    readonly objects: (
      lines: ReadonlyArray<ObjectLine>,
      ends: ReadonlyArray<LineEnd>
    ) => InProject<KnownObjects>
    readonly relationships: (pairs: ReadonlyArray<Pair>) => InProject<Map<string, KnownRelationship>>
    /** Stores which object each id of the file refers to; false when a concurrent import stored a different one. */
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

      /** Finds objects by the ids in a file: their own, or those of the graph they were exported from. */
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
        // A statement does not see commits after it began, so this one locks the row and the next one judges it.
        const isMade = new Set(made.map(({ sourceId }) => sourceId))
        const others = named.flatMap(({ sourceId }) => (isMade.has(sourceId) ? [] : sourceId))
        yield* sql`
          select 1 from kb.imported_objects where project_id = ${projectId} and source_id = any(${others}::uuid[])
          order by source_id for update`
        // An id may refer to another object only when the object it referred to is deleted.
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

/** Type and key as one text; the length prefix keeps different pairs distinct. */
const keyOf = (type: string, key: string): string => `${type.length}:${type}${key}`

const makeKnown = (
  rows: ReadonlyArray<KnownRow>,
  rowsById: ReadonlyArray<KnownRow & { readonly sourceId: ObjectId }>
): KnownObjects => {
  const byKey = new Map<string, KnownObject>()
  const byId = new Map<ObjectId, KnownObject>()
  const named = new Map<ObjectId, ObjectId>()
  const shared = new Map<ObjectId, KnownObject>()
  /** Returns the same value for the same object, however it was found. */
  const known = ({ id, type, properties, untrusted }: KnownRow): KnownObject => {
    const one = shared.get(id) ?? { id, type, properties, untrusted, line: 0 }
    shared.set(id, one)
    return one
  }
  for (const row of rows) byKey.set(keyOf(row.type, row.key ?? ""), known(row))
  for (const row of rowsById)
    if (row.id === row.sourceId || !byId.has(row.sourceId)) byId.set(row.sourceId, known(row))

  /** An object can be named by its id, and by its key when it has one. */
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
