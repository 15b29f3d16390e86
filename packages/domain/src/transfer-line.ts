/**
 * One line of a JSONL file: what an export writes and an import reads back.
 *
 * A line is an object or a relationship. An object is found again by its type
 * and key; one without a key by its `id`, which names it where the file was
 * made and is remembered wherever it is imported. The ends of a relationship
 * are told the same two ways and stand earlier in the file, or in the graph.
 */
import { Result, Schema, SchemaIssue } from "effect"
import { ObjectKey, ObjectType } from "./graph.ts"
import { ObjectId } from "./ids.ts"
import {
  findFault,
  findPropertiesFault,
  isJsonObject,
  type JsonFault,
  namelessFault,
  Properties
} from "./json.ts"
import { scanJson } from "./json-text.ts"
import { schemaFaults } from "./schema-faults.ts"
import { untrustedNames, UntrustedWords } from "./untrusted.ts"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

export const ObjectLine = Schema.Struct({
  id: opt(ObjectId),
  type: ObjectType,
  key: opt(ObjectKey),
  properties: opt(Properties),
  untrusted: opt(UntrustedWords)
}).annotate({ identifier: "ObjectLine" })
export type ObjectLine = typeof ObjectLine.Type

const KeyedEnd = Schema.Struct({ type: ObjectType, key: ObjectKey })

/** An object as a relationship names it: by type and key, or by the id of an object without a key. */
export const LineEnd = Schema.Union([KeyedEnd, ObjectId])
export type LineEnd = typeof LineEnd.Type

export const RelationshipLine = Schema.Struct({
  relationship: Schema.Struct({ type: ObjectType, from: LineEnd, to: LineEnd }),
  properties: opt(Properties),
  untrusted: opt(UntrustedWords)
}).annotate({ identifier: "RelationshipLine" })
export type RelationshipLine = typeof RelationshipLine.Type

export const TransferLine = Schema.Union([RelationshipLine, ObjectLine])
export type TransferLine = typeof TransferLine.Type

const strict = { onExcessProperty: "error", errors: "all" } as const
const decodeObject = Schema.decodeUnknownResult(ObjectLine, strict)
const decodeRelationship = Schema.decodeUnknownResult(RelationshipLine, strict)
const decodeText = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Unknown))

/** Reads one line, or says what is wrong with it. `syntaxMessage` says where a text stops being JSON. */
export const readTransferLine = (
  text: string,
  syntaxMessage: (text: string) => string
): Result.Result<TransferLine, JsonFault> => {
  const fault = scanJson(text)
  if (fault) return Result.fail(fault)
  const json = decodeText(text)
  return Result.isFailure(json)
    ? Result.fail({ pointer: "", message: syntaxMessage(text) })
    : toTransferLine(json.success)
}

/** Takes a decoded value for a line. */
export const toTransferLine = (value: unknown): Result.Result<TransferLine, JsonFault> => {
  if (!isJsonObject(value))
    return Result.fail({ pointer: "", message: "A line must be a JSON object with a type" })
  const line: Result.Result<TransferLine, Schema.SchemaError> = Object.hasOwn(value, "relationship")
    ? decodeRelationship(value)
    : decodeObject(value)
  return Result.flatMap(
    Result.mapError(line, ({ issue }) => firstFault(issue)),
    keepable
  )
}

/** Judges what the database could not keep here already, where it costs nobody else anything. */
const keepable = (line: TransferLine): Result.Result<TransferLine, JsonFault> => {
  // How deep properties are is counted from them, as at every other door.
  const { properties: given, ...rest } = line
  const properties = given ?? {}
  const fault = findFault(rest) ?? namelessFault(properties) ?? findPropertiesFault(properties)
  if (fault) return Result.fail(fault)
  return Result.map(untrustedNames(line.untrusted, properties), () => line)
}

const firstFault = (issue: SchemaIssue.Issue): JsonFault =>
  schemaFaults(issue)[0] ?? { pointer: "", message: "The line is neither an object nor a relationship" }
