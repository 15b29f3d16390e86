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
