/**
 * Finds CSV records and their fields by RFC 4180.
 *
 * Structure is ASCII, so records are cut from bytes before decoding. A malformed record costs its first line only:
 * scanning restarts at the next line. No byte is scanned more than twice for this, because the second scan is inside
 * quotes where the first was outside.
 */
import type { JsonFault } from "@tropism/domain/json"
import { scanJson } from "@tropism/domain/json-text"
import { beginningOf, shortened } from "@tropism/domain/text-beginning"
import { toTransferLine, type TransferLine } from "@tropism/domain/transfer-line"
import { Result, Schema } from "effect"
import type { FoundRecord, RecordScanner } from "./import-records.ts"

const quote = 34

/** Allowed delimiters; spreadsheets use the semicolon where numbers have decimal commas. */
const delimiters = [",", ";", "\t", "|"] as const

/** Returns the delimiter of a file: the one `sep=` names in the first line, else the most frequent candidate outside quotes there. */
export const delimiterOf = (firstLine: string): string => {
  const named = /^\ufeff?sep=(.)\r?$/.exec(firstLine)?.[1]
  if (named !== undefined) return named
  const outside = firstLine.replaceAll(/"(?:[^"]|"")*"/g, "")
  const count = (delimiter: string) => outside.split(delimiter).length - 1
  return delimiters.reduce((best, next) => (count(next) > count(best) ? next : best))
}

/** Whether the first line names the delimiter instead of columns, as spreadsheets write it. */
export const namesDelimiter = (record: string): boolean => /^sep=.\r?\n?$/.test(record)
const lineFeed = 10
const carriageReturn = 13

/** State of the scanner in a field; `closed` is after a quote that either ends the field or is the first of two. */
type At = "start" | "plain" | "quoted" | "closed"

const strayQuote =
  "A quote stands inside a field that does not begin with one: put the whole field in quotes and double the quotes inside"
const afterQuote = "Something follows the closing quote of a field: double the quotes that belong to its text"
const unclosed = "The quotes that open in this line are never closed: close them, or double the ones inside"

export interface CsvScanner extends RecordScanner {
  /** The delimiter; known after the first record. */
  readonly delimiter: () => string
}

/** Cuts records, including line breaks inside quotes. Without `given` it takes the delimiter from the first line. */
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

  /** Consumes one byte; true when the record ends after it. A malformed record ends with its line, whatever quotes follow. */
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

/** One field; `isQuoted` distinguishes an empty text from an absent value. */
interface CsvField {
  readonly text: string
  readonly isQuoted: boolean
}

/** Returns the fields of a record that the scanner accepted, with or without its line break. */
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

/** Returns where an opening quote closes; two quotes in a row are one character of the text. */
const closingQuote = (text: string, open: number): number => {
  let at = text.indexOf('"', open + 1)
  while (at !== -1 && text[at + 1] === '"') at = text.indexOf('"', at + 2)
  return at === -1 ? text.length : at
}

// Numbers as spreadsheets write them; the decimal mark is decided per column and never guessed.
//
// Most numbers have one reading (`1,5`, `1.234,56`, `1'234.56`). `1.234` and `1,234` have two and are read as the rest of their
// column is written. Only the beginning of the file decides, so a file that is sent again is read the same way.

type DecimalMark = "comma" | "point"

/**
 * Decimal mark of a column. `mixed` has both marks, `unknown` none; `assumed` is unknown in a comma-separated file, where
 * programs write a point.
 */
type NumberForm = DecimalMark | "mixed" | "unknown" | "assumed"

/** A text read as a number, in JSON: one reading with its mark, or two readings. */
type Reading =
  | { readonly mark: DecimalMark | undefined; readonly json: string }
  | {
      readonly mark: "either"
      readonly separator: DecimalMark
      readonly whole: string
      readonly fraction: string
    }

const markOf = (character: string | undefined): DecimalMark | undefined =>
  character === undefined ? undefined : character.startsWith(",") ? "comma" : "point"

/** One group of three digits after one mark: a fraction or thousands. */
const ambiguous = /^-?[1-9]\d{0,2}([.,])\d{3}$/
const ungrouped = /^-?(?:0|[1-9]\d*)(?:([.,])\d+)?(?:[eE][+-]?\d+)?$/
/** Thousands separated by one repeated mark: dots, commas, apostrophes or spaces. */
const grouped = /^-?[1-9]\d{0,2}([.,'’ \u00a0\u2009\u202f])\d{3}(?:\1\d{3})*([.,]\d+)?$/

const read = (text: string): Reading | undefined => {
  const either = ambiguous.exec(text)?.[1]
  if (either !== undefined)
    return {
      mark: "either",
      separator: either === "," ? "comma" : "point",
      whole: text.replace(either, ""),
      fraction: text.replace(either, ".")
    }
  const plain = ungrouped.exec(text)
  if (plain) return { mark: markOf(plain[1]), json: text.replace(",", ".") }
  const [, separator, fraction] = grouped.exec(text) ?? []
  if (separator === undefined || fraction?.startsWith(separator) === true) return undefined
  const whole = text.slice(0, text.length - (fraction?.length ?? 0)).replaceAll(separator, "")
  const json = whole + (fraction?.replace(",", ".") ?? "")
  if (fraction !== undefined) return { mark: markOf(fraction), json }
  // A dot as thousands separator leaves the comma as decimal mark, and the reverse.
  const shown = separator === "." ? "comma" : separator === "," ? "point" : undefined
  return { mark: shown, json }
}

/** Evidence for the decimal mark of one column. */
export interface NumberEvidence {
  /** Reads a text of the column; true when it is a number with two readings. */
  readonly see: (text: string) => boolean
  readonly form: (delimiter: string) => NumberForm
}

export const numberEvidence = (): NumberEvidence => {
  const marks = new Set<DecimalMark>()
  return {
    see: (text) => {
      const mark = read(text.trim())?.mark
      if (mark === "comma" || mark === "point") marks.add(mark)
      return mark === "either"
    },
    form: (delimiter) => {
      const [mark, other] = marks
      if (mark === undefined) return delimiter === "," ? "assumed" : "unknown"
      return other === undefined ? mark : "mixed"
    }
  }
}

/** Returns the JSON of a number in a column of this form, or why there is none. */
export const readNumber = (text: string, form: NumberForm): Result.Result<string, string> => {
  const reading = read(text)
  if (reading === undefined)
    return Result.fail(
      "This must be a number such as 12 or -1.5, without a unit, a percent sign or a currency"
    )
  if (reading.mark === "either") {
    const { fraction, separator, whole } = reading
    if (form === separator || (form === "assumed" && separator === "point")) return Result.succeed(fraction)
    if (form === "comma" || form === "point") return Result.succeed(whole)
    const both = `${text} may be ${whole} or ${fraction.replace(".", separator === "comma" ? "." : ",")}`
    return Result.fail(
      form === "mixed"
        ? `${both}, and its column has decimal commas and decimal points: write all numbers of the column alike`
        : `${both}, and nothing in the column shows which: give the decimal mark beside the file (--decimal, ?decimal=)`
    )
  }
  const { json, mark } = reading
  const expected = form === "assumed" ? "point" : form
  if (mark !== undefined && (expected === "comma" || expected === "point") && mark !== expected)
    return Result.fail(
      `${text} has a decimal ${mark}, and the numbers of this column have a decimal ${expected}: write all of them alike`
    )
  return Result.succeed(json)
}

// Turns the rows of a CSV file into the lines that a JSONL file would have.
//
// The first record names the columns. `type` and `key` identify the object; every other column is a property. An empty field
// leaves the property unchanged; two quotes are an empty text.

/** Options of the request for one file. */
export interface LineSettings extends CsvSettings {
  /** Marks all content of the file as untrusted; undefined when it is trusted. */
  readonly untrusted: true | undefined
}

/** How to read the rows of a CSV file. */
export interface CsvSettings {
  /** The type of rows that name none. */
  readonly type: string | undefined
  /** The column that holds the keys. */
  readonly key: string | undefined
  /** The field delimiter; undefined to take it from the first line. */
  readonly delimiter?: string | undefined
  /** The decimal mark of all numbers; undefined to decide it per column. */
  readonly decimal?: DecimalMark | undefined
}

type Kind = "string" | "number" | "boolean" | "json"

interface Column {
  readonly name: string
  readonly kind: Kind
}

export interface CsvHeader {
  readonly columns: ReadonlyArray<Column>
  /** The number form of each column. */
  readonly forms: ReadonlyArray<NumberForm>
  readonly settings: CsvSettings
  readonly delimiter: string
}

const kinds: ReadonlySet<string> = new Set<Kind>(["string", "number", "boolean", "json"])
const isKind = (text: string): text is Kind => kinds.has(text)

/** The fault of a file whose lines end in CR alone. */
export const loneReturns =
  "The lines of this file end in CR alone, as old programs write them: save it with line ends LF or CRLF"

/** Reads the first record, or returns why the file cannot be read. */
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
  const form = settings.decimal ?? numberEvidence().form(delimiter)
  return Result.succeed({ columns, forms: columns.map(() => form), settings, delimiter })
}

/** Whether the first rows are needed to decide how numbers are written. */
export const needsSample = ({ columns, settings }: CsvHeader): boolean =>
  settings.decimal === undefined && columns.some(({ kind }) => kind === "number")

/** Evidence from the first rows about how numbers are written. */
export interface ColumnEvidence {
  /** Reads a row; true when it has a number with two readings. */
  readonly see: (record: string) => boolean
  /** The header, with the evidence so far. */
  readonly header: () => CsvHeader
}

export const columnEvidence = (named: CsvHeader): ColumnEvidence => {
  const { columns, delimiter } = named
  const evidence = columns.map(({ kind }) => (kind === "number" ? numberEvidence() : undefined))
  return {
    see: (record) => {
      const fields = csvFields(record, delimiter)
      // Every column reads its field: `includes` would stop at the first number with two readings.
      return fields.length === columns.length
        ? fields.map(({ text }, index) => evidence[index]?.see(text) === true).includes(true)
        : false
    },
    header: () => ({
      ...named,
      forms: named.forms.map((form, index) => evidence[index]?.form(delimiter) ?? form)
    })
  }
}

/** `name:number` is the column `name` of numbers; any other colon is part of the name. */
const columnOf = (text: string): Column => {
  const colon = text.lastIndexOf(":")
  const kind = text.slice(colon + 1)
  return colon > 0 && isKind(kind) ? { name: text.slice(0, colon), kind } : { name: text, kind: "string" }
}

/** Reads a row; undefined for an empty line. */
export const readCsvRow = (
  record: string,
  { columns, delimiter, forms, settings }: CsvHeader
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
  // A map and not an object: a column may be called __proto__, which is refused later with a message.
  const properties = new Map<string, Schema.Json>()
  for (const [index, column] of columns.entries()) {
    const field = fields[index]
    if (field === undefined || (field.text === "" && !field.isQuoted)) continue
    if (column.name === "type") type = field.text
    else if (column.name === (settings.key ?? "key")) key = field.text
    if (column.name === "type" || (column.name === "key" && settings.key === undefined)) continue
    const value = valueOf(field, column.kind, forms[index] ?? "unknown")
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

const valueOf = ({ text }: CsvField, kind: Kind, form: NumberForm): Result.Result<Schema.Json, string> => {
  const trimmed = text.trim()
  switch (kind) {
    case "string":
      return Result.succeed(text)
    case "number":
      return Result.flatMap(readNumber(trimmed, form), json)
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
