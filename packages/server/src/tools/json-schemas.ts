/**
 * Validates a value by an untrusted schema in a bounded number of steps.
 *
 * The validator has no bound and blocks the event loop. So its schema and value are wrapped to count visits, and throw
 * beyond the bound. A `pattern` is not counted.
 */
import { CfWorkerJsonSchemaValidator } from "@modelcontextprotocol/client/validators/cf-worker"
import { isJsonObject } from "@tropism/domain/json"
import { Result } from "effect"
import { asObject, isObjectAtRoot } from "../models/tool-schemas.ts"
import { lineOf } from "./external-mcp/faults.ts"
import { externalLimits } from "./external-mcp/limits.ts"

/** Interprets schemas; the SDK's other validator compiles code from untrusted text. */
const engine = new CfWorkerJsonSchemaValidator()

/** Continues after the first fault, to report all of them. */
const thorough = new CfWorkerJsonSchemaValidator({ shortcircuit: false })

/** Returns the validator's complaints, undefined when there are none; fails when the schema is unusable. */
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

/** Refuses a schema that is too large. */
const readable = (schema: JsonSchema): Result.Result<undefined, string> =>
  Result.flatMap(
    Result.try({ try: () => whyTooMuch(schema), catch: (error) => lineOf(String(error)) }),
    (tooMuch) => (tooMuch === undefined ? Result.succeed(undefined) : Result.fail(tooMuch))
  )

/** A copy that counts its visits: the validator reads the type of each visited part. */
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

/** The cost of a visit: itself, the lists it iterates, and the text it may report. */
const stepsOf = (part: JsonSchema): number =>
  Object.entries(part).reduce((sum, [keyword, said]) => sum + Math.ceil(charsOf(keyword, said) / 5), 10)

const charsOf = (keyword: string, said: unknown): number => {
  if (keyword === "enum" || keyword === "const") return JSON.stringify(said).length
  if (isJsonObject(said)) return JSON.stringify(Object.keys(said)).length
  if (Array.isArray(said))
    return JSON.stringify(said.map((each: unknown) => (isJsonObject(each) ? 0 : each))).length
  return keyword === "type" ? String(said).length : 0
}

/** The same value, counting reads of its parts. */
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

// Checks that a schema can be traversed in bounded time, before it validates anything.
//
// References can double the work with every level. The count covers the visits at one place of a value; each step into the
// value starts again, and the step bound of `judge` limits those.

/** Returns why a schema is too expensive to validate with. */
export const whyTooMuch = (root: JsonSchema): string | undefined => {
  const counts = new Map<unknown, number>()
  const visits = (part: unknown): number => {
    if (!isJsonObject(part)) return 1
    const known = counts.get(part)
    if (known !== undefined) return known
    // A cycle without a step into the value never ends.
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

/** Keywords whose schemas apply to the same place of the value, and those whose schemas apply inside it. */
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

// Resolves references within a JSON Schema.
//
// Nothing is fetched: an external reference resolves to nothing.

export type JsonSchema = Readonly<Record<string, unknown>>

/** Keywords whose content is a value and not a schema. */
const values: ReadonlySet<string> = new Set(["enum", "const", "default", "examples"])

/** Resolves a reference; undefined when it leads nowhere. */
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

/** Returns all targets of a part's references; a dynamic reference depends on its path, so it has several. */
export const referredTo = (root: JsonSchema, part: JsonSchema): ReadonlyArray<unknown> => {
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

/** Returns the first external or dangling reference. */
export const findLostRef = (root: JsonSchema): string | undefined => {
  const lost = find(root, ({ $ref }) => typeof $ref === "string" && lookUp(root, $ref) === undefined)
  return lost === undefined ? undefined : String(lost["$ref"])
}

/** The named parts of a schema. */
interface Names {
  readonly ids: ReadonlyMap<unknown, JsonSchema>
  readonly anchors: ReadonlyMap<unknown, JsonSchema>
  readonly dynamic: ReadonlyMap<unknown, ReadonlyArray<JsonSchema>>
}

/** Cached: a schema may have any number of references. */
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

/** Returns the first object in a schema that fulfils a condition. */
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

// Converts a foreign tool's argument schema to the form that every provider accepts.
//
// Providers refuse a whole request for one tool whose schema is a choice at its root, and some know no references. So the model
// sees the fields of all branches as one object, with references inlined; recursion ends after one round. Arguments are still
// validated by the tool's own schema.

/** Returns the schema to show to a model. */
export const offeredSchema = (schema: JsonSchema): JsonSchema & { readonly type: "object" } => {
  const isPlain = isObjectAtRoot(schema) && !hasRef(schema)
  if (isPlain) return { ...schema, type: "object" }
  const inlined = inline(schema)
  const { $defs: _defs, definitions: _definitions, ...rest } = isJsonObject(inlined) ? inlined : {}
  return asObject(rest)
}

const hasRef = (schema: JsonSchema): boolean =>
  /"\$(?:ref|dynamicRef|recursiveRef)":/.test(JSON.stringify(schema))

/** Inlines references, except recursive ones and beyond the size bound. */
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

/** The stub of a part that is not expanded again. */
const cutShort = ({ description, title, type }: JsonSchema): JsonSchema => ({
  ...(type === undefined ? {} : { type }),
  ...(title === undefined ? {} : { title }),
  ...(description === undefined ? {} : { description })
})
