/**
 * Puts right the arguments of a model that nearly fit a tool's JSON Schema.
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
import type { ArgumentChange, Coerced } from "@tropism/domain/coerced"
import { isJsonObject, pointerStep, canonicalJson, type JsonFault, findFault } from "@tropism/domain/json"
import { cutJson } from "@tropism/domain/json-cut"
import { scanJson } from "@tropism/domain/json-text"
import { keptChars } from "@tropism/domain/kept-size"
import { schemaFaults, missing, mustBe, noField } from "@tropism/domain/schema-faults"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Option, Result, Schema, Effect, Predicate } from "effect"
import { refused, type ChangeRefused } from "../graph/change-refused.ts"
import { toolLimits } from "../limits.ts"
import { lineOf } from "./external-mcp/faults.ts"
import { externalLimits } from "./external-mcp/limits.ts"
import { judge, type JsonSchema, lookUp, findLostRef } from "./json-schemas.ts"

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

/** What a text spells, where it is of one of the types. */
const parsedAs = (text: string, types: Types): Json | undefined => {
  const trimmed = text.trim()
  const word = spelled.get(trimmed.toLowerCase())
  if (word !== undefined) return isOfType(types, word) ? word : undefined
  if (!/^(?:[[{]|-?\d)/.test(trimmed) || scanJson(trimmed) !== undefined) return undefined
  const value = Option.getOrUndefined(decodeJson(trimmed))
  return value !== undefined && isOfType(types, value) ? value : undefined
}

// Reads what a tool was given, and says what does not fit.
//

/** Reads arguments strictly: a field that the schema does not have is an error that names it. */
export const argumentsAreStrict = { onExcessProperty: "error", errors: "all" } as const

/** Reads arguments, or refuses them with what the tool takes. */
export const readArguments = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, args: Schema.Json) =>
  Effect.mapError(Schema.decodeUnknownEffect(schema, argumentsAreStrict)(args), ({ issue }) => {
    const faults = schemaFaults(issue)
    return refused("invalid", unfit(faults, jsonSchemaOf(schema)), faults[0]?.pointer)
  })

/** The JSON Schema of a tool's arguments, as MCP lists it. */
export const inputSchemaOf = (
  args: Schema.Top
): { readonly type: "object"; readonly [key: string]: unknown } => ({
  ...jsonSchemaOf(args),
  type: "object",
  additionalProperties: false
})

/** A schema in one JSON document, each alternative of a choice once: effect names null for what may be null and again for what may be absent. */
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

// What a model reads about a call that could not be made, so that it can mend it.
//

type Named = ReadonlyArray<{ readonly name: string }>

/** It called a tool that it does not have: the nearest one, and all there are. */
export const noTool = (name: string, offered: Named): string =>
  [`There is no tool ${name} for you.`, ...choices(name, offered, "You have")].join(" ")

/** The same, for a person who named a tool that an agent does not have. */
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

/** Its arguments were nothing that a tool can be given. */
export const unreadable = (fault: string): string =>
  `The arguments were not used: ${fault}. Send them again, as one JSON object.`

/** Its arguments do not fit: what is wrong where, and what the tool takes. */
export const unfit = (faults: ReadonlyArray<JsonFault>, schema: unknown): string =>
  `The arguments do not fit the tool's schema. ${faults
    .map(({ message, pointer }) => `${pointer === "" ? "The arguments" : pointer}: ${message}`)
    .join("; ")}. It takes ${shapeOf(schema)}.`

/**
 * An outcome in bounds; one that was cut says so.
 *
 * **Details** An object keeps its members, and only the large ones of them are cut: it is still what its tool promises,
 * and what was done is not told as something else. Anything else becomes the member `result`.
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

/** The same object, in which a large member leaves the others what they need. */
export const smallFirst = (members: Readonly<Record<string, Schema.Json>>): Record<string, Schema.Json> =>
  Object.fromEntries(Object.entries(members).toSorted(([, a], [, b]) => keptChars(a) - keptChars(b)))

/** The name that is most like another, if one is like it at all. */
const nearestOf = (name: string, names: ReadonlyArray<string>): string | undefined => {
  const wanted = bareToolName(name)
  const reach = Math.max(2, Math.floor(wanted.length / 4))
  const ranked = names
    .map((each) => ({ each, distance: distanceOf(wanted, bareToolName(each)) }))
    .toSorted((a, b) => a.distance - b.distance)
  const [first] = ranked
  return first !== undefined && first.distance <= reach ? first.each : undefined
}

/** A name without its server, in which `-`, `_` and capitals make no difference. */
const bareToolName = (name: string): string =>
  name
    .replace(/^.*(?:__|\.|:)/, "")
    .replaceAll(/([a-z])([A-Z])/g, "$1_$2")
    .replaceAll("-", "_")
    .toLowerCase()

/** How many characters must be put in, left out or changed to make one text of another. */
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

/** A JSON Schema of an object in one line: `{type: string, key?: string, properties: object}`. */
const shapeOf = (schema: unknown): string => {
  const properties = Predicate.hasProperty(schema, "properties") ? schema.properties : {}
  const required =
    Predicate.hasProperty(schema, "required") && Array.isArray(schema.required) ? schema.required : []
  const fields = Object.entries(Predicate.isObject(properties) ? properties : {}).map(
    ([name, field]) => `${name}${required.includes(name) ? "" : "?"}: ${wordOf(field)}`
  )
  return `{${fields.join(", ")}}`
}

const wordOf = (schema: unknown): string => {
  if (Predicate.hasProperty(schema, "enum") && Array.isArray(schema.enum))
    return schema.enum.map((value) => JSON.stringify(value)).join(" | ")
  if (Predicate.hasProperty(schema, "type")) {
    const types = [schema.type].flat().filter((type) => type !== "null")
    if (types.length > 0) return types.join(" | ")
  }
  if (Predicate.hasProperty(schema, "anyOf") && Array.isArray(schema.anyOf)) {
    const words = schema.anyOf.map(wordOf).filter((word) => word !== "null")
    return [...new Set(words)].join(" | ")
  }
  if (Predicate.hasProperty(schema, "$ref")) return "object"
  return Predicate.hasProperty(schema, "type") ? "null" : "any JSON"
}

// What a validator of JSON Schemas complains of, in the words that every edge uses.
//
// The validator answers one line of text in which each complaint begins with its
// place. Here it becomes places by JSON pointer; what it only says of the
// containers of such a place is left out.

/** The places that are wrong, each told once, and no more of them than a model mends at once. */
export const placesOf = (complaints: string): ReadonlyArray<JsonFault> => {
  const all = complaints.split(/; (?=#(?:\/\S*)?: )/).map(parseComplaint)
  const strongest = strongestBelow(all)
  const places = new Map<string, Complaint>()
  for (const complaint of all)
    if (strongest.get(complaint.pointer) === complaint.strength)
      places.set(complaint.pointer, joined(places.get(complaint.pointer), complaint))
  return [...places.values()]
    .slice(0, externalLimits.argumentFaults)
    .map(({ message, pointer, types }) => ({ pointer, message: lineOf(types ? mustBe(types) : message) }))
}

/** A complaint is not told where a stronger one is of the same place, or of one in it. */
const strengths = { value: 3, choice: 2, field: 1, container: 0 }

interface Complaint extends JsonFault {
  readonly strength: number
  /** The types of which a value must be one, where that is the complaint. */
  readonly types?: ReadonlyArray<string>
}

/** How strong the strongest complaint is of a place and of what lies in it. */
const strongestBelow = (complaints: ReadonlyArray<Complaint>): ReadonlyMap<string, number> => {
  const strongest = new Map<string, number>()
  for (const { pointer, strength } of complaints)
    for (let end = pointer.length; end >= 0; end = end === 0 ? -1 : pointer.lastIndexOf("/", end - 1)) {
      const place = pointer.slice(0, end)
      strongest.set(place, Math.max(strength, strongest.get(place) ?? 0))
    }
  return strongest
}

/** One place wants text, says one branch of a choice, and a list, says another: it takes either. */
const joined = (first: Complaint | undefined, next: Complaint): Complaint => {
  if (first === undefined) return next
  return first.types && next.types ? { ...first, types: [...first.types, ...next.types] } : first
}

/** `#/a/b: complaint.`, as the validator spells it. */
const parseComplaint = (text: string): Complaint => {
  const split = text.indexOf(": ")
  const pointer = decodeURI(text.slice(1, split))
  const said = text.slice(split + 2).replace(/\.$/, "")
  const message = said.replace(/^Instance/, "This")
  if (ofContainer.test(said)) return { pointer, message, strength: strengths.container }
  if (ofChoice.test(said)) return { pointer, message, strength: strengths.choice }
  // A field that is there and does not fit is called unknown as well.
  if (said === "False boolean schema") return { pointer, message: noField, strength: strengths.field }
  const strength = strengths.value
  const required = /^Instance does not have required property "([\s\S]*)"$/.exec(said)?.[1]
  if (required !== undefined) return { pointer: pointer + pointerStep(required), message: missing, strength }
  const types = /^Instance type "\w+" is invalid\. Expected "(.*)"$/.exec(said)?.[1]?.split('", "')
  return { pointer, message: valueOf(said) ?? message, strength, ...(types ? { types } : {}) }
}

/** Said of what holds the place that does not fit. */
const ofContainer =
  /^(?:A subschema had errors|(?:Property|Items) [\s\S]*(?:does|did) not match [\s\S]*schema|Instance does not match (?:every subschema|"then" schema|"else" schema))$/

/** Said of a value that fits none of the branches of a choice, or too many. */
const ofChoice = /^Instance does not match (?:any subschemas|exactly one subschema \(\d+ matches\))$/

/** What a value must be where only certain ones are taken. */
const valueOf = (said: string): string | undefined => {
  const [, some, json] = /^Instance does not match (any of )?([\s\S]+)$/.exec(said) ?? []
  if (json === undefined) return undefined
  const values: unknown = JSON.parse(json)
  return some !== undefined && Array.isArray(values)
    ? `This must be ${values.map((value) => JSON.stringify(value)).join(" or ")}`
    : `This must be ${json}`
}

// Whether the arguments of a call fit what the tool's pinned schema says.
//
// Judged before anything is started: a call that the server would refuse is not
// a call whose outcome somebody has to find out. Who is calling is never said in
// an argument that the schema does not have.

/** Names that say who is calling, as people write them. */
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

/** The first thing that is wrong with a call's arguments. */
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

/** Why no arguments can be judged by a schema. */
export const whyUnjudgeable = (schema: Readonly<Record<string, unknown>>): string | undefined => {
  const tried = judge(judgeable(schema), {}, { steps: externalLimits.tryingSteps })
  return Result.isFailure(tried) ? `its inputSchema cannot be used: ${tried.failure}` : undefined
}

/** Why no tool can have a schema: it is too long, a reference in it leads nowhere, or nothing can be judged by it. */
export const whyUnusable = (schema: Readonly<Record<string, unknown>>): string | undefined => {
  if (keptChars(schema) > externalLimits.schemaMaxChars)
    return `The schema is longer than ${externalLimits.schemaMaxChars} characters`
  const lost = findLostRef(schema)
  return lost === undefined
    ? whyUnjudgeable(schema)
    : `The schema refers to ${beginningOf(lineOf(lost), 200)}, which is not in it`
}

/** The schema without patterns that no expression can be made of: the server itself may know them. */
const judgeable = (schema: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema), (key, part: unknown) => {
    if (key === "pattern" && typeof part === "string") return isExpression(part) ? part : undefined
    if (key === "patternProperties" && isJsonObject(part))
      return Object.fromEntries(Object.entries(part).filter(([pattern]) => isExpression(pattern)))
    return part
  })

/** The schema without its patterns: an expression of an editor's could hold the server for minutes, so the client checks them. */
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

/** Whether an argument's name says who is calling. */
export const isIdentity = (name: string): boolean => identities.has(name.toLowerCase().replace(/[_-]/g, ""))

/** Every place that does not fit; of arguments that take long to go through, the one that was found first. */
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
