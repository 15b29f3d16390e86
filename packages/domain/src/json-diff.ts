/**
 * What lies between two JSON values, as a list that a person can read.
 *
 * Objects are compared field by field; a list is one value, because "the third
 * of the tools" means nothing once one was put before it.
 */
import { Schema } from "effect"
import { canonicalJson, isJsonObject, pointerStep } from "./json.ts"

/** One place that differs; `before` or `after` is missing where there was or is nothing. */
export const JsonDifference = Schema.Struct({
  pointer: Schema.String,
  before: Schema.optionalKey(Schema.Json),
  after: Schema.optionalKey(Schema.Json)
}).annotate({ identifier: "JsonDifference" })
export type JsonDifference = typeof JsonDifference.Type

/** Every place in which two JSON values differ, in the order of the fields; none when they are equal. */
export const diffJson = (before: unknown, after: unknown, pointer = ""): ReadonlyArray<JsonDifference> => {
  if (isJsonObject(before) && isJsonObject(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)])
    return [...keys].flatMap((key) =>
      diffJson(ownValue(before, key), ownValue(after, key), pointer + pointerStep(key))
    )
  }
  const isThere = { before: before !== undefined, after: after !== undefined }
  if (isThere.before === isThere.after && canonicalJson(before) === canonicalJson(after)) return []
  return [
    {
      pointer,
      ...(isThere.before ? { before: before as Schema.Json } : {}),
      ...(isThere.after ? { after: after as Schema.Json } : {})
    }
  ]
}

/** What an object itself says under a key, and not what every object has. */
export const ownValue = (object: Record<string, Schema.Json>, key: string): Schema.Json | undefined =>
  Object.hasOwn(object, key) ? object[key] : undefined
