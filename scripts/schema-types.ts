/**
 * JSON Schema, as far as the contract uses it, printed as TypeScript.
 *
 * What it does not know it refuses: a type that is silently `unknown` would be
 * taken for one that the contract leaves open.
 */

export interface JsonSchema {
  readonly $ref?: string
  readonly type?: string
  readonly description?: string
  readonly anyOf?: ReadonlyArray<JsonSchema>
  readonly enum?: ReadonlyArray<string | number | boolean>
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: ReadonlyArray<string>
  readonly additionalProperties?: JsonSchema | boolean
}

/** The name of a schema's type: that of its JSON is the one that a caller sees. */
export const nameOf = (name: string): string => name.replace(/Encoded$/, "")

export const literal = (value: unknown): string => JSON.stringify(value)

/** A comment above what it describes. */
export const describedBy = (text: string | undefined, indent: string): string =>
  text === undefined ? "" : `${indent}/** ${text.replaceAll("*/", "* /").replaceAll(/\s+/g, " ")} */\n`

/** One member of an interface; what may be missing may also be undefined, which JSON leaves out. */
export const member = (
  name: string,
  type: string,
  {
    about,
    indent = "  ",
    required
  }: { readonly about?: string; readonly indent?: string; readonly required: boolean }
): string => {
  const key = /^[a-zA-Z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)
  const mayMiss = required || type === "unknown" ? "" : " | undefined"
  return `${describedBy(about, indent)}${indent}readonly ${key}${required ? "" : "?"}: ${type}${mayMiss}`
}

/** A schema as a type; `indent` is that of the line on which it begins. */
export const typeOf = (schema: JsonSchema, indent = ""): string => {
  if (schema.$ref !== undefined) return nameOf(schema.$ref.replace(/^.*\//, ""))
  if (schema.anyOf) return [...new Set(schema.anyOf.map((each) => typeOf(each, indent)))].join(" | ")
  if (schema.enum) return schema.enum.map(literal).join(" | ")
  switch (schema.type) {
    case undefined:
      return "unknown"
    case "object":
      return objectType(schema, indent)
    case "array":
      return `ReadonlyArray<${typeOf(schema.items ?? {}, indent)}>`
    case "integer":
      return "number"
    case "string":
    case "number":
    case "boolean":
    case "null":
      return schema.type
    default:
      throw new Error(`a schema of type ${schema.type} has no type yet`)
  }
}

const objectType = (
  { additionalProperties, properties, required = [] }: JsonSchema,
  indent: string
): string => {
  if (properties === undefined)
    return typeof additionalProperties === "object"
      ? `{ readonly [name: string]: ${typeOf(additionalProperties, indent)} }`
      : "JsonObject"
  const inner = `${indent}  `
  const members = Object.entries(properties).map(([name, schema]) =>
    member(name, typeOf(schema, inner), {
      indent: inner,
      required: required.includes(name),
      ...(schema.description === undefined ? {} : { about: schema.description })
    })
  )
  return `{\n${members.join("\n")}\n${indent}}`
}
