/**
 * Reads what somebody typed as the contract wants it, before anything is sent.
 *
 * What does not fit is the mistake of whoever typed it, and is told as one: the
 * place, and what it takes.
 */
import { failureSentence } from "@tropism/client/failure-sentence"
import { Effect, Schema } from "effect"
import { exitCodes } from "./exit-codes.ts"
import { failure } from "./failure.ts"
import { printable } from "./terminal/text.ts"

export const typed = <A>(schema: Schema.Codec<A, unknown>, input: unknown) =>
  Effect.mapError(Schema.decodeUnknownEffect(schema, { errors: "all" })(input), (error) =>
    failure(printable(failureSentence(error)), exitCodes.usage)
  )
