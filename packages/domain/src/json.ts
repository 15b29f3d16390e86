/**
 * What a JSON value may be before it is let into the graph.
 *
 * PostgreSQL's jsonb cannot keep a NUL or a lone surrogate, and JavaScript
 * silently rounds big integers: a value that would not be read back equal is
 * refused with a JSON pointer to it, never mended. Values come in two ways,
 * as text (`scanJson`, at the edge) and already decoded (`findFault`, from a
 * model's tool call). This file knows nothing of objects or types.
 */
import { Schema } from "effect"
import { byCodePoint } from "./code-points.ts"
import { growthNote, keptBytes } from "./kept-size.ts"

/** Bounds of one JSON document. */
export const jsonBounds = {
  /** Containers inside containers, the outermost counted as 1. */
  maxDepth: 64,
  /** Keys of one JSON object. */
  maxKeys: 1_000,
  /** UTF-8 bytes of one graph object's properties, with numbers written out as they are kept. */
  maxObjectBytes: 262_144
} as const

/** Why a JSON value was refused and where: a JSON pointer (RFC 6901). */
export interface JsonFault {
  readonly pointer: string
  readonly message: string
  /** The field that was meant, where its name was written in snake_case. */
  readonly field?: string
}

/** The properties of a graph object or relationship: one JSON object. */
export const Properties = Schema.Record(Schema.String, Schema.Json).annotate({
  identifier: "Properties",
  description: "A JSON object: depth at most 64, at most 1,000 keys in one object, at most 256 KiB"
})
export type Properties = typeof Properties.Type

const forbiddenKeys = new Set(["__proto__", "constructor", "prototype"])

/** Says what is wrong with one key of a JSON object, if anything is. */
const keyFault = (key: string): string | undefined =>
  forbiddenKeys.has(key) ? `The key "${key}" is not allowed` : textFault(key)

/** Says why PostgreSQL could not keep this text, if it could not. */
export const textFault = (text: string): string | undefined => {
  if (text.includes("\u0000")) return "Text must not contain the character U+0000"
  return text.isWellFormed() ? undefined : "Text must not contain a lone surrogate"
}

const numberFault = (value: number): string | undefined =>
  Number.isFinite(value) ? undefined : "The number is too large to be kept"

/** A step of a JSON pointer, escaped as RFC 6901 asks. */
export const pointerStep = (key: string | number): string =>
  `/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`

/**
 * Finds the first fault of a decoded JSON value.
 *
 * **Details** Integers beyond ±(2^53−1) are refused only where the value came
 * as text (`scanJson`): once decoded, 1e28 and its integer spelling are equal.
 */
export const findFault = (value: unknown, pointer = "", depth = 1): JsonFault | undefined => {
  if (typeof value === "string") return faultAt(pointer, textFault(value))
  if (typeof value === "number") return faultAt(pointer, numberFault(value))
  if (typeof value !== "object" || value === null) return undefined
  if (depth > jsonBounds.maxDepth)
    return { pointer, message: `JSON must not be nested deeper than ${jsonBounds.maxDepth}` }
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const fault = findFault(item, pointer + pointerStep(index), depth + 1)
      if (fault) return fault
    }
    return undefined
  }
  const keys = Object.keys(value)
  if (keys.length > jsonBounds.maxKeys)
    return { pointer, message: `A JSON object must not have more than ${jsonBounds.maxKeys} keys` }
  for (const key of keys) {
    const at = pointer + pointerStep(key)
    const fault =
      faultAt(at, keyFault(key)) ?? findFault((value as Record<string, unknown>)[key], at, depth + 1)
    if (fault) return fault
  }
  return undefined
}

/** The same value without the keys that no object may have; the very same one where it has none. */
export const withoutForbiddenKeys = (value: Schema.Json, depth = 1): Schema.Json => {
  if (typeof value !== "object" || value === null || depth > jsonBounds.maxDepth) return value
  if (Array.isArray(value)) {
    const items = value.map((item: Schema.Json) => withoutForbiddenKeys(item, depth + 1))
    return items.every((item, index) => item === value[index]) ? value : items
  }
  const before = Object.entries(value as Record<string, Schema.Json>)
  const after = before.flatMap(([key, item]): ReadonlyArray<readonly [string, Schema.Json]> =>
    forbiddenKeys.has(key) ? [] : [[key, withoutForbiddenKeys(item, depth + 1)]]
  )
  const isSame =
    after.length === before.length && after.every(([, item], index) => item === before[index]?.[1])
  return isSame ? value : Object.fromEntries(after)
}

const faultAt = (pointer: string, message: string | undefined): JsonFault | undefined =>
  message === undefined ? undefined : { pointer, message }

/**
 * Finds that a property was given without a name: no condition, no table and no question could name it.
 *
 * **Details** A patch may take one away that came in before; a name further in is JSON's affair.
 */
export const namelessFault = (given: Properties, isPatch = false): JsonFault | undefined =>
  Object.hasOwn(given, "") && !(isPatch && given[""] === null)
    ? { pointer: "/properties", message: "A property has a name, and here one has an empty name: name it" }
    : undefined

/** Finds the first fault of a graph object's properties, its size included. */
export const findPropertiesFault = (properties: Properties): JsonFault | undefined => {
  const fault = findFault(properties, "/properties")
  if (fault) return fault
  const bytes = keptBytes(properties)
  return bytes > jsonBounds.maxObjectBytes
    ? {
        pointer: "/properties",
        message: `Properties must not exceed ${jsonBounds.maxObjectBytes} bytes; these are ${bytes}${growthNote(properties)}`
      }
    : undefined
}

/**
 * The one spelling of a JSON value: keys in code-unit order, no white space.
 *
 * Two values are the same to the graph exactly when their canonical texts are
 * equal, so a write that changes no canonical text makes no version.
 */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null)).join(",")}]`
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined)
    entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`).join(",")}}`
  }
  return JSON.stringify(value) ?? "null"
}

/** Applies a JSON merge patch (RFC 7396): null removes, objects merge, all else replaces. */
export const mergePatch = (target: Schema.Json, patch: Schema.Json): Schema.Json => {
  if (!isJsonObject(patch)) return patch
  // A map and not an object: the key "__proto__" is a key like any other here.
  const result = new Map<string, Schema.Json>(isJsonObject(target) ? Object.entries(target) : [])
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key)
    else result.set(key, mergePatch(result.get(key) ?? null, value))
  }
  return Object.fromEntries(result)
}

/** The top-level properties that differ between two states of an object, by code point. */
export const changedProperties = (before: Properties, after: Properties): ReadonlyArray<string> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter(
      (key) =>
        !Object.hasOwn(before, key) ||
        !Object.hasOwn(after, key) ||
        canonicalJson(before[key]) !== canonicalJson(after[key])
    )
    .toSorted(byCodePoint)

/** Whether a JSON value is an object, neither array nor null. */
export const isJsonObject = (value: unknown): value is Record<string, Schema.Json> =>
  typeof value === "object" && value !== null && !Array.isArray(value)
