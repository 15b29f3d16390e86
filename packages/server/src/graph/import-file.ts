/**
 * Opens a file of lines at the place from which it is to be imported.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * A new file is opened at its beginning; a file that is sent again behind what
 * is committed of it, after its bytes up to there have shown to be the same.
 * Only then does the sender take the import over, by a statement that succeeds
 * where the import still stands at that place.
 */
import type { BadLine, Import } from "@tropism/api/transfer-api"
import type { ImportId, ProjectId, UserId } from "@tropism/domain/ids"
import { canonicalJson } from "@tropism/domain/json"
import { readTransferLine } from "@tropism/domain/transfer-line"
import { Cause, Effect, Result, type Stream } from "effect"
import type { Database } from "../database/database.ts"
import { transferLimits } from "../limits.ts"
import { type CsvScanner, csvScanner, namesDelimiter } from "./csv-records.ts"
import { type CsvHeader, loneReturns, readCsvHeader, readCsvRow } from "./csv-rows.ts"
import type { ReadLine } from "./import-batch.ts"
import {
  type FilePlace,
  type FileRecord,
  lineScanner,
  makeRecordReader,
  type RecordReader,
  type RecordScanner
} from "./import-records.ts"
import { type ImportRefused, importRefused } from "./import-refused.ts"
import {
  type FileBrokeOff,
  type ImportSource,
  makeImportSource,
  nothingSkipped,
  type Skipped,
  skipBytes
} from "./import-source.ts"
import type { ImportedFile, Imports, Sending } from "./imports.ts"
import { findSyntaxFault } from "./json-syntax.ts"

/** What somebody sends to be imported. */
export interface LineImport<E = never> {
  readonly projectId: ProjectId
  readonly by: UserId
  readonly file: ImportedFile
  /** The id that a new import is to have. */
  readonly id: ImportId | undefined
  /** The import to go on with. */
  readonly resume: ImportId | undefined
  readonly totalBytes: number | null
  readonly body: Stream.Stream<Uint8Array, E>
  /** Done once the sender may import no more. */
  readonly lost: Effect.Effect<void>
}

/** Lines to be committed together, and the place behind them. */
export interface FileBatch {
  readonly lines: ReadonlyArray<ReadLine>
  readonly badLines: ReadonlyArray<BadLine>
  readonly place: FilePlace
}

export interface OpenFile {
  readonly skippedLines: number
  /** What has come and is not committed yet, at most a batch of it; undefined at the end of the file. */
  readonly nextBatch: Effect.Effect<FileBatch | undefined, FileBrokeOff>
  readonly close: Effect.Effect<void>
}

export interface Opened {
  readonly sending: Sending
  readonly file: OpenFile
  /** What was committed before; undefined for a new import. */
  readonly record: Import | undefined
}

interface Keepers {
  readonly database: Database["Service"]
  readonly imports: Imports["Service"]
}

/** Opens the file and takes the import; nothing stays open when that is refused. */
export const openFile = Effect.fnUntraced(function* <E>(request: LineImport<E>, keepers: Keepers) {
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

/** An id is one import's on the whole server; whether it is another project's is not this one's affair. */
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

/** Passes over what is committed; when that grows meanwhile, because the sender before is still at work, over that too. */
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

/** Opens behind what was skipped. Of a CSV file the header is read, from where it stands at the beginning. */
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
  if (file.format === "jsonl") {
    const pieceReader = { reader: makeReader(place, lineScanner()), source, pieces }
    // A sender that waits for leave to send its body (Expect: 100-continue) has it before the answer begins.
    if (pieces.length === 0) yield* feed(pieceReader)
    return openReader(pieceReader, place.lines, readJsonRecord)
  }
  const { delimiter } = file.settings
  const scanner = csvScanner(delimiter)
  if (place.bytes === 0) {
    const pieceReader = { reader: makeReader(place, scanner), source, pieces }
    const header = yield* headerOf(nextRecord(pieceReader), file, scanner)
    return openReader(pieceReader, 0, (text) => readCsvRow(text, header))
  }
  const beginning = makeReader({ bytes: 0, lines: 0 }, scanner, nothingSkipped().hash)
  beginning.push(head)
  const header = yield* headerOf(Effect.sync(beginning.next), file, scanner)
  const pieceReader = { reader: makeReader(place, csvScanner(header.delimiter)), source, pieces }
  return openReader(pieceReader, place.lines, (text) => readCsvRow(text, header))
})

interface PieceReader {
  readonly reader: RecordReader
  readonly source: ImportSource
  /** What has come and was not given to the reader yet. */
  readonly pieces: Array<Uint8Array>
}

/** Gives the reader more to read; false at the end of the file. */
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

/** Reads the columns; before them may stand a line that names the delimiter. */
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

/** By its mark; or, without one, by the empty half of each character of the first line. */
const isUtf16 = (bytes: Uint8Array): boolean => {
  const [first, second] = bytes
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff)) return true
  const beginning = bytes.subarray(0, 64)
  return [0, 1].some((half) => {
    const halves = beginning.filter((_, index) => index % 2 === half)
    return halves.length > 1 && halves.filter((byte) => byte === 0).length * 2 > halves.length
  })
}

const latin1 = new TextDecoder("latin1")
const lineFeed = 10
const carriageReturn = 13

type ReadRecord = (text: string) => ReturnType<typeof readCsvRow>

const openReader = (pieceReader: PieceReader, skippedLines: number, read: ReadRecord): OpenFile => {
  let hasMore = true
  const nextBatch: OpenFile["nextBatch"] = Effect.gen(function* () {
    while (true) {
      const batch = batchOf(pieceReader.reader, read)
      if (batch || !hasMore) return batch
      hasMore = yield* feed(pieceReader)
    }
  })
  return { skippedLines, nextBatch, close: pieceReader.source.close }
}

/** The whole records that are here, at most a batch of them. */
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
