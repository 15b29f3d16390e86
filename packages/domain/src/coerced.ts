/**
 * What was put right in the arguments of a tool call, so that they fit the tool's schema.
 */
import { Schema } from "effect"

export const ArgumentChange = Schema.Struct({
  /** Where, in the arguments as they were sent. */
  pointer: Schema.String,
  /**
   * What was done.
   *
   * **Details** `unwrapped`: the arguments lay in an object of their own. `parsed`: an object, a list, a number, true, false or null
   * had come as text. `renamed`: the key was spelled with other capitals or separators. `dropped`: the tool has no such key, or
   * takes no null there.
   */
  change: Schema.Literals(["unwrapped", "parsed", "renamed", "dropped"]),
  /** The key that it became. */
  to: Schema.optionalKey(Schema.String)
})
export type ArgumentChange = typeof ArgumentChange.Type

/** Arguments as the model sent them, and what was put right in them, the first changes. */
export const Coerced = Schema.Struct({
  sent: Schema.Json,
  changes: Schema.Array(ArgumentChange)
}).annotate({ identifier: "CoercedArguments" })
export type Coerced = typeof Coerced.Type
