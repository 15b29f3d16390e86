/**
 * What the rows of a CSV file say, as the lines that a JSONL file would have.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * The first record names the columns. `type` and `key` say which object a row
 * is; every other column is a property. An empty field says nothing, so it
 * leaves the property as it is; two quotes are an empty text.
 */
import type { JsonFault } from "@tropism/domain/json"
import { scanJson } from "@tropism/domain/json-text"
import { toTransferLine, type TransferLine } from "@tropism/domain/transfer-line"
import { beginningOf, shortened } from "@tropism/domain/text-beginning"
import { Result, Schema } from "effect"
import { type CsvField, csvFields } from "./csv-records.ts"

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
