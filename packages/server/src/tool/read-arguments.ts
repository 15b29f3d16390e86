/**
 * Reads what a tool was given, and says what does not fit.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 */
import { canonicalJson, isJsonObject } from "@tropism/domain/json"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { Effect, Schema } from "effect"
import { refused } from "../graph/refused.ts"
import { unfit } from "./wrong-calls.ts"

/** Reads arguments strictly: a field that the schema does not have is an error that names it. */
export const argumentsAreStrict = { onExcessProperty: "error", errors: "all" } as const

/** Reads arguments, or refuses them with what the tool takes. */
export const read = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, args: Schema.Json) =>
  Effect.mapError(Schema.decodeUnknownEffect(schema, argumentsAreStrict)(args), ({ issue }) => {
    const faults = schemaFaults(issue)
    return refused("invalid", unfit(faults, jsonSchemaOf(schema)), faults[0]?.pointer)
  })

/** The JSON Schema of a tool's arguments, as MCP lists it. */
export const inputSchemaOf = (
  args: Schema.Top
): { readonly type: "object"; readonly [key: string]: unknown } => ({
  ...jsonSchemaOf(args),
  type: "object",
  additionalProperties: false
})

/** A schema in one JSON document, each alternative of a choice once: effect names null for what may be null and again for what may be absent. */
export const jsonSchemaOf = (of: Schema.Constraint): Readonly<Record<string, unknown>> => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(of)
  return {
    ...(distinct(schema) as object),
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: distinct(definitions) })
  }
}

const distinct = (part: unknown): unknown => {
  if (Array.isArray(part)) return part.map(distinct)
  if (!isJsonObject(part)) return part
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) => [
      key,
      key === "anyOf" && Array.isArray(value)
        ? [...new Map(value.map((each) => [canonicalJson(each), distinct(each)])).values()]
        : distinct(value)
    ])
  )
}
