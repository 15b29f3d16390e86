/**
 * What the references of a JSON Schema lead to within it.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Nothing is fetched: a reference that leads out of its schema leads nowhere.
 */
import { isJsonObject } from "@tropism/domain/json"

export type JsonSchema = Readonly<Record<string, unknown>>

/** Places whose content is a value and no schema. */
const values: ReadonlySet<string> = new Set(["enum", "const", "default", "examples"])

/** What a reference leads to; undefined where it leads nowhere. */
export const lookUp = (root: JsonSchema, ref: string): unknown => {
  if (ref === "#" || ref === root["$id"]) return root
  const fragment = ref.startsWith("#") ? ref.slice(1) : undefined
  if (fragment === undefined) return find(root, ({ $id }) => $id === ref)
  if (!fragment.startsWith("/")) return find(root, ({ $anchor }) => $anchor === fragment)
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

/** A reference that leads out of its schema, or nowhere in it. */
export const findLostRef = (root: JsonSchema): string | undefined => {
  const lost = find(root, ({ $ref }) => typeof $ref === "string" && lookUp(root, $ref) === undefined)
  return lost === undefined ? undefined : String(lost["$ref"])
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
