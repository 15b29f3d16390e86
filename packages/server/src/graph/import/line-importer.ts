/**
 * Imports a file of lines as it arrives: reads, commits and reports in batches.
 *
 * **Invariant** Each batch is one transaction that also records how far the file is committed. After any crash, sending
 * the file again with the import's id continues after the last committed line, and no line is applied twice. The digest
 * of the skipped bytes proves that it is the same file.
 */
import type { BadLine, ImportLine, LineCounts, Import } from "@tropism/api/transfer-api"
import { direct } from "@tropism/domain/actor"
import type { ImportId, ProjectId, UserId } from "@tropism/domain/ids"
import { canonicalJson } from "@tropism/domain/json"
import { readTransferLine } from "@tropism/domain/transfer-line"
import { Cause, Context, Effect, Layer, Predicate, Schedule, Stream, Result } from "effect"
import { SqlClient } from "effect/sql"
import { passingFault } from "../../database/connection-errors.ts"
import { Database } from "../../database/database.ts"
import { transferLimits } from "../../limits.ts"
import {
  type CsvScanner,
  csvScanner,
  namesDelimiter,
  type CsvHeader,
  loneReturns,
  needsSample,
  readCsvHeader,
  readCsvRow,
  columnEvidence
} from "./csv.ts"
import { ImportBatch, type ReadLine } from "./import-batch.ts"
import {
  type FilePlace,
  keepableText,
  type FileRecord,
  lineScanner,
  makeRecordReader,
  type RecordReader,
  type RecordScanner
} from "./import-records.ts"
import {
  countAsGrown,
  type ImportAnswer,
  makeImportAnswer,
  type ImportRefused,
  FileBrokeOff,
  senderLost,
  ImportTurns,
  Imports,
  noCounts,
  type Sending,
  type SendingLost,
  importRefused,
  type ImportSource,
  makeImportSource,
  nothingSkipped,
  type Skipped,
  skipBytes,
  type ImportedFile
} from "./imports.ts"
import { findSyntaxFault } from "./json-syntax.ts"

/** An import whose file is being sent. */
interface Session {
  readonly request: LineImport<unknown>
  readonly sending: Sending
  readonly file: OpenFile
  readonly answer: ImportAnswer
  counts: LineCounts
  badLines: ReadonlyArray<BadLine>
  lines: number
}

export class LineImporter extends Context.Service<
  LineImporter,
  {
    /** Reads enough to decide whether the import may start or resume; reads the rest while the answer is sent. */
    readonly open: <E>(request: LineImport<E>) => Effect.Effect<Stream.Stream<ImportLine>, ImportRefused>
  }
>()("@tropism/server/graph/LineImporter") {
  static readonly layer = Layer.effect(
    LineImporter,
    Effect.gen(function* () {
      const database = yield* Database
      const sql = yield* SqlClient.SqlClient
      const imports = yield* Imports
      const batch = yield* ImportBatch
      const turns = yield* ImportTurns

      /** Commits a batch together with its position; retries when other writers were in its way. */
      const commit = (
        session: Session,
        { lines, badLines, place }: FileBatch,
        tries: number
      ): Effect.Effect<void, SendingLost | FileBrokeOff> => {
        const { projectId, by, file } = session.request
        const author = { actor: { actorType: "user", actorId: by }, cause: direct } as const
        const care = tries === 1 ? "quick" : tries < transferLimits.batchCarefulTries ? "careful" : "last"
        const transaction = Effect.gen(function* () {
          const outcome = yield* batch.apply(
            lines,
            { author, untrusted: file.settings.untrusted === true },
            care
          )
          const bad = [...badLines, ...outcome.badLines].toSorted((a, b) => a.line - b.line).map(keepable)
          const counts = addCounts(session.counts, outcome.counts, badLines.length)
          const shown = [...session.badLines, ...bad].slice(0, transferLimits.badLinesShown)
          const hasNews = shown.length > session.badLines.length
          yield* imports.advance(session.sending, { place, counts, badLines: hasNews ? shown : undefined })
          return { counts, shown }
        })
        return turns.batch(database.inProject(projectId, transaction)).pipe(
          Effect.flatMap(({ counts, shown }) => {
            const news = shown.slice(session.badLines.length)
            session.counts = counts
            session.badLines = shown
            session.lines = place.lines
            return session.answer.tell(
              ...news.map((one): ImportLine => ({ type: "badLine", ...one })),
              progressOf(session, place)
            )
          }),
          Effect.catchTag("BatchUndone", () =>
            tries < transferLimits.batchTries
              ? commit(session, { lines, badLines, place }, tries + 1)
              : Effect.fail(new FileBrokeOff({ detail: "Others change the same objects all the time" }))
          )
        )
      }

      /** Commits batches until the file ends. */
      const work = Effect.fn("LineImporter.work")(function* (session: Session) {
        const { file, sending, request } = session
        const count = countAsGrown(sql, session.lines)
        while (true) {
          const next = yield* file.nextBatch
          if (!next) break
          yield* commit(session, next, 1)
          yield* count(session.lines)
        }
        yield* database.inProject(request.projectId, imports.finish(sending))
        yield* session.answer.tell(finishedOf(session))
      })

      /** Marks the import as interrupted and resumable, and reports it. */
      const leave = (session: Session, reason: string) =>
        database.inProject(session.request.projectId, imports.interrupt(session.sending, reason)).pipe(
          Effect.catchCause((cause) => Effect.logWarning("An import's end could not be kept", cause)),
          Effect.andThen(
            session.answer.tell({
              type: "failed",
              message: `${reason}. Send the file again to go on.`,
              resume: session.sending.id
            })
          )
        )

      const lost = (session: Session) =>
        session.answer.tell({
          type: "failed",
          message: "The same import is being gone on with by somebody else, who has it now"
        })

      const ended = (
        session: Session,
        cause: Cause.Cause<SendingLost | FileBrokeOff>
      ): Effect.Effect<void> => {
        if (Cause.hasInterrupts(cause)) return leave(session, "The connection to the sender ended")
        const error = Cause.squash(cause)
        if (isTagged(error, "SendingLost")) return lost(session)
        if (isTagged(error, "FileBrokeOff")) return leave(session, (error as FileBrokeOff).detail)
        // A lock or an outage may be gone when the file is sent again.
        const passing = passingFault(error)
        if (passing !== undefined) return leave(session, passing)
        return Effect.andThen(
          Effect.logError("An import failed", cause),
          leave(session, "The server failed; its log says why")
        )
      }

      /** Runs until the file ends, its sender disconnects, or the sender's authority is gone. */
      const run = (session: Session): Stream.Stream<ImportLine> =>
        Stream.unwrap(
          Effect.gen(function* () {
            const { request, sending, answer, file } = session
            yield* Effect.addFinalizer(() => file.close)
            yield* answer.tell({ type: "started", importId: sending.id, skippedLines: file.skippedLines })
            const stillThere = Effect.ignoreCause(
              database.inProject(request.projectId, imports.touch(sending))
            )
            yield* Effect.forkScoped(
              Effect.repeat(stillThere, Schedule.spaced(transferLimits.touchIntervalMs))
            )
            yield* Effect.raceFirst(
              work(session),
              Effect.andThen(request.lost, Effect.fail(senderLost))
            ).pipe(
              Effect.onError((cause) => ended(session, cause)),
              Effect.ignoreCause,
              Effect.ensuring(answer.end),
              Effect.forkScoped
            )
            return answer.lines
          })
        )

      const open = Effect.fn("LineImporter.open")(function* <E>(request: LineImport<E>) {
        const { sending, file, record } = yield* openFile(request, { database, imports })
        return run({
          request,
          sending,
          file,
          answer: yield* makeImportAnswer,
          counts: record?.counts ?? noCounts,
          badLines: record?.badLines ?? [],
          lines: record?.lines ?? 0
        })
      })

      return LineImporter.of({ open })
    })
  )
}

const isTagged = (error: unknown, tag: string): boolean => Predicate.isTagged(error, tag)

/** Makes the message of a bad line storable, whatever the line contains. */
const keepable = ({ line, message }: BadLine): BadLine => ({
  line,
  message: keepableText(message, transferLimits.badLineMaxChars)
})

const addCounts = (before: LineCounts, more: LineCounts, unread: number): LineCounts => ({
  created: before.created + more.created,
  updated: before.updated + more.updated,
  unchanged: before.unchanged + more.unchanged,
  relationshipsCreated: before.relationshipsCreated + more.relationshipsCreated,
  relationshipsUpdated: before.relationshipsUpdated + more.relationshipsUpdated,
  relationshipsUnchanged: before.relationshipsUnchanged + more.relationshipsUnchanged,
  failed: before.failed + more.failed + unread
})

const progressOf = ({ request, counts }: Session, place: FilePlace): ImportLine => ({
  type: "progress",
  done: place.bytes,
  total: request.totalBytes,
  lines: place.lines,
  counts
})

const finishedOf = ({ sending, counts, lines }: Session): ImportLine => ({
  type: "finished",
  importId: sending.id,
  lines,
  ...counts,
  deleted: 0,
  relationshipsDeleted: 0
})

// Opens a file of lines at the position from which to import it.
//
// A new file opens at its beginning. A file that is sent again opens after its committed bytes, once their digest matches. Only
// then does the sender take the import over, by a statement that requires the import to be at that position still.

/** A request to import a file. */
interface LineImport<E = never> {
  readonly projectId: ProjectId
  readonly by: UserId
  readonly file: ImportedFile
  /** The id for a new import. */
  readonly id: ImportId | undefined
  /** The import to resume. */
  readonly resume: ImportId | undefined
  readonly totalBytes: number | null
  readonly body: Stream.Stream<Uint8Array, E>
  /** Completes when the sender's authority is gone. */
  readonly lost: Effect.Effect<void>
}

/** Lines to commit together, and the position after them. */
interface FileBatch {
  readonly lines: ReadonlyArray<ReadLine>
  readonly badLines: ReadonlyArray<BadLine>
  readonly place: FilePlace
}

interface OpenFile {
  readonly skippedLines: number
  /** The lines that have arrived and are not committed, at most a batch; undefined at the end of the file. */
  readonly nextBatch: Effect.Effect<FileBatch | undefined, FileBrokeOff>
  readonly close: Effect.Effect<void>
}

export interface Opened {
  readonly sending: Sending
  readonly file: OpenFile
  /** The record of an earlier sending; undefined for a new import. */
  readonly record: Import | undefined
}

interface Keepers {
  readonly database: Database["Service"]
  readonly imports: Imports["Service"]
}

/** Opens the file and takes the import; closes the file when that is refused. */
const openFile = Effect.fnUntraced(function* <E>(request: LineImport<E>, keepers: Keepers) {
  const source = yield* makeImportSource(request.body)
  const opening: Effect.Effect<Opened, FileBrokeOff | ImportRefused> =
    request.resume === undefined
      ? openNew(request, source, keepers)
      : openAgain(request, request.resume, source, keepers)
  return yield* opening.pipe(
    Effect.catchTag("FileBrokeOff", ({ detail }) => Effect.fail(importRefused("invalid", detail))),
    Effect.onError(() => source.close)
  )
})

const openNew = Effect.fnUntraced(function* (
  { file, projectId, by, id }: LineImport<unknown>,
  source: ImportSource,
  { database, imports }: Keepers
) {
  const open = yield* openAt(file, source, nothingSkipped(), { bytes: 0, lines: 0 })
  const sending = yield* database.inProject(projectId, imports.begin(file, id, by))
  if (!sending) return yield* importRefused("idTaken", yield* whoseIdIs(projectId, id, { database, imports }))
  return { sending, file: open, record: undefined } satisfies Opened
})

/** Ids of imports are unique on the server; an id of another project reads as taken. */
const whoseIdIs = Effect.fnUntraced(function* (
  projectId: ProjectId,
  id: ImportId | undefined,
  { database, imports }: Keepers
) {
  const own = id && (yield* database.inProject(projectId, imports.get(id)))
  return own
    ? `There is an import ${id} already: go on with it by ?resume=${id}`
    : `The id ${id} cannot be given to this import: choose another one`
})

/** Skips the committed bytes, and more when the earlier sender commits further in the meantime. */
const openAgain = Effect.fnUntraced(function* (
  { file, projectId }: LineImport<unknown>,
  id: ImportId,
  source: ImportSource,
  { database, imports }: Keepers
) {
  let skipped: Skipped | undefined = nothingSkipped()
  let bytes = 0
  while (true) {
    const kept = yield* database.inProject(projectId, imports.get(id))
    if (!kept) return yield* importRefused("noImport", "There is no such import")
    const { record, settings } = kept
    if (record.status === "finished")
      return yield* importRefused("finished", "This import is finished: there is nothing left to go on with")
    if (file.format !== record.format || canonicalJson(file.settings) !== canonicalJson(settings)) {
      return yield* importRefused(
        "otherSettings",
        `This import began as ${record.format} with ${canonicalJson(settings)}: go on with the same`
      )
    }
    skipped = yield* skipBytes(source, skipped, record.bytes - bytes)
    bytes = record.bytes
    if (!skipped || skipped.hash.copy().digest("hex") !== record.digest) {
      return yield* importRefused(
        "otherFile",
        `This is not the file that the import began with: its first ${record.bytes} bytes, which are committed, differ. Import it on its own`
      )
    }
    const sending = yield* database.inProject(projectId, imports.resume(id, record.bytes))
    if (!sending) continue
    const open = yield* openAt(file, source, skipped, record).pipe(
      Effect.onError((cause) =>
        database.inProject(projectId, imports.interrupt(sending, whyNotOpened(cause)))
      )
    )
    return { sending, file: open, record } satisfies Opened
  }
})

const whyNotOpened = (cause: Cause.Cause<FileBrokeOff | ImportRefused>): string => {
  const failure = cause.reasons.find(Cause.isFailReason)
  if (failure) return failure.error.detail
  return Cause.hasInterrupts(cause)
    ? "The connection to the sender ended"
    : "The server failed; its log says why"
}

/** Opens the file after the skipped bytes. Reads the beginning of a CSV file for its columns and number forms. */
const openAt = Effect.fnUntraced(function* (
  file: ImportedFile,
  source: ImportSource,
  { hash, head, rest }: Skipped,
  place: { readonly bytes: number; readonly lines: number }
) {
  const makeReader = (
    start: { readonly bytes: number; readonly lines: number },
    scanner: RecordScanner,
    seen = hash
  ) =>
    makeRecordReader({
      scanner,
      maxBytes: transferLimits.lineMaxBytes,
      start: { ...start, hash: seen }
    })
  const pieces = [...rest]
  // A sender that waits for `100 Continue` receives it before the response begins.
  if (pieces.length === 0) pieces.push(...((yield* source.next) ?? []))
  const otherFile = otherFileIn(head.length > 0 ? head : (pieces[0] ?? head))
  if (otherFile !== undefined) return yield* importRefused("invalid", otherFile)
  if (file.format === "jsonl") {
    const pieceReader = { reader: makeReader(place, lineScanner()), source, pieces }
    return openReader(pieceReader, place.lines, readJsonRecord)
  }
  const scanner = csvScanner(file.settings.delimiter)
  const beginning = {
    reader: makeReader({ bytes: 0, lines: 0 }, scanner, nothingSkipped().hash),
    source: keeping(source, pieces),
    pieces: [head, ...pieces]
  }
  const header = yield* headerOf(nextRecord(beginning), file, scanner)
  const { lines: headerLines } = beginning.reader.place()
  const sample = needsSample(header) ? makeSample(header, beginning) : undefined
  const pieceReader = {
    reader: makeReader(place, csvScanner(header.delimiter)),
    source: sample === undefined ? source : shownTo(sample, source),
    pieces
  }
  if (place.bytes === 0) while (pieceReader.reader.place().lines < headerLines) yield* nextRecord(pieceReader)
  return openReader(
    pieceReader,
    place.lines,
    (text) => readCsvRow(text, sample?.header() ?? header),
    sample?.isAwaited
  )
})

/** A source that also keeps its chunks, because the beginning of a file is read twice. */
const keeping = (source: ImportSource, pieces: Array<Uint8Array>): ImportSource => ({
  ...source,
  next: Effect.tap(source.next, (more) => Effect.sync(() => more && pieces.push(...more)))
})

/** The rows in the first bytes of a file, which decide its number forms; every sending of the file has the same ones. */
interface Sample {
  readonly take: (pieces: ReadonlyArray<Uint8Array> | undefined) => void
  /** True when a number with two readings came and the sample is incomplete; rows wait for the sample then. */
  readonly isAwaited: () => boolean
  readonly header: () => CsvHeader
}

/** Adds the rows that have arrived after the header. */
const makeSample = (named: CsvHeader, { reader, pieces }: PieceReader): Sample => {
  const evidence = columnEvidence(named)
  let whole: CsvHeader | undefined
  let isUnclear = false
  const look = (): void => {
    while (whole === undefined) {
      const record = reader.next()
      if (!record) return
      const text = textOf(record)
      if (reader.place().bytes > transferLimits.numberSampleBytes) whole = evidence.header()
      else if (Result.isSuccess(text) && evidence.see(text.success)) isUnclear = true
    }
  }
  const take: Sample["take"] = (more) => {
    if (whole !== undefined) return
    for (const piece of more ?? []) reader.push(piece)
    if (more === undefined) reader.finish()
    look()
    if (more === undefined) whole ??= evidence.header()
  }
  take(pieces.splice(0))
  return {
    take,
    isAwaited: () => isUnclear && whole === undefined,
    header: () => whole ?? evidence.header()
  }
}

const shownTo = (sample: Sample, source: ImportSource): ImportSource => ({
  ...source,
  next: Effect.tap(source.next, (more) => Effect.sync(() => sample.take(more)))
})

interface PieceReader {
  readonly reader: RecordReader
  readonly source: ImportSource
  /** Chunks that have arrived and are not in the reader yet. */
  readonly pieces: Array<Uint8Array>
}

/** Feeds the reader; false at the end of the file. */
const feed = Effect.fnUntraced(function* ({ reader, source, pieces }: PieceReader) {
  const next = pieces.shift()
  if (next) reader.push(next)
  else {
    const more = yield* source.next
    if (!more) {
      reader.finish()
      return false
    }
    pieces.push(...more)
  }
  return true
})

const nextRecord = Effect.fnUntraced(function* (pieceReader: PieceReader) {
  let hasMore = true
  while (true) {
    const record = pieceReader.reader.next()
    if (record || !hasMore) return record
    hasMore = yield* feed(pieceReader)
  }
})

/** Reads the header, after an optional line that names the delimiter. */
const headerOf = Effect.fnUntraced(function* (
  nextOf: Effect.Effect<FileRecord | undefined, FileBrokeOff>,
  file: ImportedFile,
  scanner: CsvScanner
) {
  const first = yield* nextOf
  const isNaming =
    first !== undefined && first.fault === undefined && namesDelimiter(latin1.decode(first.bytes))
  const record = isNaming ? yield* nextOf : first
  if (!record)
    return yield* importRefused("invalid", "The file is empty: its first line must name the columns")
  const hasLoneReturns =
    !record.bytes.includes(lineFeed) && record.bytes.subarray(0, -1).includes(carriageReturn)
  const text = isUtf16(record.bytes)
    ? Result.fail("The file is UTF-16: save it as UTF-8 (in Excel: CSV UTF-8)")
    : hasLoneReturns
      ? Result.fail(loneReturns)
      : textOf(record)
  const header: Result.Result<CsvHeader, string> = Result.isFailure(text)
    ? Result.fail(text.failure)
    : readCsvHeader(text.success, file.settings, scanner.delimiter())
  return Result.isFailure(header)
    ? yield* importRefused("invalid", `Line 1: ${header.failure}`)
    : header.success
})

/** Recognizes UTF-16 by its mark, or by the zero half of each character in the first line. */
const isUtf16 = (bytes: Uint8Array): boolean => {
  const [first, second] = bytes
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return true
  const beginning = bytes.subarray(0, 64)
  return [0, 1].some((half) => {
    const halves = beginning.filter((_, index) => index % 2 === half)
    return halves.length > 1 && halves.filter((byte) => byte === 0).length * 2 > halves.length
  })
}

/** Returns the format of a binary file by its first bytes; undefined when it may be text. */
const otherFileIn = (bytes: Uint8Array): string | undefined => {
  const beginning = Buffer.from(bytes.subarray(0, 512)).toString("latin1")
  const advice = "export it as CSV (in Excel: CSV UTF-8) and import that file"
  if (beginning.startsWith("PK\u0003\u0004"))
    return /opendocument\.spreadsheet|xl\/|\[Content_Types\]\.xml|_rels\//.test(beginning)
      ? `This is a spreadsheet file (.xlsx or .ods): ${advice}`
      : `This is a ZIP archive, as the spreadsheet files .xlsx and .ods are: unpack it, or if it is a spreadsheet ${advice}`
  if (Buffer.from(bytes.subarray(0, 8)).equals(oldOffice))
    return `This is a spreadsheet file (.xls): ${advice}`
  if (/^\s*(?:<!doctype html|<html|<table|<\?xml)/i.test(beginning.replace(/^\u00ef\u00bb\u00bf/, "")))
    return `This is HTML or XML, which some programs write into spreadsheet files: open it in a spreadsheet program and ${advice}`
  if (beginning.startsWith("\u001f\u008b"))
    return "This file is compressed (gzip): unpack it and import what is in it"
  return undefined
}

/** The first bytes of Office files in the old binary formats. */
const oldOffice = Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1])

const latin1 = new TextDecoder("latin1")
const lineFeed = 10
const carriageReturn = 13

type ReadRecord = (text: string) => ReturnType<typeof readCsvRow>

const openReader = (
  pieceReader: PieceReader,
  skippedLines: number,
  read: ReadRecord,
  isWaiting: () => boolean = () => false
): OpenFile => {
  let hasMore = true
  const nextBatch: OpenFile["nextBatch"] = Effect.gen(function* () {
    while (true) {
      if (!hasMore || !isWaiting()) {
        const batch = batchOf(pieceReader.reader, read)
        if (batch || !hasMore) return batch
      }
      hasMore = yield* feed(pieceReader)
    }
  })
  return { skippedLines, nextBatch, close: pieceReader.source.close }
}

/** Returns the whole records that have arrived, at most a batch. */
const batchOf = (reader: RecordReader, read: ReadRecord): FileBatch | undefined => {
  const lines: Array<ReadLine> = []
  const badLines: Array<BadLine> = []
  let count = 0
  let bytes = 0
  while (count < transferLimits.batchLines && bytes < transferLimits.batchBytes) {
    const record = reader.next()
    if (!record) break
    count += 1
    bytes += record.bytes.length
    const text = textOf(record)
    if (Result.isFailure(text)) badLines.push({ line: record.line, message: text.failure })
    else {
      const value = read(text.success)
      if (value && Result.isFailure(value)) {
        const { pointer, message } = value.failure
        badLines.push({ line: record.line, message: pointer === "" ? message : `${pointer}: ${message}` })
      } else if (value) lines.push({ line: record.line, value: value.success })
    }
  }
  return count === 0 ? undefined : { lines, badLines, place: reader.place() }
}

const textOf = ({ bytes, fault }: FileRecord): Result.Result<string, string> =>
  fault === undefined
    ? Result.try({
        try: () => utf8.decode(bytes),
        catch: () => "The line is not UTF-8 text: save the file as UTF-8"
      })
    : Result.fail(fault)

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

const readJsonRecord: ReadRecord = (text) =>
  text.trim() === "" ? undefined : readTransferLine(text, syntaxOf)

const syntaxOf = (text: string): string => {
  const place = findSyntaxFault(text)
  if (!place) return "The line is not JSON"
  return place.excerpt === ""
    ? "The line is not JSON: it breaks off"
    : `The line is not JSON: column ${place.column} reads ${place.excerpt}`
}
