/**
 * Where a CSV record ends and what its fields are, as RFC 4180 says.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * Structure is ASCII, so records are cut from bytes before anything is decoded.
 * A record that breaks the grammar costs its first line and no other: what
 * follows that line is looked at anew. No byte is looked at more than twice for
 * it, since the second look is inside quotes where the first was outside.
 */
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
export interface CsvField {
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
