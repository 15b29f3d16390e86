/**
 * The version that a caller read and changes: in the body, or as the header If-Match takes it.
 */
import { Schema } from "effect"
import { told } from "./page.ts"

/** Of two who read the same version and change it, the later is told 409 (412 by If-Match) and the earlier's work stays. */
export const expectedVersion = { expectedVersion: Schema.optional(Schema.NullOr(Schema.Int)) }

export const ifMatch = {
  "if-match": told(
    Schema.String,
    "The ETag of what the caller has read; where it is another one by now, nothing is done and the answer is 412"
  )
}
