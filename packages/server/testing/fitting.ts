/**
 * The plainest value that a JSON schema takes: what a request is made of when only its address matters.
 */
import type { Json } from "./platform.ts"

/** An id of the form that ids have, which nothing has. */
export const nobody = "00000000-0000-7000-8000-000000000000"

/** A value with what a schema requires and nothing else. */
export const fitting = (schema: Json, schemas: Readonly<Record<string, Json>>): Json => {
  if (typeof schema !== "object" || schema === null) return null
  if (schema.$ref !== undefined) return fitting(schemas[schema.$ref.split("/").at(-1)], schemas)
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  const choices: ReadonlyArray<Json> | undefined = schema.anyOf ?? schema.oneOf
  if (choices !== undefined)
    return fitting(choices.find(({ type }) => type !== "null") ?? choices[0], schemas)
  if (schema.allOf !== undefined && schema.type === undefined) return fitting(schema.allOf[0], schemas)
  switch (schema.type) {
    case "string":
      return JSON.stringify(schema).includes("[0-9a-f]{8}-")
        ? nobody
        : "plain".padEnd(schema.minLength ?? 0, "x").slice(0, schema.maxLength ?? 5)
    case "integer":
    case "number":
      return Math.max(schema.minimum ?? 1, 1)
    case "boolean":
      return true
    case "array":
      return Array.from({ length: schema.minItems ?? 1 }, () => fitting(schema.items, schemas))
    case "object":
      return Object.fromEntries(
        (schema.required ?? []).map((name: string) => [name, fitting(schema.properties?.[name], schemas)])
      )
    default:
      return null
  }
}
