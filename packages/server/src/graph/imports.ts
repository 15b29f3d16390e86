/**
 * The records of imports: how far each file has come, and who may go on with it.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Each sending of a file holds the import by a token of its own, and every write
 * names it: of two that go on with one import the later one has it, and the
 * earlier one can commit nothing more. `advance` is called in the transaction
 * that commits the lines, so the record never says more or less than the graph.
 */
import {
  BadLine,
  type Import,
  type ImportStatus,
  LineCounts,
  type LineFormat
} from "@tropism/api/transfer-api"
import type { ImportId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { transferLimits } from "../limits.ts"
import type { LineSettings } from "./csv-rows.ts"
import { type FilePlace, newHash } from "./import-records.ts"

/** What a file is and how it is to be understood. */
export interface ImportedFile {
  readonly format: LineFormat
  readonly name: string | undefined
  readonly settings: LineSettings
}

/** One sending of a file. */
export interface Sending {
  readonly id: ImportId
  readonly token: string
}

/** What a batch leaves behind. */
export interface Advance {
  readonly place: FilePlace
  readonly counts: LineCounts
  /** All that are shown, or undefined when there are no more than before. */
  readonly badLines: ReadonlyArray<BadLine> | undefined
}

/** Another sending has the import, or it is over. */
export class SendingLost extends Schema.TaggedError<SendingLost>()("SendingLost", { id: Schema.String }) {}

export const noCounts: LineCounts = {
  created: 0,
  updated: 0,
  unchanged: 0,
  relationshipsCreated: 0,
  relationshipsUpdated: 0,
  relationshipsUnchanged: 0,
  failed: 0
}

interface ImportRow {
  readonly id: ImportId
  readonly format: LineFormat
  readonly name: string | null
  readonly settings: LineSettings
  readonly status: ImportStatus
  readonly attempt: number
  readonly lines: bigint
  readonly bytes: bigint
  readonly digest: string
  readonly counts: LineCounts
  readonly badLines: ReadonlyArray<BadLine>
  readonly errorMessage: string | null
  readonly createdBy: string
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** An import, and how its file is to be understood. */
export interface KeptImport {
  readonly record: Import
  readonly settings: LineSettings
}

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

export class Imports extends Context.Service<
  Imports,
  {
    /** Begins an import; undefined when there is one with this id. */
    readonly begin: (
      file: ImportedFile,
      id: ImportId | undefined,
      by: UserId
    ) => InProject<Sending | undefined>
    readonly get: (id: ImportId) => InProject<KeptImport | undefined>
    /** Newest first, after a place; a command makes its import's id itself, so ids tell no order. */
    readonly list: (
      after: string | undefined,
      limit: number
    ) => InProject<ReadonlyArray<{ readonly item: Import; readonly place: string }>>
    /** Goes on with an import that stands at this place; undefined when it has moved or is over. */
    readonly resume: (id: ImportId, bytes: number) => InProject<Sending | undefined>
    /** Says what is committed with this transaction. */
    readonly advance: (sending: Sending, to: Advance) => InProject<void, SendingLost>
    /** Says that somebody is still at work. */
    readonly touch: (sending: Sending) => InProject<void>
    readonly finish: (sending: Sending) => InProject<void, SendingLost>
    /** Leaves an import that can be gone on with; no error when another sending has it. */
    readonly interrupt: (sending: Sending, reason: string) => InProject<void>
  }
>()("@tropism/server/graph/Imports") {
  static readonly layer = Layer.effect(
    Imports,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids

      const begin = Effect.fn("Imports.begin")(function* (
        { format, name, settings }: ImportedFile,
        wanted: ImportId | undefined,
        by: UserId
      ) {
        const { projectId } = yield* ProjectTransaction
        const id = wanted ?? ((yield* ids.next) as ImportId)
        const token = yield* ids.next
        const [row] = yield* sql`
          insert into kb.imports (id, project_id, format, name, settings, status, attempt_token, digest, counts, created_by)
          values (${id}, ${projectId}, ${format}, ${name ?? null}, ${JSON.stringify(settings)}::text::jsonb, 'running', ${token},
            ${newHash().digest("hex")}, ${JSON.stringify(noCounts)}::text::jsonb, ${by})
          on conflict (id) do nothing returning id`
        return row && { id, token }
      }, orDie)

      /** A record whose sender has not been heard of is nobody's any more, whatever it says of itself. */
      const columns = sql.literal(`
        id, format, name, settings, attempt, lines, bytes, digest, counts, bad_lines, error_message, created_by, created_at, updated_at,
        case when status = 'running' and updated_at < now() - interval '${transferLimits.silentAfterMs} milliseconds' then 'interrupted'
          else status end as status`)

      const get = Effect.fn("Imports.get")(function* (id: ImportId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<ImportRow>`
          select ${columns} from kb.imports where id = ${id} and project_id = ${projectId}`
        return row && { record: toImport(row), settings: row.settings }
      }, orDie)

      const list = Effect.fn("Imports.list")(function* (after: string | undefined, limit: number) {
        const { projectId } = yield* ProjectTransaction
        const [instant, id] = after?.split("~") ?? []
        const where = [
          sql`project_id = ${projectId}`,
          ...(instant === undefined
            ? []
            : [
                sql`(created_at, id) < ('epoch'::timestamptz + ${instant}::bigint * interval '1 microsecond', ${id}::uuid)`
              ])
        ]
        const rows = yield* sql<ImportRow & { readonly place: string }>`
          select ${columns}, (extract(epoch from created_at) * 1000000)::bigint || '~' || id as place
          from kb.imports where ${sql.and(where)} order by created_at desc, id desc limit ${limit}`
        return rows.map((row) => ({ item: toImport(row), place: row.place }))
      }, orDie)

      const resume = Effect.fn("Imports.resume")(function* (id: ImportId, bytes: number) {
        const token = yield* ids.next
        const [row] = yield* sql`
          update kb.imports set attempt = attempt + 1, attempt_token = ${token}, status = 'running', error_message = null, updated_at = now()
          where id = ${id} and bytes = ${bytes} and status <> 'finished' returning id`
        return row && { id, token }
      }, orDie)

      const advance = Effect.fn("Imports.advance")(function* (
        { id, token }: Sending,
        { place, counts, badLines }: Advance
      ) {
        const kept = badLines === undefined ? null : JSON.stringify(badLines)
        const [row] = yield* orDie(sql`
          update kb.imports set lines = ${place.lines}, bytes = ${place.bytes}, digest = ${place.digest},
            counts = ${JSON.stringify(counts)}::text::jsonb, bad_lines = coalesce(${kept}::text::jsonb, bad_lines), updated_at = now()
          where id = ${id} and attempt_token = ${token} and status = 'running' returning id`)
        if (!row) return yield* new SendingLost({ id })
      })

      const touch = Effect.fn("Imports.touch")(function* ({ id, token }: Sending) {
        yield* sql`
          update kb.imports set updated_at = now() where id = ${id} and attempt_token = ${token} and status = 'running'`
      }, orDie)

      const finish = Effect.fn("Imports.finish")(function* ({ id, token }: Sending) {
        const [row] = yield* orDie(sql`
          update kb.imports set status = 'finished', updated_at = now()
          where id = ${id} and attempt_token = ${token} and status = 'running' returning id`)
        if (!row) return yield* new SendingLost({ id })
      })

      const interrupt = Effect.fn("Imports.interrupt")(function* ({ id, token }: Sending, reason: string) {
        yield* sql`
          update kb.imports set status = 'interrupted', error_message = ${reason}, updated_at = now()
          where id = ${id} and attempt_token = ${token} and status = 'running'`
      }, orDie)

      return Imports.of({ begin, get, list, resume, advance, touch, finish, interrupt })
    })
  )
}

const toImport = (row: ImportRow): Import => ({
  id: row.id,
  format: row.format,
  name: row.name,
  status: row.status,
  attempt: row.attempt,
  lines: Number(row.lines),
  bytes: Number(row.bytes),
  digest: row.digest,
  counts: row.counts,
  badLines: row.badLines,
  errorMessage: row.errorMessage,
  createdBy: row.createdBy,
  createdAt: row.createdAt.toISOString(),
  updatedAt: row.updatedAt.toISOString()
})
