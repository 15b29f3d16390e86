/**
 * The version that a caller read and changes: in the body, or as the header If-Match takes it.
 */
import { Schema } from "effect"

/** Of two who read the same version and change it, the later is told 409 and the earlier's work stays. */
export const expectedVersion = { expectedVersion: Schema.optional(Schema.NullOr(Schema.Int)) }

export const ifMatch = { "if-match": Schema.optional(Schema.String) }
