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
import { isJsonObject } from "@tropism/domain/json"
import { asObject, isObjectAtRoot } from "../model/tool-schemas.ts"
import { foreignLimits } from "./foreign-limits.ts"
import { type JsonSchema, lookUp } from "./schema-refs.ts"

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
