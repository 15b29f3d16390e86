/**
 * Stores imports: how far each file is committed, and which sender may continue it.
 *
 * **Invariant** Each sending holds the import by its own token, and every write names the token: a later sending takes
 * the import over, and the earlier one can commit nothing more. `advance` runs in the transaction that commits the
 * lines, so the record always matches the graph.
 */
import { createHash, type Hash } from "node:crypto"
import {
  BadLine,
  type Import,
  type ImportStatus,
  LineCounts,
  type LineFormat,
  type ImportLine
} from "@tropism/api/transfer-api"
import type { ImportId, UserId, ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Schema, Semaphore, Latch, Option, Stream, Exit, Pull, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../../database/database.ts"
import { makeTurns } from "../../database/export-backpressure.ts"
import { Ids } from "../../ids.ts"
import { transferLimits } from "../../limits.ts"
import type { LineSettings } from "./csv.ts"
import { type FilePlace, newHash } from "./import-records.ts"

/** The format of a file and how to read it. */
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

/** What a committed batch adds to the record. */
export interface Advance {
  readonly place: FilePlace
  readonly counts: LineCounts
  /** All bad lines to show; undefined when none were added. */
  readonly badLines: ReadonlyArray<BadLine> | undefined
}

/** Another sending took the import over, or the import has ended. */
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

/** An import with the options for reading its file. */
export interface KeptImport {
  readonly record: Import
  readonly settings: LineSettings
}

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

export class Imports extends Context.Service<
  Imports,
  {
    /** Starts an import; undefined when the id is taken. */
    readonly begin: (
      file: ImportedFile,
      id: ImportId | undefined,
      by: UserId
    ) => InProject<Sending | undefined>
    readonly get: (id: ImportId) => InProject<KeptImport | undefined>
    /** Newest first, after a position. Ids give no order, because a command may choose the id of its import. */
    readonly list: (
      after: string | undefined,
      limit: number
    ) => InProject<ReadonlyArray<{ readonly item: Import; readonly place: string }>>
    /** Resumes an import at this position; undefined when it has moved or ended. */
    readonly resume: (id: ImportId, bytes: number) => InProject<Sending | undefined>
    /** Records the position that this transaction commits. */
    readonly advance: (sending: Sending, to: Advance) => InProject<void, SendingLost>
    /** Sends the import's heartbeat. */
    readonly touch: (sending: Sending) => InProject<void>
    readonly finish: (sending: Sending) => InProject<void, SendingLost>
    /** Marks an import as interrupted and resumable; no error when another sending has it. */
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

      /** A running import without a recent heartbeat reads as interrupted. */
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

// Reasons for which an import may not start or resume.
//
// Nothing was written, and a sender already running the import is not disturbed.

export class ImportRefused extends Schema.TaggedError<ImportRefused>()("ImportRefused", {
  reason: Schema.Literals(["noImport", "idTaken", "finished", "otherFile", "otherSettings", "invalid"]),
  detail: Schema.String
}) {}

export const importRefused = (reason: ImportRefused["reason"], detail: string): ImportRefused =>
  new ImportRefused({ reason, detail })

// Limits how much import work a server does at once, across all imports.
//
// A lockfile is in memory as a whole while it is read and imported, and a batch holds a connection. A lockfile is not read
// before it has its slot.

export class ImportTurns extends Context.Service<
  ImportTurns,
  {
    /** Commits a batch of any import. */
    readonly batch: <A, E, R>(commit: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
    /** Reads and imports a lockfile, one per project at a time. */
    readonly lockfile: <A, E, R>(projectId: ProjectId, work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  }
>()("@tropism/server/graph/ImportTurns") {
  static readonly layer = Layer.effect(
    ImportTurns,
    Effect.gen(function* () {
      const batches = yield* Semaphore.make(transferLimits.concurrentBatches)
      const lockfile = yield* makeTurns(transferLimits.concurrentLockfiles)
      return ImportTurns.of({ batch: batches.withPermits(1), lockfile })
    })
  )
}

// Buffers the progress of an import for its sender, which may read slowly.
//
// A sender may send its whole file before it reads the answer, so the import never waits for it: only the newest progress is
// kept, and the number of bad lines is bounded.

export interface ImportAnswer {
  readonly tell: (...lines: ReadonlyArray<ImportLine>) => Effect.Effect<void>
  /** Ends the answer. */
  readonly end: Effect.Effect<void>
  /** The lines of the answer, until its end. */
  readonly lines: Stream.Stream<ImportLine>
}

export const makeImportAnswer: Effect.Effect<ImportAnswer> = Effect.sync(() => {
  const news = Latch.makeUnsafe(false)
  let waiting: Array<ImportLine> = []
  let progress: ImportLine | undefined
  let isOver = false

  const take = Effect.sync(() => {
    news.closeUnsafe()
    const taken = [...waiting.splice(0), ...(progress ? [progress] : [])]
    progress = undefined
    return [taken, isOver ? Option.none<void>() : Option.some<void>(undefined)] as const
  })

  return {
    tell: (...lines) =>
      Effect.sync(() => {
        for (const line of lines) {
          if (line.type === "progress") progress = line
          else if (isLast(line)) {
            waiting = [...waiting, ...(progress ? [progress] : []), line]
            progress = undefined
          } else waiting.push(line)
        }
        news.openUnsafe()
      }),
    end: Effect.sync(() => {
      isOver = true
      news.openUnsafe()
    }),
    lines: Stream.paginate(undefined as void, () => Effect.andThen(news.await, take))
  }
})

/** The outcome is the last line; the sender decides by it whether to send again. */
const isLast = ({ type }: ImportLine): boolean => type === "finished" || type === "failed"

// The body of an import request, read in chunks; it may break off.
//
// Nothing is read ahead: the sender waits while a batch is committed. Reading may start before the response and continue while
// it is sent, so the body has its own scope, which the sender of the response closes.

/** The body ended before the file did. */
export class FileBrokeOff extends Schema.TaggedError<FileBrokeOff>()("FileBrokeOff", {
  detail: Schema.String
}) {}

/** The sender's authority is gone. */
export const senderLost = new FileBrokeOff({
  detail: "The token that it was sent with is not good any more, or has another role by now"
})

export interface ImportSource {
  /** The next chunks of the file, or undefined at its end. */
  readonly next: Effect.Effect<ReadonlyArray<Uint8Array> | undefined, FileBrokeOff>
  readonly close: Effect.Effect<void>
}

export const makeImportSource = Effect.fnUntraced(function* <E>(body: Stream.Stream<Uint8Array, E>) {
  const scope = yield* Scope.make()
  const pull = yield* Scope.provide(Stream.toPull(body), scope)
  let isAtEnd = false
  const pulled = pull.pipe(
    Effect.map((pieces): ReadonlyArray<Uint8Array> | undefined => pieces),
    Pull.catchDone(() => Effect.sync(() => void (isAtEnd = true))),
    Effect.catch(() => Effect.fail(new FileBrokeOff({ detail: "The file is larger than an import takes" }))),
    Effect.catchDefect(() =>
      Effect.fail(new FileBrokeOff({ detail: "The connection broke before the whole file had come" }))
    ),
    Effect.timeoutOrElse({
      duration: transferLimits.senderSilenceMs,
      orElse: () =>
        Effect.fail(
          new FileBrokeOff({
            detail: `Nothing of the file came for ${transferLimits.senderSilenceMs / 1_000} s`
          })
        )
    })
  )
  // A second read at the end of the file must also find the end.
  const next = Effect.suspend(() => (isAtEnd ? Effect.succeed(undefined) : pulled))
  return { next, close: Scope.close(scope, Exit.void) } satisfies ImportSource
})

/** The skipped beginning of a file: its hash, its first bytes, and the bytes that arrived after it. */
export interface Skipped {
  readonly hash: Hash
  readonly head: Uint8Array
  readonly rest: ReadonlyArray<Uint8Array>
}

export const nothingSkipped = (): Skipped => ({
  hash: createHash("sha256"),
  head: new Uint8Array(0),
  rest: []
})

/** Skips `count` more bytes; undefined when the file ends before. */
export const skipBytes = Effect.fnUntraced(function* (source: ImportSource, before: Skipped, count: number) {
  const hash = before.hash.copy()
  let head = before.head
  let left = count
  let pieces = before.rest
  while (true) {
    const rest: Array<Uint8Array> = []
    for (const piece of pieces) {
      const passed = piece.subarray(0, left)
      hash.update(passed)
      left -= passed.length
      if (head.length < transferLimits.lineMaxBytes)
        head = new Uint8Array(
          Buffer.concat([head, passed.subarray(0, transferLimits.lineMaxBytes - head.length)])
        )
      if (passed.length < piece.length) rest.push(piece.subarray(passed.length))
    }
    if (left === 0) return { hash, head, rest } satisfies Skipped
    const next = yield* source.next
    if (!next) return undefined
    pieces = next
  }
})

// Analyzes tables that grow while a file is imported.
//
// A plan made while a table was empty reads, for each line, all rows of the lines before it. Autovacuum analyzes within a
// minute; by then a file may be in, or may need hours.

/** Call between transactions with the number of lines done: analyzes early, and each time that number has doubled. */
export const countAsGrown = (
  sql: SqlClient.SqlClient,
  doneBefore: number
): ((done: number) => Effect.Effect<void>) => {
  let countAt = doneBefore + transferLimits.countAfterLines
  return (done) =>
    Effect.suspend(() => {
      if (done < countAt) return Effect.void
      countAt = 2 * done
      return Effect.catchCause(sql`select kb.count_grown_tables()`, (cause) =>
        Effect.logWarning("Grown tables could not be counted", cause)
      )
    })
}
