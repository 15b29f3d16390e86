/**
 * Reads the parameters of methods that extensions add.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * As with tools, a field that a method does not have is refused: nobody says in a
 * parameter who is calling.
 */
import type { ProtocolError } from "@modelcontextprotocol/server"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { Effect, Schema } from "effect"
import { argumentsAreStrict } from "../tool/read-arguments.ts"
import { badParams } from "./door-server.ts"

/** Parameters of any shape: what is in them is read where a fault can be told with its place. */
export const anyParams = { params: Schema.toStandardSchemaV1(Schema.Record(Schema.String, Schema.Unknown)) }

/** Reads the parameters of a method strictly; the first fault is the sentence. */
export const readParams = <A>(
  schema: Schema.ConstraintDecoder<A>,
  { _meta, ...params }: Readonly<Record<string, unknown>>
): Effect.Effect<A, ProtocolError> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema, argumentsAreStrict)(params), ({ issue }) => {
    const errors = schemaFaults(issue)
    const [first] = errors
    return badParams(
      first === undefined ? "Invalid params" : `Invalid params: ${first.pointer}: ${first.message}`,
      { errors }
    )
  })
