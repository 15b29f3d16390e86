/**
 * The schema of a foreign tool's arguments in the form that every provider takes.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Providers refuse a whole request for one tool whose schema is a choice at its
 * root, and some know no references. So a model is shown the fields of all branches
 * as one object, and what references lead to in their places; what is recursive
 * ends after one round. Arguments are judged by the tool's own schema all the same.
 */
import { canonicalJson, isJsonObject } from "@tropism/domain/json"
import { foreignLimits } from "./foreign-limits.ts"
import { type JsonSchema, lookUp } from "./schema-refs.ts"

/** A schema as a model is shown it. */
export const offeredSchema = (schema: JsonSchema): JsonSchema & { readonly type: "object" } => {
  const isPlain = !Object.keys(schema).some((key) => choices.has(key)) && !hasRef(schema)
  if (isPlain) return { ...schema, type: "object" }
  const inlined = inline(schema)
  const { $defs: _defs, definitions: _definitions, ...rest } = isJsonObject(inlined) ? inlined : {}
  return flatten(rest)
}

/** What the root of a tool's schema may not be. */
const choices: ReadonlySet<string> = new Set([
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
    if (within.includes($ref) || parts > foreignLimits.schemaParts) return cutShort({ ...target, ...rest })
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

/** One object with the fields of all branches; required is what every way through them requires. */
const flatten = (schema: JsonSchema): JsonSchema & { readonly type: "object" } => {
  const { fields, required } = fieldsOf(schema)
  const rest = Object.fromEntries(
    Object.entries(schema).filter(
      ([key]) => !choices.has(key) && !["properties", "required", "additionalProperties"].includes(key)
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
  for (const name of namesIn(schema["required"])) required.add(name)
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

const namesIn = (part: unknown): ReadonlyArray<string> =>
  partsOf(part).filter((name): name is string => typeof name === "string")

/** One schema for a field that branches describe in several ways. */
const anyOf = (found: ReadonlyArray<unknown>): unknown => {
  const distinct = [...new Map(found.map((each) => [canonicalJson(each as never), each])).values()]
  return distinct.length === 1 ? distinct[0] : { anyOf: distinct }
}
