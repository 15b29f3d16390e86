/**
 * A condition on one property of an object: the same for reads and reactions.
 *
 * Reads ask it of the database and reactions ask it of an event, and both must
 * answer alike: `matches` here says what is meant, the server's SQL is proved
 * against it. Operators are a list of our own; nobody sends a regular expression.
 */
import { Schema } from "effect"
import { byCodePoint } from "./code-points.ts"
import { canonicalJson, isJsonObject, type Properties } from "./json.ts"

export const FilterOperator = Schema.Literals([
  "eq",
  "ne",
  "in",
  "gt",
  "gte",
  "lt",
  "lte",
  "contains",
  "startsWith",
  "exists"
])
export type FilterOperator = typeof FilterOperator.Type

/** Bounds of a filter, so that none is dearer than the rows it reads. */
export const filterBounds = { maxConditions: 20, maxSteps: 8, maxChoices: 100 } as const

/** A property's name (`license`), or a JSON pointer (`/author/name`) that walks objects and never lists. */
const PropertyPath = Schema.String.check(
  Schema.isBetweenLength(1, 500),
  Schema.makeFilter((path: string) =>
    pathSteps(path).length <= filterBounds.maxSteps
      ? undefined
      : `at most ${filterBounds.maxSteps} steps deep`
  ),
  Schema.makeFilter((path: string) =>
    path.startsWith("/") && /~(?![01])/.test(path)
      ? "In a pointer ~ is written ~0 and / within a name ~1"
      : undefined
  )
).annotate({
  description:
    "A property's name (license), or a JSON pointer (/author/name). A pointer walks through objects and never into lists; whether a list has an element is asked with contains"
})

/**
 * One condition.
 *
 * **Details** `eq` and `ne` compare JSON; a missing property equals nothing, so
 * `ne` holds for it. `in` takes a list. `gt`, `gte`, `lt`, `lte` compare two
 * numbers, or two texts by code point, and hold for nothing else. `contains`
 * finds a text in a text or an element in a list. `exists` takes true or false.
 */
export const PropertyFilter = Schema.Struct({
  property: PropertyPath,
  op: FilterOperator,
  value: Schema.Json
})
  .check(
    Schema.makeFilter(({ op, value }: { readonly op: FilterOperator; readonly value: Schema.Json }) =>
      valueFault(op, value)
    )
  )
  .annotate({ identifier: "PropertyFilter" })
export type PropertyFilter = typeof PropertyFilter.Type

/** Conditions that all must hold. */
export const PropertyFilters = Schema.Array(PropertyFilter).check(
  Schema.isMaxLength(filterBounds.maxConditions)
)
export type PropertyFilters = typeof PropertyFilters.Type

/** The names to walk through, from a property's name or a pointer. */
export const pathSteps = (path: string): ReadonlyArray<string> =>
  path.startsWith("/")
    ? path
        .slice(1)
        .split("/")
        .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    : [path]

/** A place as people read it: `author › name`. */
export const placeText = (path: string): string => pathSteps(path).join(" › ")

const valueFault = (op: FilterOperator, value: Schema.Json): string | undefined => {
  switch (op) {
    case "in":
      return Array.isArray(value) && value.length <= filterBounds.maxChoices
        ? undefined
        : `in takes a list of at most ${filterBounds.maxChoices} values`
    case "exists":
      return typeof value === "boolean" ? undefined : "exists takes true or false"
    case "startsWith":
      return typeof value === "string" ? undefined : "startsWith takes a text"
    case "gt":
    case "gte":
    case "lt":
    case "lte":
      return typeof value === "string" || typeof value === "number"
        ? undefined
        : `${op} takes a number or a text`
    default:
      return undefined
  }
}

/** Whether all conditions hold for these properties. */
export const matches = (filters: PropertyFilters, properties: Properties): boolean =>
  filters.every((filter) => holds(filter, valueAt(properties, filter.property)))

const valueAt = (properties: Properties, path: string): Schema.Json | undefined => {
  let value: Schema.Json | undefined = properties
  for (const step of pathSteps(path)) {
    if (!isJsonObject(value) || !Object.hasOwn(value, step)) return undefined
    value = value[step]
  }
  return value
}

const holds = ({ op, value: wanted }: PropertyFilter, found: Schema.Json | undefined): boolean => {
  if (op === "exists") return (found !== undefined) === wanted
  if (op === "ne") return found === undefined || !isSame(found, wanted)
  if (found === undefined) return false
  switch (op) {
    case "eq":
      return isSame(found, wanted)
    case "in":
      return Array.isArray(wanted) && wanted.some((choice) => isSame(found, choice))
    case "contains":
      return typeof found === "string"
        ? typeof wanted === "string" && found.includes(wanted)
        : Array.isArray(found) && found.some((item) => isSame(item, wanted))
    case "startsWith":
      return typeof found === "string" && typeof wanted === "string" && found.startsWith(wanted)
    default:
      return isOrdered(op, compare(found, wanted))
  }
}

const isSame = (a: Schema.Json, b: Schema.Json): boolean => canonicalJson(a) === canonicalJson(b)

const isOrdered = (op: "gt" | "gte" | "lt" | "lte", order: number | undefined): boolean => {
  if (order === undefined) return false
  switch (op) {
    case "gt":
      return order > 0
    case "gte":
      return order >= 0
    case "lt":
      return order < 0
    case "lte":
      return order <= 0
  }
}

/** Negative, zero or positive; undefined when the two cannot be ordered. */
const compare = (a: Schema.Json, b: Schema.Json): number | undefined => {
  if (typeof a === "number" && typeof b === "number") return a - b
  return typeof a === "string" && typeof b === "string" ? byCodePoint(a, b) : undefined
}
