/**
 * Judges a value by a stranger's schema, in as many steps as are bounded.
 *
 * The validator has no bound of its own and holds everybody up while it works.
 * So it is given a schema that counts how often it is visited, and a value that
 * counts how often it is looked into; beyond the bound they throw. A `pattern`
 * is not counted.
 */
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker"
import { isJsonObject } from "@tropism/domain/json"
import { Result } from "effect"
import { asObject, isObjectAtRoot } from "../models/tool-schemas.ts"
import { lineOf } from "./external-mcp/faults.ts"
import { externalLimits } from "./external-mcp/limits.ts"

/** Interprets schemas; the other validator of the SDK would make programs of a stranger's text. */
const engine = new CfWorkerJsonSchemaValidator()

/** Goes on after the first fault; it is asked about what does not fit. */
const thorough = new CfWorkerJsonSchemaValidator({ shortcircuit: false })

/** What does not fit, in the validator's words, undefined where everything does; a failure says why nobody can judge by the schema. */
export const judge = (
  schema: JsonSchema,
  value: unknown,
  { isThorough = false, steps = externalLimits.judgingSteps }: { isThorough?: boolean; steps?: number } = {}
): Result.Result<string | undefined, string> =>
  Result.flatMap(readable(schema), () =>
    Result.try({
      try: () => {
        let left = steps
        const spend = (count: number) => {
          left -= count
          if (left < 0) throw new RangeError(`More than ${steps} steps are taken to judge by it`)
        }
        const validator = (isThorough ? thorough : engine).getValidator(countedSchema(schema, spend))
        return validator(countedValue(value, spend)).errorMessage
      },
      catch: (error) => lineOf(String(error))
    })
  )

/** A schema that is not too much. */
const readable = (schema: JsonSchema): Result.Result<undefined, string> =>
  Result.flatMap(
    Result.try({ try: () => whyTooMuch(schema), catch: (error) => lineOf(String(error)) }),
    (tooMuch) => (tooMuch === undefined ? Result.succeed(undefined) : Result.fail(tooMuch))
  )

/** A copy that counts its visits: whoever visits a part asks for its type. */
const countedSchema = (schema: JsonSchema, spend: (count: number) => void): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema), (_key, part: unknown) => {
    if (!isJsonObject(part)) return part
    const { type } = part
    const count = stepsOf(part)
    return Object.defineProperty(part, "type", {
      configurable: true,
      enumerable: Object.hasOwn(part, "type"),
      get: () => {
        spend(count)
        return type
      }
    })
  })

/** What a visit costs: itself, the lists that are gone through for it, and the words that may be told. */
const stepsOf = (part: JsonSchema): number =>
  Object.entries(part).reduce((sum, [keyword, said]) => sum + Math.ceil(charsOf(keyword, said) / 5), 10)

const charsOf = (keyword: string, said: unknown): number => {
  if (keyword === "enum" || keyword === "const") return JSON.stringify(said).length
  if (isJsonObject(said)) return JSON.stringify(Object.keys(said)).length
  if (Array.isArray(said))
    return JSON.stringify(said.map((each: unknown) => (isJsonObject(each) ? 0 : each))).length
  return keyword === "type" ? String(said).length : 0
}

/** The same value, which counts how often something in it is looked at. */
const countedValue = (value: unknown, spend: (count: number) => void): unknown => {
  const views = new WeakMap<object, object>()
  const view = (part: unknown): unknown => {
    if (typeof part !== "object" || part === null) return part
    const known = views.get(part)
    if (known) return known
    const made = new Proxy(part, counting)
    views.set(part, made)
    return made
  }
  const counting: ProxyHandler<object> = {
    get: (part, key) => {
      spend(1)
      return view(Reflect.get(part, key))
    },
    has: (part, key) => {
      spend(1)
      return Reflect.has(part, key)
    },
    getOwnPropertyDescriptor: (part, key) => {
      spend(1)
      return Reflect.getOwnPropertyDescriptor(part, key)
    }
  }
  return view(value)
}

// Whether a schema can be gone through in a bounded time, before anything is judged by it.
//
// A reference is a few words and may stand for as much as one likes: two that
// lead to two each, and so on, double the work with every line. What is counted
// here is what is visited for one place of a value. A step into the value begins
// anew: how deep that goes, the value says (`bounded-judging.ts`).

/** Why a schema takes too long to judge anything by. */
export const whyTooMuch = (root: JsonSchema): string | undefined => {
  const counts = new Map<unknown, number>()
  const visits = (part: unknown): number => {
    if (!isJsonObject(part)) return 1
    const known = counts.get(part)
    if (known !== undefined) return known
    // What leads back to itself without a step into the value never ends.
    counts.set(part, Infinity)
    const count = inPlace(root, part).reduce<number>((sum, next) => sum + visits(next), 1)
    counts.set(part, count)
    return count
  }
  const seen = new Set<unknown>([root])
  for (const part of seen) {
    if (!isJsonObject(part)) continue
    if (visits(part) > externalLimits.schemaVisits)
      return `following its references, more than ${externalLimits.schemaVisits} parts of it are visited for one value`
    for (const next of [...inPlace(root, part), ...further(part)]) seen.add(next)
  }
  return undefined
}

/** Keywords whose schemas judge the same place of the value, and those whose schemas judge what is in it. */
const ofTheSame = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"]
const ofTheSameByName = ["dependentSchemas", "dependencies"]
const ofParts = [
  "items",
  "prefixItems",
  "additionalItems",
  "unevaluatedItems",
  "contains",
  "additionalProperties",
  "unevaluatedProperties",
  "propertyNames"
]
const ofPartsByName = ["properties", "patternProperties"]

const inPlace = (root: JsonSchema, part: JsonSchema): ReadonlyArray<unknown> => [
  ...referredTo(root, part),
  ...schemasOf(part, ofTheSame, ofTheSameByName)
]

const further = (part: JsonSchema): ReadonlyArray<unknown> => schemasOf(part, ofParts, ofPartsByName)

const schemasOf = (
  part: JsonSchema,
  keywords: ReadonlyArray<string>,
  byName: ReadonlyArray<string>
): ReadonlyArray<unknown> => [
  ...keywords.flatMap((keyword) => (Object.hasOwn(part, keyword) ? part[keyword] : [])),
  ...byName.flatMap((keyword) => (isJsonObject(part[keyword]) ? Object.values(part[keyword]) : []))
]

// What the references of a JSON Schema lead to within it.
//
// Nothing is fetched: a reference that leads out of its schema leads nowhere.

export type JsonSchema = Readonly<Record<string, unknown>>

/** Places whose content is a value and no schema. */
const values: ReadonlySet<string> = new Set(["enum", "const", "default", "examples"])

/** What a reference leads to; undefined where it leads nowhere. */
export const lookUp = (root: JsonSchema, ref: string): unknown => {
  if (ref === "#" || ref === root["$id"]) return root
  const fragment = ref.startsWith("#") ? ref.slice(1) : undefined
  if (fragment === undefined) return namesIn(root).ids.get(ref)
  if (!fragment.startsWith("/")) return namesIn(root).anchors.get(fragment)
  return fragment
    .slice(1)
    .split("/")
    .map((step) => safeDecode(step).replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce<unknown>(
      (place, step) =>
        (isJsonObject(place) || Array.isArray(place)) && Object.hasOwn(place, step)
          ? (place as Record<string, unknown>)[step]
          : undefined,
      root
    )
}

/** Everything that a part refers to; what a dynamic reference leads to depends on the way to it, so that is all of it. */
const referredTo = (root: JsonSchema, part: JsonSchema): ReadonlyArray<unknown> => {
  const { $dynamicRef, $recursiveRef, $ref } = part
  const dynamic =
    typeof $dynamicRef === "string" ? (namesIn(root).dynamic.get($dynamicRef.replace(/^#/, "")) ?? []) : []
  return [
    ...dynamic,
    ...[$ref, $dynamicRef, $recursiveRef].flatMap((ref) =>
      typeof ref === "string" ? [lookUp(root, ref)] : []
    )
  ]
}

/** A reference that leads out of its schema, or nowhere in it. */
export const findLostRef = (root: JsonSchema): string | undefined => {
  const lost = find(root, ({ $ref }) => typeof $ref === "string" && lookUp(root, $ref) === undefined)
  return lost === undefined ? undefined : String(lost["$ref"])
}

/** The parts of a schema that have names, each by its name. */
interface Names {
  readonly ids: ReadonlyMap<unknown, JsonSchema>
  readonly anchors: ReadonlyMap<unknown, JsonSchema>
  readonly dynamic: ReadonlyMap<unknown, ReadonlyArray<JsonSchema>>
}

/** Gone through once: a schema has as many references as it likes. */
const named = new WeakMap<JsonSchema, Names>()

const namesIn = (root: JsonSchema): Names => {
  const known = named.get(root)
  if (known) return known
  const ids = new Map<unknown, JsonSchema>()
  const anchors = new Map<unknown, JsonSchema>()
  const dynamic = new Map<unknown, Array<JsonSchema>>()
  find(root, (part) => {
    const { $anchor, $dynamicAnchor, $id } = part
    if (!ids.has($id)) ids.set($id, part)
    if (!anchors.has($anchor)) anchors.set($anchor, part)
    if (typeof $dynamicAnchor === "string")
      dynamic.set($dynamicAnchor, [...(dynamic.get($dynamicAnchor) ?? []), part])
    return false
  })
  const names = { ids, anchors, dynamic }
  named.set(root, names)
  return names
}

/** The first object in a schema that is as wanted. */
const find = (part: unknown, isWanted: (object: JsonSchema) => boolean): JsonSchema | undefined => {
  if (Array.isArray(part)) {
    for (const each of part) {
      const found = find(each, isWanted)
      if (found) return found
    }
    return undefined
  }
  if (!isJsonObject(part)) return undefined
  if (isWanted(part)) return part
  return find(
    Object.entries(part).flatMap(([key, each]) => (values.has(key) && !isJsonObject(each) ? [] : [each])),
    isWanted
  )
}

const safeDecode = (step: string): string => (/%(?![0-9A-Fa-f]{2})/.test(step) ? step : decode(step))

const decode = (step: string): string => (/%[89A-Fa-f]/.test(step) ? step : decodeURIComponent(step))

// The schema of a foreign tool's arguments in the form that every provider takes.
//
// Providers refuse a whole request for one tool whose schema is a choice at its
// root, and some know no references. So a model is shown the fields of all branches
// as one object, and what references lead to in their places; what is recursive
// ends after one round. Arguments are judged by the tool's own schema all the same.

/** A schema as a model is shown it. */
export const offeredSchema = (schema: JsonSchema): JsonSchema & { readonly type: "object" } => {
  const isPlain = isObjectAtRoot(schema) && !hasRef(schema)
  if (isPlain) return { ...schema, type: "object" }
  const inlined = inline(schema)
  const { $defs: _defs, definitions: _definitions, ...rest } = isJsonObject(inlined) ? inlined : {}
  return asObject(rest)
}

const hasRef = (schema: JsonSchema): boolean =>
  /"\$(?:ref|dynamicRef|recursiveRef)":/.test(JSON.stringify(schema))

/** Puts in place what references lead to, as far as that is not recursive and not too much. */
const inline = (root: JsonSchema): unknown => {
  let parts = 0
  const walk = (part: unknown, within: ReadonlyArray<string>): unknown => {
    if (Array.isArray(part)) return part.map((each) => walk(each, within))
    if (!isJsonObject(part)) return part
    parts += 1
    const { $dynamicRef: _dynamic, $recursiveRef: _recursive, $ref, ...rest } = part
    if (typeof $ref !== "string") return mapped(rest, within)
    const target = lookUp(root, $ref)
    if (!isJsonObject(target)) return mapped(rest, within)
    if (within.includes($ref) || parts > externalLimits.schemaParts) return cutShort({ ...target, ...rest })
    return { ...(walk(target, [...within, $ref]) as object), ...mapped(rest, within) }
  }
  const mapped = (part: JsonSchema, within: ReadonlyArray<string>) =>
    Object.fromEntries(
      Object.entries(part).flatMap(([key, each]) =>
        key === "$defs" || key === "definitions" ? [] : [[key, walk(each, within)]]
      )
    )
  return walk(root, ["#"])
}

/** What is told of a part that is not gone into once more. */
const cutShort = ({ description, title, type }: JsonSchema): JsonSchema => ({
  ...(type === undefined ? {} : { type }),
  ...(title === undefined ? {} : { title }),
  ...(description === undefined ? {} : { description })
})
