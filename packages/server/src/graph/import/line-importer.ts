/**
 * Imports a file of lines while it comes: read, committed and told in batches.
 *
 * Each batch is one transaction that also says in the import's record how far
 * the file is committed. So whatever dies, sending the file again with the
 * import's id goes on behind the last committed line, and no line works twice;
 * the digest of what is skipped shows that it is the same file.
 */
import type { BadLine, ImportLine, LineCounts, Import } from "@tropism/api/transfer-api"
import { direct } from "@tropism/domain/actor"
import type { ImportId, ProjectId, UserId } from "@tropism/domain/ids"
import { canonicalJson } from "@tropism/domain/json"
import { beginningOf } from "@tropism/domain/text-beginning"
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
  readCsvHeader,
  readCsvRow
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

/** An import that somebody is sending a file for. */
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
    /** Reads as much as it needs to judge whether the import may begin or go on; the rest is read while the answer is sent. */
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

      /** Commits a batch together with how far it is; done again when other writers were in its way. */
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

      /** Commits all that comes, until the file ends. */
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

      /** Leaves an import so that it can be gone on with, and says so. */
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
        // What is held, or away, may be there when the file is sent again.
        const passing = passingFault(error)
        if (passing !== undefined) return leave(session, passing)
        return Effect.andThen(
          Effect.logError("An import failed", cause),
          leave(session, "The server failed; its log says why")
        )
      }

      /** Works until the file ends, or its sender goes or may import no more. */
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

/** Whatever a line holds, what is wrong with it can be kept and told. */
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

// Opens a file of lines at the place from which it is to be imported.
//
// A new file is opened at its beginning; a file that is sent again behind what
// is committed of it, after its bytes up to there have shown to be the same.
// Only then does the sender take the import over, by a statement that succeeds
// where the import still stands at that place.

/** What somebody sends to be imported. */
interface LineImport<E = never> {
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
interface FileBatch {
  readonly lines: ReadonlyArray<ReadLine>
  readonly badLines: ReadonlyArray<BadLine>
  readonly place: FilePlace
}

interface OpenFile {
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

// Finds where a text stops being JSON, which the engine's own parser does not say.
//
// One pass without recursion, asked only after the parser has refused a text:
// a file of ten thousand lines with a merge conflict in it is mended in a
// moment by somebody who knows the line. It decodes nothing.

/** A place in a text, both counted from 1; the column in UTF-16 units. */
export interface TextPlace {
  readonly line: number
  readonly column: number
  /** What stands there, shortened; empty at the end of the text. */
  readonly excerpt: string
}

/** The first place where a text breaks JSON's grammar, or undefined when it does not. */
export const findSyntaxFault = (text: string): TextPlace | undefined => {
  const offset = faultOffset(text)
  return offset === undefined ? undefined : placeOf(text, offset)
}

const excerptMaxChars = 40

const placeOf = (text: string, offset: number): TextPlace => {
  const lineStart = text.lastIndexOf("\n", offset - 1) + 1
  let line = 1
  for (let at = text.indexOf("\n"); at !== -1 && at < lineStart; at = text.indexOf("\n", at + 1)) line += 1
  const rest = beginningOf(text.slice(offset), excerptMaxChars).split("\n", 1)[0] ?? ""
  return { line, column: offset - lineStart + 1, excerpt: rest.trimEnd() }
}

const space = /[ \t\n\r]*/y
const scalar = /true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const plainText = /[ !#-[\]-\uffff]*/y
const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** Where a sticky pattern ends when it matches at a position, or undefined. */
const matchEnd = (pattern: RegExp, text: string, at: number): number | undefined => {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : undefined
}

/** What may come next: a value, a key, or what follows a value. `first` allows the container to end at once. */
type Expectation = "value" | "firstValue" | "key" | "firstKey" | "afterValue"

const faultOffset = (text: string): number | undefined => {
  const open: Array<"{" | "["> = []
  let expected: Expectation = "value"
  let at = 0
  while (true) {
    at = matchEnd(space, text, at) ?? at
    const char = text[at]
    if (expected === "afterValue" && open.length === 0) return char === undefined ? undefined : at
    if (char === undefined) return at
    const isClosing = char === "}" || char === "]"
    if (isClosing && expected !== "value" && expected !== "key") {
      if (open.at(-1) !== (char === "}" ? "{" : "[")) return at
      open.pop()
      expected = "afterValue"
      at += 1
    } else if (expected === "afterValue") {
      if (char !== ",") return at
      expected = open.at(-1) === "{" ? "key" : "value"
      at += 1
    } else if (expected === "key" || expected === "firstKey") {
      const keyEnd = stringEnd(text, at)
      if (!keyEnd.isWhole) return keyEnd.at
      const colon = matchEnd(space, text, keyEnd.at) ?? keyEnd.at
      if (text[colon] !== ":") return colon
      expected = "value"
      at = colon + 1
    } else if (char === "{" || char === "[") {
      open.push(char)
      expected = char === "{" ? "firstKey" : "firstValue"
      at += 1
    } else if (char === '"') {
      const end = stringEnd(text, at)
      if (!end.isWhole) return end.at
      expected = "afterValue"
      at = end.at
    } else {
      const end = matchEnd(scalar, text, at)
      if (end === undefined) return at
      expected = "afterValue"
      at = end
    }
  }
}

/** Where a string ends, or where it breaks. */
const stringEnd = (text: string, start: number): { readonly at: number; readonly isWhole: boolean } => {
  if (text[start] !== '"') return { at: start, isWhole: false }
  let at = start + 1
  while (true) {
    at = matchEnd(plainText, text, at) ?? at
    if (text[at] === '"') return { at: at + 1, isWhole: true }
    const end = matchEnd(escape, text, at)
    if (end === undefined) return { at, isWhole: false }
    at = end
  }
}
