/**
 * Exports a project's graph as lines that an import can read.
 *
 * Objects come first, then the relationships between them, in id order from one snapshot. A page ends at a number of
 * bytes, so neither a large graph, large objects nor a slow reader costs memory. A snapshot holds a connection and keeps
 * the database from vacuuming, so both its duration and the number of concurrent exports are bounded.
 */
import type { ObjectId, ProjectId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import type { LineEnd, TransferLine } from "@tropism/domain/transfer-line"
import { markedPart, type Untrusted } from "@tropism/domain/untrusted"
import { Context, Effect, Layer, type Stream } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { Database, onlyRow, orDie, ProjectTransaction } from "../database/database.ts"
import { makeTurns, type Offer, slowlyRead } from "../database/export-backpressure.ts"
import { transferLimits } from "../limits.ts"
import { upTo } from "./moments.ts"

export interface ExportFilter {
  /** Only these types and the relationships between them; undefined for all. */
  readonly types: ReadonlyArray<string> | undefined
  /** Exports the graph as of this instant; undefined for now. */
  readonly asOf: Date | undefined
}

/** Estimated number of lines. */
export interface ExportSize {
  readonly objects: number
  readonly relationships: number
}

interface ObjectPart {
  readonly id: ObjectId
  readonly type: string
  readonly key: string | null
  readonly properties: Properties
  readonly untrusted: Untrusted
}

interface RelationshipPart {
  readonly id: string
  readonly type: string
  readonly properties: Properties
  readonly untrusted: Untrusted
  readonly fromId: ObjectId
  readonly fromType: string
  readonly fromKey: string | null
  readonly toId: ObjectId
  readonly toType: string
  readonly toKey: string | null
}

/** A row of a page, with the number of rows read for that page. */
type Paged<Row> = Row & { readonly readRows: number }

export class Exporter extends Context.Service<
  Exporter,
  {
    readonly size: (filter: ExportFilter) => Effect.Effect<ExportSize, never, ProjectTransaction>
    /** Streams the lines; ends with an `error` line when the export fails or the reader's time is over. */
    readonly lines: (
      projectId: ProjectId,
      filter: ExportFilter,
      lost: Effect.Effect<void>
    ) => Stream.Stream<Uint8Array>
  }
>()("@tropism/server/graph/Exporter") {
  static readonly layer = Layer.effect(
    Exporter,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const inTurn = yield* makeTurns(transferLimits.concurrentExports)

      const size = Effect.fn("Exporter.size")(function* ({ types }: ExportFilter) {
        const { projectId } = yield* ProjectTransaction
        const ofTypes = types === undefined ? sql`` : sql`and type = any(${types})`
        const between =
          types === undefined
            ? sql``
            : sql`and exists (select 1 from kb.graph_objects one where one.id = from_id and one.type = any(${types}))
                  and exists (select 1 from kb.graph_objects one where one.id = to_id and one.type = any(${types}))`
        return yield* Effect.flatMap(
          sql<ExportSize>`select
            (select count(*)::int from kb.graph_objects where project_id = ${projectId} and deleted_at is null ${ofTypes}) as objects,
            (select count(*)::int from kb.graph_relationships where project_id = ${projectId} and deleted_at is null ${between}) as relationships`,
          onlyRow
        )
      }, orDie)

      /** Joins an entity with its version at an instant. */
      const past = (versions: string, entityId: string, asOf: Date) => sql`
        cross join lateral (
          select type, properties, untrusted from ${sql.literal(versions)} where ${sql.literal(entityId)} = one.id and ${upTo(sql, asOf)}
        ) past`
      const pastObject = (asOf: Date) => past("kb.graph_object_versions", "object_id", asOf)
      const pastRelationship = (asOf: Date) => past("kb.graph_relationship_versions", "relationship_id", asOf)

      /** The first rows in id order until their size fills a page, with the number of rows read. */
      const paged = (rows: Statement.Fragment) => sql`(
        select one.*, (count(*) over ())::int as read_rows, sum(octet_length(one.properties::text))
          over (order by one.id rows between unbounded preceding and 1 preceding) as bytes_before
        from (${rows}) one
      ) page where coalesce(bytes_before, 0) < ${transferLimits.exportPageBytes}::int order by id`

      const readObjects = ({ types, asOf }: ExportFilter) =>
        Effect.fnUntraced(function* (after: string, limit: number) {
          const { projectId } = yield* ProjectTransaction
          const where = [
            sql`one.project_id = ${projectId} and one.id > ${after}`,
            ...(types === undefined ? [] : [sql`one.type = any(${types})`]),
            asOf === undefined
              ? sql`one.deleted_at is null`
              : sql`past.type <> 'deleted' and one.purged_at is null`
          ]
          const content = sql.literal(
            asOf === undefined ? "one.properties, one.untrusted" : "past.properties, past.untrusted"
          )
          return yield* sql<Paged<ObjectPart>>`
            select id, type, key, properties, untrusted, read_rows from ${paged(sql`
              select one.id, one.type, one.key, ${content}
              from kb.graph_objects one ${asOf === undefined ? sql`` : pastObject(asOf)}
              where ${sql.and(where)} order by one.id limit ${limit}`)}`
        }, orDie)

      const readRelationships = ({ types, asOf }: ExportFilter) =>
        Effect.fnUntraced(function* (after: string, limit: number) {
          const { projectId } = yield* ProjectTransaction
          const where = [
            sql`one.project_id = ${projectId} and one.id > ${after}`,
            ...(types === undefined ? [] : [sql`start.type = any(${types}) and finish.type = any(${types})`]),
            asOf === undefined ? sql`one.deleted_at is null` : sql`past.type <> 'deleted'`
          ]
          const content = sql.literal(
            asOf === undefined ? "one.properties, one.untrusted" : "past.properties, past.untrusted"
          )
          return yield* sql<Paged<RelationshipPart>>`
            select id, type, properties, untrusted, from_id, from_type, from_key, to_id, to_type, to_key, read_rows from ${paged(sql`
              select one.id, one.type, ${content}, start.id as from_id, start.type as from_type, start.key as from_key,
                finish.id as to_id, finish.type as to_type, finish.key as to_key
              from kb.graph_relationships one
              join kb.graph_objects start on start.id = one.from_id join kb.graph_objects finish on finish.id = one.to_id
              ${asOf === undefined ? sql`` : pastRelationship(asOf)}
              where ${sql.and(where)} order by one.id limit ${limit}`)}`
        }, orDie)

      /** Offers all lines, in the transaction of the snapshot. */
      const write = Effect.fn("Exporter.write")(function* (filter: ExportFilter, offer: Offer) {
        yield* offerAll(offer, readObjects(filter), objectLine)
        yield* offerAll(offer, readRelationships(filter), relationshipLine)
      })

      const lines = (projectId: ProjectId, filter: ExportFilter, lost: Effect.Effect<void>) =>
        slowlyRead({
          name: "export",
          advice: "Read it faster, or export fewer types at a time.",
          maxMs: transferLimits.exportMaxMs,
          lost,
          failedLine: (error, reason) => `${JSON.stringify({ error, reason })}\n`,
          write: (offer) => inTurn(projectId, database.inSnapshot(projectId, write(filter, offer)))
        })

      return Exporter.of({ size, lines })
    })
  )
}

const firstId = "00000000-0000-0000-0000-000000000000"

/** Reads page after page; the sizes of earlier rows estimate how many rows to read for the next page. */
const offerAll = Effect.fnUntraced(function* <Row extends { readonly id: string }, E, R>(
  offer: Offer,
  read: (after: string, limit: number) => Effect.Effect<ReadonlyArray<Paged<Row>>, E, R>,
  lineOf: (row: Row) => TransferLine
) {
  let after = firstId
  let limit = 16
  while (true) {
    const rows = yield* read(after, limit)
    const last = rows.at(-1)
    if (!last) return
    const text = rows.map((row) => `${JSON.stringify(lineOf(row))}\n`).join("")
    yield* offer(text)
    if (rows.length === last.readRows && last.readRows < limit) return
    after = last.id
    limit = Math.max(
      1,
      Math.min(
        transferLimits.exportPageRows,
        limit * 4,
        Math.floor((transferLimits.exportPageBytes * rows.length) / text.length)
      )
    )
  }
})

/** An object without a key carries its id, because relationships name it by that. */
const objectLine = ({ id, type, key, properties, untrusted }: ObjectPart): TransferLine => ({
  ...(key === null ? { id, type } : { type, key }),
  properties,
  ...markedPart(untrusted)
})

const relationshipLine = (row: RelationshipPart): TransferLine => ({
  relationship: {
    type: row.type,
    from: endOf(row.fromId, row.fromType, row.fromKey),
    to: endOf(row.toId, row.toType, row.toKey)
  },
  properties: row.properties,
  ...markedPart(row.untrusted)
})

const endOf = (id: ObjectId, type: string, key: string | null): LineEnd => (key === null ? id : { type, key })
