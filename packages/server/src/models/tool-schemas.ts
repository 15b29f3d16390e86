/**
 * Rewrites tool schemas to what providers accept, and maps calls back to the tools' own keys.
 *
 * A provider refuses the whole request for one schema outside its rules, so the agent could not work at all. The rewritten schema may allow
 * more than the tool does: each call is validated against the tool's own schema.
 */
import type { LanguageModelV4FunctionTool } from "@ai-sdk/provider"
import { canonicalJson, isJsonObject } from "@tropism/domain/json"
import { shortened } from "@tropism/domain/text-beginning"
import { Result, type Schema } from "effect"
import { Tool } from "effect/ai"

type JsonSchema = Readonly<Record<string, unknown>>

/** A provider's rules beside the common ones. */
export interface SchemaRules {
  /** OpenAI, and servers that copy its API, refuse a longer function description. */
  readonly descriptionMaxChars?: number | undefined
  /** Google refuses enums with values other than text. */
  readonly areEnumsText?: boolean | undefined
}

/** The rules of a provider, by its name. */
export const schemaRulesOf = (provider: string): SchemaRules => {
  switch (provider) {
    case "openai":
    case "azure":
    case "openai-compatible":
    case "openrouter":
    case "mistral":
      return { descriptionMaxChars: 1_024 }
    case "google":
    case "google-vertex":
      return { areEnumsText: true }
    default:
      return {}
  }
}

/** The tools of a request as a provider accepts them. */
export const toAiSdkTools = (
  tools: ReadonlyArray<Tool.Any>,
  { areEnumsText = false, descriptionMaxChars }: SchemaRules = {}
): Array<LanguageModelV4FunctionTool> =>
  tools.map((tool) => {
    const description = Tool.getDescription(tool)
    return {
      type: "function",
      name: tool.name,
      ...(description === undefined
        ? {}
        : {
            description:
              descriptionMaxChars === undefined
                ? description
                : shortened(description, descriptionMaxChars - 1)
          }),
      inputSchema: fittedOf(Tool.getJsonSchema(tool), areEnumsText).schema
    }
  })

/** A call's arguments with the keys of the tool's own schema. */
export const withOwnKeys = (
  tools: ReadonlyArray<Tool.Any>,
  name: string,
  params: Schema.Json
): Schema.Json => {
  const tool = tools.find((each) => each.name === name)
  const { keys } = tool === undefined ? { keys: noKeys } : fittedOf(Tool.getJsonSchema(tool), false)
  return keys.size === 0 ? params : renamed(params, keys)
}

const noKeys: ReadonlyMap<string, string> = new Map()

interface Fitted {
  readonly schema: Record<string, unknown>
  /** The tool's own keys, by the offered ones. */
  readonly keys: ReadonlyMap<string, string>
}

/** Cached by schema, so that a list that is offered again is not rewritten. */
const known = { text: new WeakMap<object, Fitted>(), any: new WeakMap<object, Fitted>() }

const fittedOf = (schema: JsonSchema, areEnumsText: boolean): Fitted => {
  const before = known[areEnumsText ? "text" : "any"]
  const found = before.get(schema) ?? fit(schema, areEnumsText)
  before.set(schema, found)
  return found
}

/** Anthropic's rule for keys, which is the strictest. */
const isPlainKey = (key: string): boolean => /^[A-Za-z0-9_.-]{1,64}$/.test(key)

const fit = (root: JsonSchema, areEnumsText: boolean): Fitted => {
  const own = new Map<string, string>()
  const offered = new Map<string, string>()
  const taken = new Set(keysIn(root))
  const keyOf = (key: string): string => {
    if (isPlainKey(key)) return key
    const before = offered.get(key)
    if (before !== undefined) return before
    const plain =
      key
        .replace(/[^A-Za-z0-9_.-]+/g, "_")
        .replace(/^_+|_+$/g, "")
        .slice(0, 56) || "key"
    let free = plain
    for (let index = 2; taken.has(free); index++) free = `${plain}_${index}`
    taken.add(free)
    offered.set(key, free)
    own.set(free, key)
    return free
  }
  const walk = (part: unknown): JsonSchema => {
    if (!isJsonObject(part)) return {}
    const entries = Object.entries(part).flatMap(([keyword, value]) =>
      fitKeyword(keyword, value, walk, keyOf)
    )
    const fitted = demanding(conditional(bounded(listed(Object.fromEntries(entries), part, walk))))
    return areEnumsText ? withTextEnum(fitted) : fitted
  }
  const walked = walk(root)
  const schema = isObjectAtRoot(walked) ? walked : demanding(asObject(walked))
  return {
    schema: { ...schema, type: "object", properties: schema["properties"] ?? {} },
    keys: own
  }
}

/** All property names in a schema. */
const keysIn = (part: unknown): ReadonlyArray<string> =>
  Array.isArray(part)
    ? part.flatMap(keysIn)
    : isJsonObject(part)
      ? [
          ...(isJsonObject(part["properties"]) ? Object.keys(part["properties"]) : []),
          ...Object.values(part).flatMap(keysIn)
        ]
      : []

type Walk = (part: unknown) => JsonSchema

/** A keyword as it is offered; dropped where its value is invalid, since a weaker schema is better than none. */
const fitKeyword = (
  keyword: string,
  value: unknown,
  walk: Walk,
  keyOf: (key: string) => string
): ReadonlyArray<readonly [string, unknown]> => {
  const isValid = validity.get(keyword)
  if (isValid !== undefined) return isValid(value) ? [[keyword, value]] : []
  switch (keyword) {
    case "type":
      return typeOf(value).map((type) => [keyword, type])
    case "$ref":
      return typeof value === "string" ? [[keyword, withKeys(value, keyOf)]] : []
    case "properties":
    case "dependentSchemas":
      return mapped(keyword, value, (key, each) => [keyOf(key), walk(each)])
    case "$defs":
    case "definitions":
      return mapped(keyword, value, (key, each) => [key, walk(each)])
    case "patternProperties":
      return mapped(keyword, value, (key, each) => (isPattern(key) ? [key, walk(each)] : undefined))
    case "dependentRequired":
      return mapped(keyword, value, (key, each) => [keyOf(key), textsIn(each).map(keyOf)])
    case "dependencies":
      return mapped(keyword, value, (key, each) => [
        keyOf(key),
        Array.isArray(each) ? textsIn(each).map(keyOf) : walk(each)
      ])
    case "required": {
      const names = textsIn(value)
      return names.length === 0 ? [] : [[keyword, names.map(keyOf)]]
    }
    case "anyOf":
    case "oneOf":
    case "allOf":
      return Array.isArray(value) && value.length > 0 ? [[keyword, value.map(walk)]] : []
    case "not":
    case "if": {
      // An empty condition matches everything.
      const condition = walk(value)
      return Object.keys(condition).length === 0 ? [] : [[keyword, condition]]
    }
    case "then":
    case "else":
    case "contains":
    case "propertyNames":
      return isJsonObject(value) ? [[keyword, walk(value)]] : []
    case "additionalProperties":
    case "unevaluatedItems":
    case "unevaluatedProperties":
      return [[keyword, isJsonObject(value) ? walk(value) : value !== false]]
    case "enum":
      return Array.isArray(value) && value.length > 0 ? [[keyword, distinct(value)]] : []
    // `listed` handles a list's items.
    case "items":
    case "prefixItems":
    case "additionalItems":
      return []
    default:
      return value === null && keyword !== "const" && keyword !== "default" ? [] : [[keyword, value]]
  }
}

const isText = (value: unknown): boolean => typeof value === "string"
const isBoolean = (value: unknown): boolean => typeof value === "boolean"
const isNumber = (value: unknown): boolean => Number.isFinite(value)
const isCount = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0

/** A regular expression as JSON Schema defines it: ECMA-262 with Unicode. */
const isPattern = (value: unknown): boolean =>
  typeof value === "string" && Result.isSuccess(Result.try(() => new RegExp(value, "u")))

/** Keywords that are kept unchanged or dropped. */
const validity = new Map<string, (value: unknown) => boolean>(
  Object.entries({
    $anchor: isText,
    $comment: isText,
    $id: isText,
    $schema: isText,
    contentEncoding: isText,
    contentMediaType: isText,
    deprecated: isBoolean,
    description: isText,
    examples: Array.isArray,
    // Draft 4 has booleans here; see `bounded`.
    exclusiveMaximum: (value: unknown) => isNumber(value) || isBoolean(value),
    exclusiveMinimum: (value: unknown) => isNumber(value) || isBoolean(value),
    format: isText,
    maxContains: isCount,
    maxItems: isCount,
    maxLength: isCount,
    maxProperties: isCount,
    maximum: isNumber,
    minContains: isCount,
    minItems: isCount,
    minLength: isCount,
    minProperties: isCount,
    minimum: isNumber,
    multipleOf: (value: unknown) => isNumber(value) && Number(value) > 0,
    pattern: isPattern,
    readOnly: isBoolean,
    title: isText,
    uniqueItems: isBoolean,
    writeOnly: isBoolean
  })
)

/** JSON Schema's types, by the names that other programs use for them. */
const types = new Map(
  Object.entries({
    array: ["array", "list"],
    boolean: ["boolean", "bool"],
    integer: ["integer", "int"],
    null: ["null"],
    number: ["number", "float", "double", "decimal"],
    object: ["object", "dict", "map"],
    string: ["string", "str", "text"]
  }).flatMap(([type, names]) => names.map((name) => [name, type] as const))
)

/** A type, or several; none where one is unknown, which may mean any value. */
const typeOf = (value: unknown): ReadonlyArray<string | ReadonlyArray<string>> => {
  if (!Array.isArray(value)) {
    const type = types.get(String(value).toLowerCase())
    return typeof value === "string" && type !== undefined ? [type] : []
  }
  const found = value.flat(Infinity).map((each) => types.get(String(each).toLowerCase()))
  const known = found.filter((type) => type !== undefined)
  return known.length === 0 || known.length < found.length ? [] : [distinct(known) as ReadonlyArray<string>]
}

/** A keyword whose value maps names to schemas. */
const mapped = (
  keyword: string,
  value: unknown,
  part: (key: string, each: unknown) => readonly [string, unknown] | undefined
): ReadonlyArray<readonly [string, unknown]> =>
  isJsonObject(value)
    ? [
        [
          keyword,
          Object.fromEntries(
            Object.entries(value)
              .map(([key, each]) => part(key, each))
              .filter((each) => each !== undefined)
          )
        ]
      ]
    : []

const textsIn = (value: unknown): ReadonlyArray<string> =>
  Array.isArray(value) ? [...new Set(value.filter((each): each is string => typeof each === "string"))] : []

/** Unique values, as JSON Schema requires for an enum. */
const distinct = (values: ReadonlyArray<unknown>): ReadonlyArray<unknown> => [
  ...new Map(values.map((value) => [JSON.stringify(value), value])).values()
]

/** A pointer with its property segments replaced by the offered keys. */
const withKeys = (ref: string, keyOf: (key: string) => string): string =>
  ref.replace(/(\/(?:properties|dependentSchemas)\/)([^/]+)/g, (whole, before: string, step: string) => {
    const key = keyIn(step)
    return key === undefined || isPlainKey(key) ? whole : `${before}${keyOf(key)}`
  })

/** A decoded pointer segment of a URL; undefined where it is invalid. */
const keyIn = (step: string): string | undefined =>
  Result.getOrUndefined(
    Result.try(() => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"))
  )

/** `then` and `else` are meaningless without `if`. */
const conditional = (schema: JsonSchema): JsonSchema => {
  if ("if" in schema) return schema
  const { else: _else, then: _then, ...rest } = schema
  return rest
}

const isListType = (type: unknown): boolean =>
  type === "array" || (Array.isArray(type) && type.includes("array"))

/** OpenAI refuses an array without `items`, others refuse several. */
const listed = (fitted: JsonSchema, { items, prefixItems }: JsonSchema, walk: Walk): JsonSchema => {
  const places = Array.isArray(items) ? items : Array.isArray(prefixItems) ? prefixItems : []
  if (places.length > 0) {
    const rest = Array.isArray(items) || !isJsonObject(items) ? [] : [items]
    const [first = {}, ...others] = [...places, ...rest].map(walk)
    return { ...fitted, items: others.length === 0 ? first : { anyOf: [first, ...others] } }
  }
  return isJsonObject(items) || isListType(fitted["type"]) ? { ...fitted, items: walk(items) } : fitted
}

/** Draft 4 marks an exclusive bound with a boolean. */
const bounded = (schema: JsonSchema): JsonSchema => {
  const fitted: Record<string, unknown> = { ...schema }
  for (const [exclusive, inclusive] of [
    ["exclusiveMinimum", "minimum"],
    ["exclusiveMaximum", "maximum"]
  ] as const) {
    const value = schema[exclusive]
    if (typeof value !== "boolean") continue
    delete fitted[exclusive]
    if (!value || typeof schema[inclusive] !== "number") continue
    fitted[exclusive] = schema[inclusive]
    delete fitted[inclusive]
  }
  return fitted
}

/** Google refuses a required property that is not described. */
const demanding = (schema: JsonSchema): JsonSchema => {
  const { properties, required, ...rest } = schema
  const names = Array.isArray(required) && isJsonObject(properties) ? required : []
  const described = names.filter((name) => Object.hasOwn(properties as object, name))
  return {
    ...rest,
    ...(properties === undefined ? {} : { properties }),
    ...(described.length === 0 ? {} : { required: described })
  }
}

/** The description lists the values of an enum that is not text. */
const withTextEnum = (schema: JsonSchema): JsonSchema => {
  const values = schema["enum"]
  if (!Array.isArray(values) || values.every((value) => typeof value === "string")) return schema
  const { description, enum: _enum, ...rest } = schema
  const choice = `One of ${values.map((value) => JSON.stringify(value)).join(", ")}`
  return { ...rest, description: typeof description === "string" ? `${description}\n${choice}` : choice }
}

/** Keywords that OpenAI and Anthropic refuse at the root of a tool's schema, with the whole request. */
const rootChoices: ReadonlySet<string> = new Set([
  "$ref",
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "enum",
  "const",
  "dependentSchemas"
])

/** Whether the root of a schema is an object without alternatives. */
export const isObjectAtRoot = (schema: JsonSchema): boolean =>
  !Object.keys(schema).some((key) => rootChoices.has(key))

/** One object with the fields of all branches; a field is required if every alternative requires it. */
export const asObject = (schema: JsonSchema): JsonSchema & { readonly type: "object" } => {
  const { fields, required } = fieldsOf(schema)
  const rest = Object.fromEntries(
    Object.entries(schema).filter(
      ([key]) => !rootChoices.has(key) && !["properties", "required", "additionalProperties"].includes(key)
    )
  )
  return {
    ...rest,
    type: "object",
    properties: Object.fromEntries([...fields].map(([name, found]) => [name, anyOf(found)])),
    ...(required.size === 0 ? {} : { required: [...required] })
  }
}

interface Fields {
  readonly fields: Map<string, ReadonlyArray<unknown>>
  readonly required: ReadonlySet<string>
}

const fieldsOf = (schema: unknown): Fields => {
  const fields = new Map<string, ReadonlyArray<unknown>>()
  const required = new Set<string>()
  if (!isJsonObject(schema)) return { fields, required }
  const take = (more: Fields["fields"]) => {
    for (const [name, found] of more) fields.set(name, [...(fields.get(name) ?? []), ...found])
  }
  const { properties } = schema
  if (isJsonObject(properties))
    take(new Map(Object.entries(properties).map(([name, field]) => [name, [field]])))
  for (const name of textsIn(schema["required"])) required.add(name)
  for (const branch of partsOf(schema["allOf"]).map(fieldsOf)) {
    take(branch.fields)
    for (const name of branch.required) required.add(name)
  }
  for (const choice of [partsOf(schema["anyOf"]), partsOf(schema["oneOf"])]) {
    const branches = choice.map(fieldsOf)
    for (const branch of branches) take(branch.fields)
    const [first, ...others] = branches
    for (const name of first?.required ?? [])
      if (others.every((branch) => branch.required.has(name))) required.add(name)
  }
  for (const key of ["if", "then", "else"]) take(fieldsOf(schema[key]).fields)
  return { fields, required }
}

const partsOf = (part: unknown): ReadonlyArray<unknown> => (Array.isArray(part) ? part : [])

/** One schema for a field that branches describe differently. */
const anyOf = (found: ReadonlyArray<unknown>): unknown => {
  const distinct = [...new Map(found.map((each) => [canonicalJson(each as never), each])).values()]
  return distinct.length === 1 ? distinct[0] : { anyOf: distinct }
}

const renamed = (value: Schema.Json, keys: ReadonlyMap<string, string>): Schema.Json =>
  Array.isArray(value)
    ? value.map((each) => renamed(each, keys))
    : isJsonObject(value)
      ? Object.fromEntries(
          Object.entries(value).map(([key, each]) => [
            keys.get(key) ?? key,
            renamed(each as Schema.Json, keys)
          ])
        )
      : value
