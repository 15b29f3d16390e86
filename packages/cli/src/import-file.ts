/**
 * Sends a file to the server and shows how far the import has come.
 *
 * Whatever breaks off is sent again: a file of lines with the id of its import,
 * so that the server goes on behind the last line that it committed, a lockfile
 * as it is, since what is there already changes nothing. The id is chosen here,
 * so it is known whatever becomes of the first answer.
 */
import { randomUUID } from "node:crypto"
import {
  type BadLine,
  type ImportFormat,
  type ImportLine,
  importMaxBytes,
  lockfileMaxBytes
} from "@tropism/api/transfer-api"
import { isUnreachable, statusOf } from "@tropism/client/failure-sentence"
import { ImportId } from "@tropism/domain/ids"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Effect, FileSystem, Path, Schema, Stdio, Stream } from "effect"
import type { Access } from "./access.ts"
import { type Failure, failure, requestFailure, retold } from "./failure.ts"
import { importFormat } from "./import-format.ts"
import { limits } from "./limits.ts"
import { makeNotice, makeWord } from "./notice.ts"
import { JsonFlag, QuietFlag } from "./settings.ts"
import { Screen } from "./terminal/screen.ts"
import { printable } from "./terminal/text.ts"
import { transferProgress } from "./transfer-progress.ts"

export type ImportSummary = Extract<ImportLine, { readonly type: "finished" }>

/** What is to be imported, and how it is to be understood. */
export interface ImportRequest {
  /** A path, or `-` for standard input. */
  readonly file: string
  readonly format?: ImportFormat | undefined
  /** CSV: the type of rows that name none, and the column of the keys. */
  readonly type?: string | undefined
  readonly key?: string | undefined
  /** CSV: what stands between fields, or its name. */
  readonly delimiter?: string | undefined
  /** CSV: the decimal mark of all numbers. */
  readonly decimal?: "comma" | "point" | undefined
  /** Whether what the file says is untrusted. */
  readonly untrusted?: boolean | undefined
  /** The import to go on with. */
  readonly resume?: ImportId | undefined
}

/** What an import did, and the lines that did nothing. */
export interface ImportResult {
  readonly summary: ImportSummary
  readonly badLines: ReadonlyArray<BadLine>
}

/** A sending that another one may go on with. */
class BrokenOff extends Schema.TaggedError<BrokenOff>()("BrokenOff", {
  reason: Schema.String,
  /** Whether the server itself said so, and so was there. */
  isTold: Schema.Boolean
}) {}

const standardInput = "-"

/** Imports a file and returns what changed. */
export const importFile = (access: Access, request: ImportRequest) =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const isInput = request.file === standardInput
    const file = isInput ? standardInput : path.resolve(request.file)
    const size = isInput ? undefined : yield* checkFile(file)
    const format = request.format ?? (isInput ? "jsonl" : yield* importFormat(file))
    if (format === "package-lock" && (size ?? 0) > lockfileMaxBytes)
      return yield* failure(`${file} has ${size} bytes; the maximum for a lockfile is ${lockfileMaxBytes}.`)
    const sending = yield* makeSending(access, { ...request, file, format, size })
    const warn = yield* makeWord
    return yield* sendAll(sending, isInput).pipe(
      Effect.mapError((error) => nameFile(requestFailure(error, access.connection.url), request.file)),
      // A lockfile that is imported again is left as it is.
      Effect.onInterrupt(() =>
        sending.isLines
          ? warn(
              named(
                `The import was interrupted. ${isInput ? inputRemedy(sending) : remedy(sending)}`,
                request.file
              )
            )
          : Effect.void
      )
    )
  })

const nameFile = (error: Failure, file: string): Failure => retold(error, named(error.message, file))

const named = (message: string, file: string): string =>
  file === standardInput
    ? `The standard input: ${message}`
    : message.includes(file)
      ? message
      : `${file}: ${message}`

interface Sending {
  /** Sends the file once. */
  readonly once: (mode: "begin" | "resume") => Effect.Effect<ImportSummary, unknown>
  /** Whether sending it again may go on where it broke off, and with which words a person would. */
  readonly isLines: boolean
  readonly id: ImportId
  readonly mode: "begin" | "resume"
  readonly badLines: ReadonlyArray<BadLine>
  /** How much was committed so far; grows while it goes well. */
  readonly progress: () => number
  /** Says something while it works. */
  readonly say: (sentence: string) => Effect.Effect<void>
}

/** Sends until the file is imported, as long as it goes forward now and then. */
const sendAll = (sending: Sending, isInput: boolean): Effect.Effect<ImportResult, unknown> =>
  Effect.gen(function* () {
    let mode = sending.mode
    let broken = 0
    let told = 0
    let reached = sending.progress()
    while (true) {
      const ending = yield* Effect.result(sending.once(mode))
      if (ending._tag === "Success") return { summary: ending.success, badLines: sending.badLines }
      const error = ending.failure
      const isUnknown = mode === "resume" && sending.mode === "begin" && statusOf(error) === 404
      const isKnown = mode === "begin" && broken > 0 && statusOf(error) === 409
      if (!isUnknown && !isKnown && !isBroken(error)) return yield* Effect.fail(error)
      if (isInput) return yield* failure(`${reasonOf(error)} ${inputRemedy(sending)}`)
      const isFurther = sending.progress() > reached
      broken = isFurther ? 1 : broken + 1
      told = (isFurther ? 0 : told) + (error instanceof BrokenOff && error.isTold ? 1 : 0)
      reached = sending.progress()
      if (broken > limits.brokenImportsInARow || told > limits.failedImportsInARow)
        return yield* failure(givenUp(sending, error))
      if (sending.isLines) mode = isUnknown ? "begin" : "resume"
      const pauseMs = Math.min(limits.importPauseFirstMs * 2 ** (broken - 1), limits.importPauseLongestMs)
      yield* sending.say(`${reasonOf(error)} Retrying in ${pauseMs / 1_000} s.`)
      yield* Effect.sleep(pauseMs)
    }
  })

/** Why an import is not tried again, and what a person may do. */
const givenUp = (sending: Sending, error: unknown): string => {
  const tries =
    error instanceof BrokenOff && error.isTold
      ? ` Failed after ${limits.failedImportsInARow + 1} attempts without progress.`
      : ""
  return `${reasonOf(error)}${tries} ${remedy(sending)}`
}

/** What a person may do about an import that is not whole; lines without key are doubled by anything else. */
const remedy = ({ id, isLines }: Sending): string =>
  isLines ? `Continue with --resume ${id}.` : "Run the command again; existing data is left unchanged."

const inputRemedy = ({ id, isLines }: Sending): string =>
  `Standard input cannot be sent again: import from a file${isLines ? ` with --resume ${id}` : ""}.`

const busy: ReadonlySet<number | undefined> = new Set([408, 429, 502, 503, 504])

const isBroken = (error: unknown): boolean =>
  error instanceof BrokenOff || isUnreachable(error) || busy.has(statusOf(error))

const reasonOf = (error: unknown): string =>
  error instanceof BrokenOff ? error.reason : "The server could no longer be reached."

const makeSending = (
  access: Access,
  request: ImportRequest & { readonly format: ImportFormat; readonly size: number | undefined }
) =>
  Effect.gen(function* () {
    const { file, format, size } = request
    const screen = yield* Screen
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const stdio = yield* Stdio.Stdio
    const isJson = yield* JsonFlag
    const isQuiet = yield* QuietFlag
    const say = yield* makeNotice
    const isLines = format !== "package-lock"
    const id = request.resume ?? ImportId.make(randomUUID())
    const show = yield* transferProgress(
      `Importing ${file === standardInput ? "standard input" : path.basename(file)}`
    )
    const badLines: Array<BadLine> = []
    let committed = 0

    const tell = (line: ImportLine) => {
      if (line.type === "progress") {
        committed = line.done
        return show({
          done: line.done,
          total: line.total ?? size,
          unit: isLines ? "bytes" : "steps",
          lines: line.lines
        })
      }
      if (line.type !== "badLine") return Effect.void
      if (badLines.length < limits.badLinesKept) badLines.push({ line: line.line, message: line.message })
      return isJson
        ? Effect.void
        : screen.print(screen.paint.bad(`Line ${line.line}: ${printable(line.message)}`))
    }

    const queryOf = (mode: "begin" | "resume") => ({
      format,
      ...(isLines ? (mode === "begin" ? { id } : { resume: id }) : {}),
      ...(format === "csv" && request.type !== undefined ? { type: request.type } : {}),
      ...(format === "csv" && request.key !== undefined ? { key: request.key } : {}),
      ...(format === "csv" && request.delimiter !== undefined
        ? { delimiter: delimiterNames[request.delimiter.toLowerCase()] ?? request.delimiter }
        : {}),
      ...(format === "csv" && request.decimal !== undefined ? { decimal: request.decimal } : {}),
      ...(request.untrusted === true ? { untrusted: "true" as const } : {}),
      ...nameOf(path, file, isLines)
    })

    const once = (mode: "begin" | "resume") =>
      Effect.gen(function* () {
        const content = file === standardInput ? stdio.stdin : files.stream(file)
        const lines = yield* access.client.transfer.import({
          params: access.params,
          query: queryOf(mode),
          payload: Stream.orDie(content)
        })
        const last = yield* lines.pipe(
          Stream.mapError(() => new BrokenOff({ reason: brokenOff, isTold: false })),
          Stream.tap(tell),
          Stream.runFold(
            (): ImportLine | undefined => undefined,
            (_, line) => line
          )
        )
        if (last?.type === "finished") return last
        if (last?.type === "failed" && last.resume === undefined)
          return yield* failure(`The import stopped: ${last.message}`)
        return yield* last?.type === "failed"
          ? new BrokenOff({ reason: last.message, isTold: true })
          : new BrokenOff({ reason: brokenOff, isTold: false })
      }).pipe(Effect.ensuring(screen.redraw(undefined)))

    return {
      once,
      isLines,
      id,
      mode: request.resume === undefined ? "begin" : "resume",
      badLines,
      progress: () => committed,
      // On a terminal above the bar, which standard error would tear.
      say: (sentence) =>
        screen.isLive && !isQuiet && !isJson
          ? screen.print(screen.paint.bad(printable(sentence)))
          : say(sentence)
    } satisfies Sending
  })

/** Delimiters by their names: a shell makes some of them hard to type. */
const delimiterNames: Readonly<Record<string, string>> = {
  tab: "\t",
  "\\t": "\t",
  pipe: "|",
  semicolon: ";",
  comma: ","
}

const brokenOff = "The connection was lost during the import."

/** A lockfile that does not say its name is called after its folder; a file of lines by its own name. */
const nameOf = (path: Path.Path, file: string, isLines: boolean): { readonly name?: string } => {
  const name = file === standardInput ? "" : path.basename(isLines ? file : path.dirname(file))
  return name === "" ? {} : { name: beginningOf(name, 200) }
}

/** Says what would be pointless to send; answers the file's size. */
const checkFile = (file: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const facts = yield* files
      .stat(file)
      .pipe(
        Effect.mapError((error) =>
          failure(
            error.reason._tag === "NotFound"
              ? `File not found: ${file}. Give the path of a JSONL or CSV file, or of a package-lock.json.`
              : `The file ${file} cannot be read (${error.reason._tag}). Check its permissions.`
          )
        )
      )
    if (facts.type !== "File")
      return yield* failure(
        `${file} is not a file. Give the path of a JSONL or CSV file, or of a package-lock.json.`
      )
    const size = Number(facts.size)
    if (size > importMaxBytes)
      return yield* failure(`${file} has ${size} bytes; the maximum for an import is ${importMaxBytes}.`)
    yield* files
      .access(file, { readable: true })
      .pipe(
        Effect.mapError(() =>
          failure(`The file ${file} is not readable by this user. Check its permissions.`)
        )
      )
    return size
  })

/** What an import did, as a sentence. */
export const summarySentence = (summary: ImportSummary): string => {
  const objects = counts([
    [summary.created, "created"],
    [summary.updated, "updated"],
    [summary.deleted, "deleted"],
    [summary.unchanged, "unchanged"]
  ])
  const relationships = counts([
    [summary.relationshipsCreated, "created"],
    [summary.relationshipsUpdated, "updated"],
    [summary.relationshipsDeleted, "deleted"],
    [summary.relationshipsUnchanged ?? 0, "unchanged"]
  ])
  return `Objects: ${objects}. Relationships: ${relationships}.`
}

const counts = (pairs: ReadonlyArray<readonly [number, string]>): string => {
  const told = pairs.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  return told.length === 0 ? "no change" : told.join(", ")
}
