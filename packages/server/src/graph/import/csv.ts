/**
 * Where a CSV record ends and what its fields are, as RFC 4180 says.
 *
 * Structure is ASCII, so records are cut from bytes before anything is decoded.
 * A record that breaks the grammar costs its first line and no other: what
 * follows that line is looked at anew. No byte is looked at more than twice for
 * it, since the second look is inside quotes where the first was outside.
 */
import type { JsonFault } from "@tropism/domain/json"
import { scanJson } from "@tropism/domain/json-text"
import { beginningOf, shortened } from "@tropism/domain/text-beginning"
import { toTransferLine, type TransferLine } from "@tropism/domain/transfer-line"
import { Result, Schema } from "effect"
import type { FoundRecord, RecordScanner } from "./import-records.ts"

const quote = 34

/** What may stand between fields; a semicolon where spreadsheets write commas in numbers. */
const delimiters = [",", ";", "\t", "|"] as const

/** The delimiter of a file: named by `sep=` in the first line, else the most frequent candidate outside quotes there. */
export const delimiterOf = (firstLine: string): string => {
  const named = /^\ufeff?sep=(.)\r?$/.exec(firstLine)?.[1]
  if (named !== undefined) return named
  const outside = firstLine.replaceAll(/"(?:[^"]|"")*"/g, "")
  const count = (delimiter: string) => outside.split(delimiter).length - 1
  return delimiters.reduce((best, next) => (count(next) > count(best) ? next : best))
}

/** Whether the first line of a file names its delimiter and no columns, as spreadsheets write it. */
export const namesDelimiter = (record: string): boolean => /^sep=.\r?\n?$/.test(record)
const lineFeed = 10
const carriageReturn = 13

/** Where in a field the scanner is; `closed` is after a quote that ends the field or is the first of two. */
type At = "start" | "plain" | "quoted" | "closed"

const strayQuote =
  "A quote stands inside a field that does not begin with one: put the whole field in quotes and double the quotes inside"
const afterQuote = "Something follows the closing quote of a field: double the quotes that belong to its text"
const unclosed = "The quotes that open in this line are never closed: close them, or double the ones inside"

export interface CsvScanner extends RecordScanner {
  /** The delimiter, known after the first record. */
  readonly delimiter: () => string
}

/** Cuts records; line breaks inside quotes belong to them. Without a delimiter the first line says which it is. */
export const csvScanner = (given?: string): CsvScanner => {
  let delimiter = given
  let separator = given?.charCodeAt(0)
  let seen = 0
  let at: At = "start"
  let lines = 0
  let firstLineLength = 0
  let fault: string | undefined

  const reset = (): void => {
    seen = 0
    at = "start"
    lines = 0
    firstLineLength = 0
    fault = undefined
  }

  const found = (length: number, lineCount: number): FoundRecord => {
    const answer =
      fault !== undefined && lineCount > 1
        ? { length: firstLineLength, lines: 1, fault }
        : { length, lines: lineCount, fault }
    reset()
    return answer
  }

  const broken = (message: string): void => {
    fault = message
    at = "plain"
  }

  /** Moves over one byte; answers whether the record ends after it. What is broken ends with its line, whatever quotes follow. */
  const step = (byte: number | undefined, offset: number): boolean => {
    if (byte === lineFeed) {
      lines += 1
      if (lines === 1) firstLineLength = offset + 1
      return at !== "quoted"
    }
    if (fault !== undefined) return false
    if (at === "quoted") at = byte === quote ? "closed" : "quoted"
    else if (byte === separator) at = "start"
    else if (byte === quote) {
      if (at === "plain") broken(strayQuote)
      else at = "quoted"
    } else if (at === "start") at = "plain"
    else if (at === "closed" && byte !== carriageReturn) broken(afterQuote)
    return false
  }

  return {
    delimiter: () => delimiter ?? ",",
    scan: (bytes, isLast) => {
      if (separator === undefined) {
        const end = bytes.indexOf(lineFeed)
        if (end === -1 && !isLast) return undefined
        delimiter = delimiterOf(
          Buffer.from(bytes.subarray(0, end === -1 ? bytes.length : end)).toString("utf8")
        )
        separator = delimiter.charCodeAt(0)
      }
      while (seen < bytes.length) {
        const isEnd = step(bytes[seen], seen)
        seen += 1
        if (isEnd) return found(seen, lines)
      }
      if (!isLast) return undefined
      if (at === "quoted") broken(unclosed)
      return found(bytes.length, lines + 1)
    },
    overflow: () => {
      if (at === "quoted" && lines > 0) {
        broken(unclosed)
        return found(firstLineLength, lines + 1)
      }
      reset()
      return undefined
    }
  }
}

/** One field; `isQuoted` tells an empty text from nothing. */
interface CsvField {
  readonly text: string
  readonly isQuoted: boolean
}

/** The fields of a record in which the scanner found no fault; its line break may be there. */
export const csvFields = (record: string, delimiter = ","): ReadonlyArray<CsvField> => {
  const text = record.replace(/\r?\n$|\r$/, "")
  const fields: Array<CsvField> = []
  let from = 0
  while (true) {
    const isQuoted = text[from] === '"'
    const end = isQuoted ? closingQuote(text, from) + 1 : from
    const separator = text.indexOf(delimiter, end)
    const next = separator === -1 ? text.length : separator
    fields.push(
      isQuoted
        ? { text: text.slice(from + 1, end - 1).replaceAll('""', '"'), isQuoted }
        : { text: text.slice(from, next), isQuoted }
    )
    if (separator === -1) return fields
    from = separator + 1
  }
}

/** Where the quotes that open at a place close; two in a row are one of the text. */
const closingQuote = (text: string, open: number): number => {
  let at = text.indexOf('"', open + 1)
  while (at !== -1 && text[at + 1] === '"') at = text.indexOf('"', at + 2)
  return at === -1 ? text.length : at
}

// What the rows of a CSV file say, as the lines that a JSONL file would have.
//
// The first record names the columns. `type` and `key` say which object a row
// is; every other column is a property. An empty field says nothing, so it
// leaves the property as it is; two quotes are an empty text.

/** What was asked for beside the file. */
export interface LineSettings extends CsvSettings {
  /** Whether all that the file says is untrusted; undefined where it is not. */
  readonly untrusted: true | undefined
}

/** How the rows of a CSV file are to be understood. */
export interface CsvSettings {
  /** The type of rows that name none. */
  readonly type: string | undefined
  /** The column whose values are the keys. */
  readonly key: string | undefined
  /** What stands between fields; undefined where the first line shows it. */
  readonly delimiter?: string | undefined
}

type Kind = "string" | "number" | "boolean" | "json"

interface Column {
  readonly name: string
  readonly kind: Kind
}

export interface CsvHeader {
  readonly columns: ReadonlyArray<Column>
  readonly settings: CsvSettings
  readonly delimiter: string
}

const kinds: ReadonlySet<string> = new Set<Kind>(["string", "number", "boolean", "json"])
const isKind = (text: string): text is Kind => kinds.has(text)

/** What is wrong with a file whose lines end as no line ends in RFC 4180. */
export const loneReturns =
  "The lines of this file end in CR alone, as old programs write them: save it with line ends LF or CRLF"

/** Reads the first record, or says why the file cannot be understood. */
export const readCsvHeader = (
  record: string,
  settings: CsvSettings,
  delimiter: string
): Result.Result<CsvHeader, string> => {
  const fields = csvFields(record, delimiter)
  if (fields.some(({ text, isQuoted }) => !isQuoted && text.includes("\r"))) return Result.fail(loneReturns)
  const columns = fields.map(({ text }) => columnOf(text.trim()))
  const names = columns.map(({ name }) => name)
  const nameless = names.indexOf("")
  if (nameless !== -1)
    return Result.fail(`Column ${nameless + 1} has no name: the first line must name every column`)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) return Result.fail(`Two columns are called ${twice}: give each its own name`)
  if (settings.type === undefined && !names.includes("type"))
    return Result.fail(
      `The columns are ${beginningOf(names.join(", "), 200)}; none is called type, and no type is given: add the column, or give a type beside the file (--type, ?type=)`
    )
  if (settings.key !== undefined && !names.includes(settings.key))
    return Result.fail(`There is no column ${settings.key}; there are ${beginningOf(names.join(", "), 200)}`)
  return Result.succeed({ columns, settings, delimiter })
}

/** `name:number` is the column `name` of numbers; what follows another colon belongs to the name. */
const columnOf = (text: string): Column => {
  const colon = text.lastIndexOf(":")
  const kind = text.slice(colon + 1)
  return colon > 0 && isKind(kind) ? { name: text.slice(0, colon), kind } : { name: text, kind: "string" }
}

/** Reads a row; undefined when its line is empty. */
export const readCsvRow = (
  record: string,
  { columns, delimiter, settings }: CsvHeader
): Result.Result<TransferLine, JsonFault> | undefined => {
  const fields = csvFields(record, delimiter)
  const [first] = fields
  if (fields.length === 1 && first?.text.trim() === "" && !first.isQuoted) return undefined
  if (fields.length !== columns.length) {
    return Result.fail({
      pointer: "",
      message: `The row has ${fields.length} fields and the first line names ${columns.length} columns`
    })
  }
  let type: string | undefined = settings.type
  let key: string | undefined
  // A map and not an object: a column may be called __proto__, which is refused later and with a sentence.
  const properties = new Map<string, Schema.Json>()
  for (const [index, column] of columns.entries()) {
    const field = fields[index]
    if (field === undefined || (field.text === "" && !field.isQuoted)) continue
    if (column.name === "type") type = field.text
    else if (column.name === (settings.key ?? "key")) key = field.text
    if (column.name === "type" || (column.name === "key" && settings.key === undefined)) continue
    const value = valueOf(field, column.kind, delimiter)
    if (Result.isFailure(value)) return Result.fail({ pointer: column.name, message: value.failure })
    properties.set(column.name, value.success)
  }
  return toTransferLine({
    ...(type === undefined ? {} : { type }),
    ...(key === undefined ? {} : { key }),
    properties: Object.fromEntries(properties)
  })
}

const decodeJson = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Json))

const valueOf = ({ text }: CsvField, kind: Kind, delimiter: string): Result.Result<Schema.Json, string> => {
  const trimmed = text.trim()
  switch (kind) {
    case "string":
      return Result.succeed(text)
    case "number":
      if (delimiter !== ",") {
        // Where no comma stands between fields, one may stand in a number, and dots between its thousands.
        if (/^-?(?:0|[1-9]\d*),\d+$/.test(trimmed)) return json(trimmed.replace(",", "."))
        if (/^-?[1-9]\d{0,2}(?:(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})$/.test(trimmed))
          return json(trimmed.replaceAll(".", "").replace(",", "."))
      }
      // Spreadsheets that write semicolons write 1.234 for a thousand, programs for a fraction.
      if (delimiter === ";" && /^-?[1-9]\d{0,2}\.\d{3}$/.test(trimmed))
        return Result.fail(
          `${trimmed} may be ${trimmed.replace(".", "")} or ${trimmed.replace(".", ",")} in a file with semicolons: write it as one of these`
        )
      return /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(trimmed)
        ? json(trimmed)
        : Result.fail(`This must be a number such as 12 or -1.5, and reads ${shorten(text)}`)
    case "boolean":
      return /^(?:true|false)$/i.test(trimmed)
        ? Result.succeed(trimmed.toLowerCase() === "true")
        : Result.fail(`This must be true or false, and reads ${shorten(text)}`)
    case "json":
      return json(trimmed)
  }
}

const json = (text: string): Result.Result<Schema.Json, string> => {
  const fault = scanJson(text)
  if (fault) return Result.fail(fault.message)
  return Result.mapError(decodeJson(text), () => `This must be JSON, and reads ${shorten(text)}`)
}

const shorten = (text: string): string => shortened(text, 40)
