/**
 * Puts right the arguments of a model that nearly fit a tool's JSON Schema.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Pure. Arguments that fit are never changed, and what is answered always fits: else the call stays as it was sent, and is refused
 * as it was. The rules, each for a place that has one meaning only:
 * - Arguments that are text become the object that the text is; those in `{"arguments": {…}}` (or `args`, `input`, `parameters`,
 *   `params`) are taken out, where the tool has no such key.
 * - Text becomes the object, list, number, boolean or null that it spells, where the schema takes that and no text.
 * - A key becomes the one key of the schema that is missing and differs from it in capitals and separators alone; where the schema
 *   takes further keys, only a required one.
 * - A null is dropped where the key is optional and takes no null.
 * - Any other key is dropped where the schema takes no further keys, no key is like it, and the tool changes nothing: in a call that
 *   changes something it may say what or whose. One that holds nothing (null, "", {}, [] or false) is dropped from any call. A key
 *   that says who is calling is never dropped.
 * Free JSON, such as the properties of a graph object, is not looked into.
 */
import { isJsonObject, pointerStep } from "@tropism/domain/json"
import { scanJson } from "@tropism/domain/json-text"
import type { ArgumentChange, Coerced } from "@tropism/domain/coerced"
import { Option, Result, Schema } from "effect"
import { judge } from "./bounded-judging.ts"
import { isIdentity, judgeable } from "./foreign-arguments.ts"
import { foreignLimits } from "./foreign-limits.ts"
import { type JsonSchema, lookUp } from "./schema-refs.ts"
import { nearestOf } from "./wrong-calls.ts"

type Json = Schema.Json
type Fields = Readonly<Record<string, Json>>

/** The arguments that a tool is given, and what was changed for it. */
export interface Fitted {
  readonly arguments: Json
  readonly coerced?: Coerced
}

/** The arguments of a call, put right where that has one meaning. */
export const fitArguments = (schema: JsonSchema, sent: Json, changesNothing: boolean): Fitted => {
  const changes: Array<ArgumentChange> = []
  const coerced = coerceRoot({ root: schema, changes, changesNothing }, sent)
  if (changes.length === 0 || changes.length > foreignLimits.argumentChanges) return { arguments: sent }
  const judged = judgeable(schema)
  if (fits(judged, sent) || !fits(judged, coerced)) return { arguments: sent }
  return { arguments: coerced, coerced: { sent, changes } }
}

const fits = (schema: JsonSchema, args: Json): boolean => {
  const judged = judge(schema, args)
  return isJsonObject(args) && Result.isSuccess(judged) && judged.success === undefined
}

const wrappers: ReadonlyArray<string> = ["arguments", "args", "input", "parameters", "params"]

/** The schema of the whole, and what was changed so far. */
interface Fitting {
  readonly root: JsonSchema
  readonly changes: Array<ArgumentChange>
  readonly changesNothing: boolean
}

const coerceRoot = (fitting: Fitting, sent: Json): Json => {
  const { changes, root } = fitting
  const schema = resolved(root, root)
  const args = typeof sent === "string" ? parsedAs(sent, objects) : sent
  if (typeof sent === "string" && isJsonObject(args)) changes.push({ pointer: "", change: "parsed" })
  if (schema === undefined || !isJsonObject(args)) return sent
  const [[key, inner] = ["", null], ...others] = Object.entries(args as Fields)
  const isWrapped = others.length === 0 && wrappers.includes(key) && !Object.hasOwn(propertiesOf(schema), key)
  const unwrapped = isWrapped ? (typeof inner === "string" ? parsedAs(inner, objects) : inner) : undefined
  if (!isJsonObject(unwrapped)) return coerceObject(fitting, schema, args as Fields, "")
  changes.push({ pointer: pointerStep(key), change: "unwrapped" })
  return coerceObject(fitting, schema, unwrapped as Fields, pointerStep(key))
}

/** The types that a value may have, by the names of JSON Schema. */
type Types = ReadonlySet<string>

const objects: Types = new Set(["object"])

/** A schema behind its references; undefined where it says nothing, or leads round. */
const resolved = (root: JsonSchema, schema: unknown): JsonSchema | undefined => {
  let part = schema
  for (let hops = 0; hops < foreignLimits.coercedRefs; hops++) {
    if (!isJsonObject(part)) return undefined
    if (typeof part["$ref"] !== "string") return part
    part = lookUp(root, part["$ref"])
  }
  return undefined
}

const propertiesOf = (schema: JsonSchema): JsonSchema =>
  isJsonObject(schema["properties"]) ? schema["properties"] : {}

const requiredOf = (schema: JsonSchema): ReadonlyArray<unknown> =>
  Array.isArray(schema["required"]) ? schema["required"] : []

/** The branches of a choice, and what a schema says beside; one branch where there is no choice. */
const branchesOf = (root: JsonSchema, schema: JsonSchema): ReadonlyArray<JsonSchema | undefined> => {
  const choice = schema["anyOf"] ?? schema["oneOf"]
  return Array.isArray(choice) ? choice.map((branch: unknown) => resolved(root, branch)) : [schema]
}

/** Undefined where a schema does not say which types it takes. */
const typesOf = (schema: JsonSchema | undefined): Types | undefined => {
  if (schema === undefined) return undefined
  const { const: only, enum: some, type } = schema
  if (typeof type === "string") return new Set([type])
  if (Array.isArray(type)) return new Set(type.map(String))
  if (Array.isArray(some)) return new Set(some.map(typeOf))
  if (only !== undefined) return new Set([typeOf(only)])
  return undefined
}

const typeOf = (value: unknown): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "array"
  return typeof value
}

const isOfType = (types: Types, value: Json): boolean =>
  types.has(typeOf(value)) || (types.has("integer") && Number.isInteger(value))

const coerce = (fitting: Fitting, schema: unknown, value: Json, pointer: string): Json => {
  const { changes, root } = fitting
  const part = resolved(root, schema)
  if (part === undefined || pointer.split("/").length > foreignLimits.coercedDepth) return value
  const branches = branchesOf(root, part)
  if (typeof value === "string") {
    const types = branches.map(typesOf)
    if (types.some((each) => each === undefined || each.has("string"))) return value
    const parsed = parsedAs(value, new Set(types.flatMap((each) => [...(each ?? [])])))
    if (parsed === undefined) return value
    changes.push({ pointer, change: "parsed" })
    return typeof parsed === "object" ? coerce(fitting, part, parsed, pointer) : parsed
  }
  // A value that several branches may take means nothing certain.
  const takers = branches.filter((branch) => typesOf(branch)?.has(typeOf(value)) ?? true)
  const [taker] = takers
  if (takers.length !== 1 || taker === undefined) return value
  if (isJsonObject(value)) return coerceObject(fitting, taker, value as Fields, pointer)
  if (!Array.isArray(value) || !isJsonObject(taker["items"])) return value
  return value.map((item: Json, index) => coerce(fitting, taker["items"], item, `${pointer}/${index}`))
}

const coerceObject = (fitting: Fitting, schema: JsonSchema, fields: Fields, pointer: string): Json => {
  const { changes, changesNothing, root } = fitting
  const properties = propertiesOf(schema)
  const names = Object.keys(properties)
  if (names.length === 0 && schema["additionalProperties"] !== false) return fields
  const required = requiredOf(schema)
  const isClosed = schema["additionalProperties"] === false && schema["patternProperties"] === undefined
  const renamed = renamings(fields, names, isClosed ? undefined : required)
  const mayDrop = (key: string, value: Json) =>
    isClosed &&
    !isIdentity(key) &&
    nearestOf(key, names) === undefined &&
    (changesNothing || holdsNothing(value))
  const kept = Object.entries(fields).flatMap(([key, value]): ReadonlyArray<readonly [string, Json]> => {
    const at = pointer + pointerStep(key)
    const name = renamed.get(key) ?? key
    const isKnown = Object.hasOwn(properties, name)
    const isLeftOut = isKnown
      ? value === null && !required.includes(name) && !takesNull(root, properties[name])
      : mayDrop(key, value)
    if (name !== key) changes.push({ pointer: at, change: "renamed", to: name })
    if (isLeftOut) changes.push({ pointer: at, change: "dropped" })
    if (isLeftOut) return []
    return [[name, isKnown ? coerce(fitting, properties[name], value, at) : value]]
  })
  return Object.fromEntries(kept)
}

const holdsNothing = (value: Json): boolean =>
  value === null ||
  value === false ||
  value === "" ||
  (typeof value === "object" && Object.keys(value).length === 0)

const takesNull = (root: JsonSchema, schema: unknown): boolean => {
  const part = resolved(root, schema)
  return part === undefined || branchesOf(root, part).some((branch) => typesOf(branch)?.has("null") ?? true)
}

/** Keys of other spelling by the missing key that they mean: one for one. `only` are the keys that one may be renamed to. */
const renamings = (
  fields: Fields,
  names: ReadonlyArray<string>,
  only: ReadonlyArray<unknown> | undefined
): ReadonlyMap<string, string> => {
  const missing = names.filter(
    (name) => !Object.hasOwn(fields, name) && (only === undefined || only.includes(name))
  )
  const unknown = Object.keys(fields).filter((key) => !names.includes(key))
  return new Map(
    unknown.flatMap((key): ReadonlyArray<readonly [string, string]> => {
      const [name, ...others] = missing.filter((each) => bare(each) === bare(key))
      const isOnly = unknown.filter((each) => bare(each) === bare(key)).length === 1
      return name !== undefined && others.length === 0 && isOnly ? [[key, name]] : []
    })
  )
}

const bare = (key: string): string => key.toLowerCase().replaceAll(/[\s_-]/g, "")

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

const spelled: ReadonlyMap<string, Json> = new Map<string, Json>([
  ["true", true],
  ["false", false],
  ["null", null]
])

/** What a text spells, where it is of one of the types. */
const parsedAs = (text: string, types: Types): Json | undefined => {
  const trimmed = text.trim()
  const word = spelled.get(trimmed.toLowerCase())
  if (word !== undefined) return isOfType(types, word) ? word : undefined
  if (!/^(?:[[{]|-?\d)/.test(trimmed) || scanJson(trimmed) !== undefined) return undefined
  const value = Option.getOrUndefined(decodeJson(trimmed))
  return value !== undefined && isOfType(types, value) ? value : undefined
}
