/**
 * Repairs a model's arguments that nearly fit a tool's JSON Schema.
 *
 * **Invariant** Pure. Fitting arguments never change, and a repaired result always fits; otherwise the call stays as
 * sent and is refused. Each rule applies only where the repair is unambiguous:
 * - Text arguments become the object they parse to; those in `{"arguments": {…}}` (or `args`, `input`, `parameters`,
 *   `params`) are unwrapped, when the tool has no such key.
 * - Text becomes the object, list, number, boolean or null it parses to, when the schema takes that and no text.
 * - A key becomes the one missing key that differs only in case and separators; when the schema takes further keys, only
 *   a required one.
 * - A null is dropped when the key is optional and takes no null.
 * - Any other key is dropped when the schema takes no further keys, no key is similar, and the tool changes nothing: in
 *   a changing call the key may carry meaning. An empty one (null, "", {}, [] or false) is dropped from any call. A key
 *   that names the caller is never dropped.
 *
 * Free JSON, such as the properties of a graph object, is not repaired.
 */
import type { ArgumentChange, Coerced } from "@tropism/domain/coerced"
import { isJsonObject, pointerStep, canonicalJson, type JsonFault, findFault } from "@tropism/domain/json"
import { cutJson } from "@tropism/domain/json-cut"
import { scanJson } from "@tropism/domain/json-text"
import { keptChars } from "@tropism/domain/kept-size"
import { schemaFaults, missing, mustBe, noField } from "@tropism/domain/schema-faults"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Option, Result, Schema, Effect } from "effect"
import { refused, type ChangeRefused } from "../graph/change-refused.ts"
import { toolLimits } from "../limits.ts"
import { lineOf } from "./external-mcp/faults.ts"
import { externalLimits } from "./external-mcp/limits.ts"
import { judge, type JsonSchema, lookUp, referredTo, findLostRef } from "./json-schemas.ts"

type Json = Schema.Json
type Fields = Readonly<Record<string, Json>>

/** The repaired arguments and what was changed. */
export interface Fitted {
  readonly arguments: Json
  readonly coerced?: Coerced
}

/** Returns the arguments of a call, repaired where that is unambiguous. */
export const fitArguments = (schema: JsonSchema, sent: Json, changesNothing: boolean): Fitted => {
  const changes: Array<ArgumentChange> = []
  const coerced = coerceRoot({ root: schema, changes, changesNothing }, sent)
  if (changes.length === 0 || changes.length > externalLimits.argumentChanges) return { arguments: sent }
  const judged = judgeable(schema)
  if (fits(judged, sent) || !fits(judged, coerced)) return { arguments: sent }
  return { arguments: coerced, coerced: { sent, changes } }
}

const fits = (schema: JsonSchema, args: Json): boolean => {
  const judged = judge(schema, args)
  return isJsonObject(args) && Result.isSuccess(judged) && judged.success === undefined
}

const wrappers: ReadonlyArray<string> = ["arguments", "args", "input", "parameters", "params"]

/** The root schema and the changes so far. */
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

/** The JSON Schema type names that a value may have. */
type Types = ReadonlySet<string>

const objects: Types = new Set(["object"])

/** Resolves a schema's references; undefined when they are circular or the schema allows everything. */
const resolved = (root: JsonSchema, schema: unknown): JsonSchema | undefined => {
  let part = schema
  for (let hops = 0; hops < externalLimits.coercedRefs; hops++) {
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

/** Returns the branches of a choice, each merged with the keywords beside it; one branch without a choice. */
const branchesOf = (root: JsonSchema, schema: JsonSchema): ReadonlyArray<JsonSchema | undefined> => {
  const choice = schema["anyOf"] ?? schema["oneOf"]
  return Array.isArray(choice) ? choice.map((branch: unknown) => resolved(root, branch)) : [schema]
}

/** Returns the types a schema takes; undefined when it names none. */
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
  if (part === undefined || pointer.split("/").length > externalLimits.coercedDepth) return value
  const branches = branchesOf(root, part)
  if (typeof value === "string") {
    const types = branches.map(typesOf)
    if (types.some((each) => each === undefined || each.has("string"))) return value
    const parsed = parsedAs(value, new Set(types.flatMap((each) => [...(each ?? [])])))
    if (parsed === undefined) return value
    changes.push({ pointer, change: "parsed" })
    return typeof parsed === "object" ? coerce(fitting, part, parsed, pointer) : parsed
  }
  // A value that several branches may take is ambiguous.
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

/** Maps misspelled keys to the missing keys they mean, one to one. `only` limits the keys to rename to. */
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
      const [name, ...others] = missing.filter((each) => bareKey(each) === bareKey(key))
      const isOnly = unknown.filter((each) => bareKey(each) === bareKey(key)).length === 1
      return name !== undefined && others.length === 0 && isOnly ? [[key, name]] : []
    })
  )
}

const bareKey = (key: string): string => key.toLowerCase().replaceAll(/[\s_-]/g, "")

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

const spelled: ReadonlyMap<string, Json> = new Map<string, Json>([
  ["true", true],
  ["false", false],
  ["null", null]
])

/** Parses a text to a value of one of the types. */
const parsedAs = (text: string, types: Types): Json | undefined => {
  const trimmed = text.trim()
  const word = spelled.get(trimmed.toLowerCase())
  if (word !== undefined) return isOfType(types, word) ? word : undefined
  if (!/^(?:[[{]|-?\d)/.test(trimmed) || scanJson(trimmed) !== undefined) return undefined
  const value = Option.getOrUndefined(decodeJson(trimmed))
  return value !== undefined && isOfType(types, value) ? value : undefined
}

// Decodes the arguments of a tool and reports what does not fit.

/** Decodes arguments strictly: an unknown field is an error that names it. */
export const argumentsAreStrict = { onExcessProperty: "error", errors: "all" } as const

/** Decodes arguments, or refuses them with the shape that the tool takes. */
export const readArguments = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, args: Schema.Json) =>
  Effect.mapError(Schema.decodeUnknownEffect(schema, argumentsAreStrict)(args), ({ issue }) => {
    const faults = schemaFaults(issue)
    return refused("invalid", unfit(faults, jsonSchemaOf(schema)), faults[0]?.pointer)
  })

/** Returns the JSON Schema of a tool's arguments, as MCP lists it. */
export const inputSchemaOf = (
  args: Schema.Top
): { readonly type: "object"; readonly [key: string]: unknown } => ({
  ...jsonSchemaOf(args),
  type: "object",
  additionalProperties: false
})

/** Returns a schema as one JSON document with each alternative once: Effect adds null for nullable and again for optional. */
export const jsonSchemaOf = (of: Schema.Constraint): Readonly<Record<string, unknown>> => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(of)
  return {
    ...(distinct(schema) as object),
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: distinct(definitions) })
  }
}

const distinct = (part: unknown): unknown => {
  if (Array.isArray(part)) return part.map(distinct)
  if (!isJsonObject(part)) return part
  return Object.fromEntries(
    Object.entries(part).map(([key, value]) => [
      key,
      key === "anyOf" && Array.isArray(value)
        ? [...new Map(value.map((each) => [canonicalJson(each), distinct(each)])).values()]
        : distinct(value)
    ])
  )
}

// Messages to the model about a call that could not be made, so that it can correct it.

type Named = ReadonlyArray<{ readonly name: string }>

/** The tool does not exist: the nearest name, and all names. */
export const noTool = (name: string, offered: Named): string =>
  [`There is no tool ${name} for you.`, ...choices(name, offered, "You have")].join(" ")

/** The same message for a person who named a tool that an agent does not have. */
export const noToolOf = (agentName: string, name: string, offered: Named): string =>
  [`The agent ${agentName} has no tool ${name}.`, ...choices(name, offered, "It has")].join(" ")

const choices = (name: string, offered: Named, has: string) => {
  const names = offered.map((tool) => tool.name)
  const nearest = nearestOf(name, names)
  const shown = names.slice(0, toolLimits.listedTools).join(", ")
  const rest =
    names.length > toolLimits.listedTools ? `, and ${names.length - toolLimits.listedTools} more` : ""
  return [
    ...(nearest === undefined ? [] : [`Did you mean ${nearest}?`]),
    names.length === 0 ? `${has} no tools.` : `${has}: ${shown}${rest}.`
  ]
}

/** The arguments are not an object. */
export const unreadable = (fault: string): string =>
  `The arguments were not used: ${fault}. Send them again, as one JSON object.`

/** The arguments do not fit: the faults by place, and the shape that the tool takes. */
export const unfit = (faults: ReadonlyArray<JsonFault>, schema: unknown): string =>
  `The arguments do not fit the tool's schema. ${faults
    .map(({ message, pointer }) => `${pointer === "" ? "The arguments" : pointer}: ${message}`)
    .join("; ")}. It takes ${shapeOf(schema)}.`

/**
 * Bounds an outcome and marks a cut.
 *
 * **Details** An object keeps its members and only large ones are cut, so it still fits the tool's output schema. Any other
 * value becomes the member `result`.
 */
export const bounded = (result: Schema.Json): Schema.Json => {
  const size = keptChars(result)
  if (size <= toolLimits.resultMaxChars) return result
  const { note: said, ...members } = isJsonObject(result) ? result : { result }
  const cut = `The result was ${size} characters long and was cut to fit: ask for less, or for parts of it`
  const head = { isTruncated: true, note: typeof said === "string" ? `${said}. ${cut}` : cut }
  const room = toolLimits.resultMaxChars - keptChars(head)
  return { ...head, ...(cutJson(smallFirst(members), room) as typeof members) }
}

/** Reorders an object so that a large member leaves room for the others. */
export const smallFirst = (members: Readonly<Record<string, Schema.Json>>): Record<string, Schema.Json> =>
  Object.fromEntries(Object.entries(members).toSorted(([, a], [, b]) => keptChars(a) - keptChars(b)))

/** Returns the most similar name, if any is similar. */
const nearestOf = (name: string, names: ReadonlyArray<string>): string | undefined => {
  const wanted = bareToolName(name)
  const reach = Math.max(2, Math.floor(wanted.length / 4))
  const ranked = names
    .map((each) => ({ each, distance: distanceOf(wanted, bareToolName(each)) }))
    .toSorted((a, b) => a.distance - b.distance)
  const [first] = ranked
  return first !== undefined && first.distance <= reach ? first.each : undefined
}

/** A name without its server, ignoring `-`, `_` and case. */
const bareToolName = (name: string): string =>
  name
    .replace(/^.*(?:__|\.|:)/, "")
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .replaceAll("-", "_")
    .toLowerCase()

/** Returns the edit distance between two texts. */
const distanceOf = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1))
    }
    row = next
  }
  return row.at(-1) ?? 0
}

/** Bounds of a displayed shape: a model needs the names and finds the rest in the tool's schema. */
const shapeBounds = { depth: 2, fields: 40, choices: 6, steps: 200, chars: 2_000 } as const

interface Walk {
  readonly root: JsonSchema
  /** References being followed; a circular one is shown as an object. */
  readonly following: ReadonlySet<unknown>
  readonly depth: number
  /** Remaining schema visits. */
  readonly left: { steps: number }
}

/** Formats an object schema in one line: `{type: string, key?: string, properties: object}`, or a choice of several. */
const shapeOf = (schema: unknown): string => {
  if (!isJsonObject(schema)) return "{}"
  const walk: Walk = { root: schema, following: new Set(), depth: 0, left: { steps: shapeBounds.steps } }
  return beginningOf(objectsOf(schema, walk).map(textOfObject(walk)).join(" | "), shapeBounds.chars)
}

/** The members of one form of an object. */
interface ObjectShape {
  readonly fields: ReadonlyMap<string, unknown>
  readonly required: ReadonlySet<string>
}

const noMembers: ObjectShape = { fields: new Map(), required: new Set() }

const joined = (one: ObjectShape, other: ObjectShape): ObjectShape => ({
  fields: new Map([...one.fields, ...other.fields]),
  required: new Set([...one.required, ...other.required])
})

/** Returns the forms of an object, with members from references and combinations. */
const objectsOf = (schema: unknown, walk: Walk): ReadonlyArray<ObjectShape> => {
  walk.left.steps -= 1
  if (!isJsonObject(schema) || walk.left.steps < 0 || walk.following.has(schema)) return [noMembers]
  const inside: Walk = { ...walk, following: new Set([...walk.following, schema]) }
  const { allOf, anyOf, oneOf, properties, required } = schema
  const own: ObjectShape = {
    fields: new Map(isJsonObject(properties) ? Object.entries(properties) : []),
    required: new Set(Array.isArray(required) ? required.filter((name) => typeof name === "string") : [])
  }
  const all = [...referredTo(walk.root, schema), ...(Array.isArray(allOf) ? allOf : [])]
  const forms = all.reduce<ReadonlyArray<ObjectShape>>(
    (before, part) => product(before, objectsOf(part, inside)),
    [own]
  )
  const choices = [anyOf, oneOf].filter((choice): choice is Array<Schema.Json> => Array.isArray(choice))
  return choices.reduce<ReadonlyArray<ObjectShape>>(
    (before, choice) =>
      product(
        before,
        choice
          .filter((part) => !isNull(part))
          .slice(0, shapeBounds.choices)
          .flatMap((part) => objectsOf(part, inside))
      ),
    forms
  )
}

const isNull = (schema: unknown): boolean => isJsonObject(schema) && schema["type"] === "null"

const product = (
  before: ReadonlyArray<ObjectShape>,
  choice: ReadonlyArray<ObjectShape>
): ReadonlyArray<ObjectShape> =>
  choice.length === 0
    ? before
    : before.flatMap((one) => choice.map((other) => joined(one, other))).slice(0, shapeBounds.choices)

const textOfObject =
  (walk: Walk) =>
  ({ fields, required }: ObjectShape): string => {
    // A required member without a description is a member too.
    const described = new Map<string, unknown>([
      ...[...required].map((name) => [name, {}] as const),
      ...fields
    ])
    const names = [...fields.keys(), ...[...required].filter((name) => !fields.has(name))]
    const shown = names
      .slice(0, shapeBounds.fields)
      .map((name) => `${name}${required.has(name) ? "" : "?"}: ${wordOf(described.get(name), walk)}`)
    return `{${[...shown, ...(names.length > shown.length ? ["…"] : [])].join(", ")}}`
  }

/** Describes the values of a member in a few words. */
const wordOf = (schema: unknown, walk: Walk): string => {
  walk.left.steps -= 1
  if (!isJsonObject(schema) || walk.left.steps < 0) return "any JSON"
  if (walk.following.has(schema)) return "object"
  const inside: Walk = {
    ...walk,
    depth: walk.depth + 1,
    following: new Set([...walk.following, schema])
  }
  const { anyOf, enum: values, items, oneOf, properties, type } = schema
  if ("const" in schema) return JSON.stringify(schema["const"])
  if (Array.isArray(values)) return [...new Set(values.map((value) => JSON.stringify(value)))].join(" | ")
  const types = [type].flat().filter((each): each is string => typeof each === "string" && each !== "null")
  if (types.length > 0)
    return types
      .map((each) =>
        each === "array" && isJsonObject(items) && inside.depth < shapeBounds.depth
          ? arrayOf(wordOf(items, inside))
          : each === "object" && isJsonObject(properties) && inside.depth < shapeBounds.depth
            ? objectsOf(schema, { ...walk, depth: inside.depth })
                .map(textOfObject(inside))
                .join(" | ")
            : each
      )
      .join(" | ")
  if (type === "null") return "null"
  for (const choice of [anyOf, oneOf])
    if (Array.isArray(choice)) {
      const words = choice.slice(0, shapeBounds.choices).map((part) => wordOf(part, inside))
      return [...new Set(words.filter((word) => word !== "null"))].join(" | ") || "null"
    }
  const [referred] = [
    ...referredTo(walk.root, schema),
    ...(Array.isArray(schema["allOf"]) ? schema["allOf"] : [])
  ]
  // A reference adds no depth.
  if (referred !== undefined) return wordOf(referred, { ...inside, depth: walk.depth })
  return isJsonObject(properties) ? "object" : "any JSON"
}

const arrayOf = (word: string): string => (word === "any JSON" ? "array" : `array of ${word}`)

// Translates a JSON Schema validator's complaints to the messages used at every boundary.
//
// The validator returns one line of text in which each complaint begins with its place. Complaints that only concern the
// containers of a faulty place are dropped.

/** Returns the faulty places, each once, and no more than a model corrects at once. */
export const placesOf = (complaints: string): ReadonlyArray<JsonFault> => {
  const all = complaints.split(/; (?=#(?:\/\S*)?: )/).map(parseComplaint)
  const strongest = strongestBelow(all)
  const places = new Map<string, Complaint>()
  for (const complaint of all)
    if (strongest.get(complaint.pointer) === complaint.strength)
      places.set(complaint.pointer, joinedComplaints(places.get(complaint.pointer), complaint))
  return [...places.values()]
    .slice(0, externalLimits.argumentFaults)
    .map(({ message, pointer, types }) => ({ pointer, message: lineOf(types ? mustBe(types) : message) }))
}

/** A complaint is dropped when a stronger one concerns the same place or one inside it. */
const strengths = { value: 3, choice: 2, field: 1, container: 0 }

interface Complaint extends JsonFault {
  readonly strength: number
  /** The allowed types, when the type is wrong. */
  readonly types?: ReadonlyArray<string>
}

/** Returns the strongest complaint at or below each place. */
const strongestBelow = (complaints: ReadonlyArray<Complaint>): ReadonlyMap<string, number> => {
  const strongest = new Map<string, number>()
  for (const { pointer, strength } of complaints)
    for (let end = pointer.length; end >= 0; end = end === 0 ? -1 : pointer.lastIndexOf("/", end - 1)) {
      const place = pointer.slice(0, end)
      strongest.set(place, Math.max(strength, strongest.get(place) ?? 0))
    }
  return strongest
}

/** Joins the types that the branches of a choice want at one place. */
const joinedComplaints = (first: Complaint | undefined, next: Complaint): Complaint => {
  if (first === undefined) return next
  return first.types && next.types ? { ...first, types: [...first.types, ...next.types] } : first
}

/** Parses the validator's form `#/a/b: complaint.`. */
const parseComplaint = (text: string): Complaint => {
  const split = text.indexOf(": ")
  const pointer = decodeURI(text.slice(1, split))
  const said = text.slice(split + 2).replace(/\.$/, "")
  const message = said.replace(/^Instance/, "This")
  if (ofContainer.test(said)) return { pointer, message, strength: strengths.container }
  if (ofChoice.test(said)) return { pointer, message, strength: strengths.choice }
  // The validator also calls a known field unknown when it does not fit.
  if (said === "False boolean schema") return { pointer, message: noField, strength: strengths.field }
  const strength = strengths.value
  const required = /^Instance does not have required property "([\s\S]*)"$/.exec(said)?.[1]
  if (required !== undefined) return { pointer: pointer + pointerStep(required), message: missing, strength }
  const types = /^Instance type "\w+" is invalid\. Expected "(.*)"$/.exec(said)?.[1]?.split('", "')
  return { pointer, message: valueOf(said) ?? message, strength, ...(types ? { types } : {}) }
}

/** Complaints about the container of a faulty place. */
const ofContainer =
  /^(?:A subschema had errors|(?:Property|Items) [\s\S]*(?:does|did) not match [\s\S]*schema|Instance does not match (?:every subschema|"then" schema|"else" schema))$/

/** Complaints about a value that fits none, or too many, of a choice's branches. */
const ofChoice = /^Instance does not match (?:any subschemas|exactly one subschema \(\d+ matches\))$/

/** Returns what a value must be, when only certain values are allowed. */
const valueOf = (said: string): string | undefined => {
  const [, some, json] = /^Instance does not match (any of )?([\s\S]+)$/.exec(said) ?? []
  if (json === undefined) return undefined
  const values: unknown = JSON.parse(json)
  return some !== undefined && Array.isArray(values)
    ? `This must be ${values.map((value) => JSON.stringify(value)).join(" or ")}`
    : `This must be ${json}`
}

// Checks the arguments of a call against the tool's pinned schema.
//
// Checked before the call starts: a call that the server would refuse never has an unknown outcome. An argument outside the
// schema never names the caller.

/** Argument names that identify the caller, in common spellings. */
const identities: ReadonlySet<string> = new Set([
  "userid",
  "projectid",
  "agentid",
  "runid",
  "tenantid",
  "attempttoken",
  "token",
  "accesstoken",
  "apikey",
  "authorization",
  "principal"
])

/** Returns the first fault of a call's arguments. */
export const findArgumentsFault = (
  { inputSchema }: { readonly inputSchema: Readonly<Record<string, unknown>> },
  args: Schema.Json
): ChangeRefused | undefined => {
  if (!isJsonObject(args)) return refused("invalid", "The arguments of a tool must be one JSON object")
  const fault = findFault(args)
  if (fault) return refused("invalid", fault.message, fault.pointer)
  const known = isJsonObject(inputSchema["properties"]) ? inputSchema["properties"] : {}
  const identity = Object.keys(args).find((name) => !Object.hasOwn(known, name) && isIdentity(name))
  if (identity !== undefined)
    return refused(
      "invalid",
      `Nobody says who is calling in an argument: leave ${identity} out`,
      pointerStep(identity)
    )
  const judged = judge(judgeable(inputSchema), args)
  if (Result.isFailure(judged))
    return refused("invalid", `The tool's schema cannot be used to check the arguments: ${judged.failure}`)
  if (judged.success === undefined) return undefined
  const faults = faultsOf(inputSchema, args, judged.success)
  return refused("invalid", unfit(faults, inputSchema), faults[0]?.pointer)
}

/** Returns why a schema cannot validate arguments. */
export const whyUnjudgeable = (schema: Readonly<Record<string, unknown>>): string | undefined => {
  const tried = judge(judgeable(schema), {}, { steps: externalLimits.tryingSteps })
  return Result.isFailure(tried) ? `its inputSchema cannot be used: ${tried.failure}` : undefined
}

/** Returns why a schema is unusable: too long, a dangling reference, or one that validates nothing. */
export const whyUnusable = (schema: Readonly<Record<string, unknown>>): string | undefined => {
  if (keptChars(schema) > externalLimits.schemaMaxChars)
    return `The schema is longer than ${externalLimits.schemaMaxChars} characters`
  const lost = findLostRef(schema)
  return lost === undefined
    ? whyUnjudgeable(schema)
    : `The schema refers to ${beginningOf(lineOf(lost), 200)}, which is not in it`
}

/** Removes patterns that do not compile; the server may still support them. */
const judgeable = (schema: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema), (key, part: unknown) => {
    if (key === "pattern" && typeof part === "string") return isExpression(part) ? part : undefined
    if (key === "patternProperties" && isJsonObject(part))
      return Object.fromEntries(Object.entries(part).filter(([pattern]) => isExpression(pattern)))
    return part
  })

/** Removes all patterns: an editor's expression could block the server for minutes, so the client checks them. */
export const withoutPatterns = (schema: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema), (key, part: unknown) => {
    if (key === "pattern" && typeof part === "string") return undefined
    if (!isJsonObject(part) || !isJsonObject(part["patternProperties"])) return part
    const {
      additionalProperties: _more,
      patternProperties: _named,
      unevaluatedProperties: _rest,
      ...kept
    } = part
    return kept
  })

const isExpression = (pattern: string): boolean =>
  Result.isSuccess(Result.try(() => new RegExp(pattern, "u")))

/** Whether an argument's name identifies the caller. */
export const isIdentity = (name: string): boolean => identities.has(name.toLowerCase().replace(/[_-]/g, ""))

/** Returns every faulty place; for arguments that are expensive to check, only the first. */
const faultsOf = (
  schema: Readonly<Record<string, unknown>>,
  args: Schema.Json,
  first: string
): ReadonlyArray<JsonFault> => {
  const isLong = JSON.stringify(args).length > externalLimits.thoroughMaxChars
  const all = isLong
    ? first
    : Result.getOrElse(judge(judgeable(schema), args, { isThorough: true }), () => first)
  const faults = Result.try({
    try: () => placesOf(all ?? first),
    catch: () => [{ pointer: "", message: lineOf(first) }]
  })
  return Result.merge(faults)
}
