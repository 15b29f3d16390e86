/**
 * Reads what a tool was given, and says what does not fit.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 */
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
    const takes = Schema.toJsonSchemaDocument(schema).schema
    return refused("invalid", unfit(faults, takes), faults[0]?.pointer)
  })

/** The JSON Schema of a tool's arguments, as MCP lists it. */
export const inputSchemaOf = (
  args: Schema.Top
): { readonly type: "object"; readonly [key: string]: unknown } => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(args)
  return {
    ...schema,
    type: "object",
    additionalProperties: false,
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions })
  }
}
