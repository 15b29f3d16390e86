/**
 * Whether a schema can be gone through in a bounded time, before anything is judged by it.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * A reference is a few words and may stand for as much as one likes: two that
 * lead to two each, and so on, double the work with every line. What is counted
 * here is what is visited for one place of a value. A step into the value begins
 * anew: how deep that goes, the value says (`bounded-judging.ts`).
 */
import { isJsonObject } from "@tropism/domain/json"
import { foreignLimits } from "./foreign-limits.ts"
import { type JsonSchema, referredTo } from "./schema-refs.ts"

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
    if (visits(part) > foreignLimits.schemaVisits)
      return `following its references, more than ${foreignLimits.schemaVisits} parts of it are visited for one value`
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
