/**
 * An object as lists name it: by what people call it.
 */
import { Schema } from "effect"
import { ObjectId } from "./ids.ts"

/** Names that are longer are cut. */
export const namedObjectBounds = { nameMaxChars: 200 } as const

/** As it is now: after a deletion as it was, after a purge without a name. */
export const NamedObject = Schema.Struct({
  objectId: ObjectId,
  type: Schema.String,
  /** Its key, else its name, title or label; null where it has none of them. */
  name: Schema.NullOr(Schema.String)
}).annotate({ identifier: "NamedObject" })
export type NamedObject = typeof NamedObject.Type
