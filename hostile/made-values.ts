/**
 * Values drawn from a JSON schema: what fits, what nearly fits, and what does not fit at all.
 *
 * How wild a value is stands in `wildness`: 0 always fits, as far as a schema
 * says all; 1 is anything at every place.
 */
import type { Chance } from "../packages/server/simulation/chance.ts"
import type { Json } from "../packages/server/testing/platform.ts"

export interface Maker {
  readonly chance: Chance
  readonly wildness: number
  /** The schemas that others name. */
  readonly schemas: Readonly<Record<string, Json>>
  /** A known id for a field of this name, where there is one. */
  readonly idFor: (field: string) => string | undefined
}

/** How deep values go on before they end. */
const maxDepth = 6

const strange: readonly [unknown, ...Array<unknown>] = [
  null,
  true,
  0,
  -1,
  1.5,
  -0,
  1e308,
  5e-324,
  9007199254740991,
  9007199254740992,
  "",
  " ",
  "null",
  "\u0000",
  "\ud800",
  "\udfff\ud800",
  "a\nb",
  "\u202e\u200f",
  "💥".repeat(50),
  "x".repeat(5_000),
  "%00",
  "../..",
  "{{ event.id }}",
  "{% for a in (1..9) %}x{% endfor %}",
  "' or 1=1 --",
  "00000000-0000-7000-8000-000000000000",
  "2026-02-30T25:61:00Z",
  "NaN",
  [],
  {},
  [[[[]]]],
  { "": null },
  { a: { b: [1] } },
  { constructor: 1 },
  [null],
  ["x"],
  { type: 1 }
]

/** A value for a schema. */
export const valueFor = (maker: Maker, schema: Json, field = "", depth = 0): unknown => {
  const { chance, wildness } = maker
  if (wildness > 0 && chance.next() < wildness / (depth === 0 ? 4 : 2)) return chance.pick(strange)
  if (schema === undefined || schema === true) return chance.pick(strange)
  if (schema.$ref !== undefined)
    return valueFor(maker, maker.schemas[schema.$ref.split("/").at(-1)], field, depth)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices !== undefined) {
    // A null may stand for each optional field: most of the time something else is more telling.
    const telling = choices.filter((each: Json) => each.type !== "null")
    return valueFor(
      maker,
      chance.pick(chance.oneIn(6) || telling.length === 0 ? choices : telling),
      field,
      depth
    )
  }
  if (schema.enum !== undefined) return chance.pick(schema.enum)
  switch (Array.isArray(schema.type) ? chance.pick(schema.type) : schema.type) {
    case "string":
      return textFor(maker, schema, field)
    case "integer":
    case "number":
      return numberFor(maker, schema)
    case "boolean":
      return chance.oneIn(2)
    case "null":
      return null
    case "array":
      return listFor(maker, schema, field, depth)
    case "object":
      return objectFor(maker, schema, depth)
    default:
      return depth > maxDepth ? null : chance.pick(strange)
  }
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

const textFor = (
  { chance, idFor, wildness }: Maker,
  { maxLength = 40, minLength = 1, examples }: Json,
  field: string
): string => {
  if (field === "type" && !chance.oneIn(4)) return chance.pick(["Thing", "Person", "NEAR"])
  const known = idFor(field)
  if (known !== undefined && !chance.oneIn(4)) return known
  if (Array.isArray(examples) && examples.length > 0 && !chance.oneIn(4))
    return String(chance.pick(examples as [Json]))
  const lengths: readonly [number, ...Array<number>] =
    wildness > 0
      ? [minLength, Math.max(0, minLength - 1), maxLength, maxLength + 1]
      : [minLength, minLength + 1, Math.min(maxLength, 40)]
  const length = chance.oneIn(3) ? chance.pick(lengths) : chance.between(1, 12)
  return (
    letters[chance.below(52)] +
    Array.from({ length: Math.max(0, length - 1) }, () => letters[chance.below(letters.length)]).join("")
  )
}

const numberFor = ({ chance, wildness }: Maker, { maximum = 1_000, minimum = 0, type }: Json): number => {
  const least = Math.max(minimum, -1e6)
  const most = Math.min(maximum, 1e6)
  const edges: readonly [number, ...Array<number>] =
    wildness > 0 ? [minimum, maximum, minimum - 1, maximum + 1, least + 0.5] : [least, most]
  if (chance.oneIn(4)) return chance.pick(edges)
  const whole = chance.between(least, Math.min(most, least + 100))
  return type === "number" && chance.oneIn(2) ? whole / 2 : whole
}

const listFor = (
  maker: Maker,
  { items, maxItems = 5, minItems = 0 }: Json,
  field: string,
  depth: number
): ReadonlyArray<unknown> => {
  const { chance, wildness } = maker
  const most = depth > maxDepth ? minItems : Math.min(maxItems, minItems + 3)
  const length =
    wildness > 0 && maxItems < 200 && chance.oneIn(20) ? maxItems + 1 : chance.between(minItems, most)
  return Array.from({ length }, () => valueFor(maker, items, field.replace(/s$/, ""), depth + 1))
}

const objectFor = (
  maker: Maker,
  { properties = {}, required = [] }: Json,
  depth: number
): Readonly<Record<string, unknown>> => {
  const { chance, wildness } = maker
  const made: Record<string, unknown> = {}
  for (const [name, schema] of Object.entries<Json>(properties)) {
    const isNeeded = required.includes(name)
    if (isNeeded ? wildness > 0 && chance.oneIn(30) : depth > maxDepth || !chance.oneIn(3)) continue
    made[name] = valueFor(maker, schema, name, depth + 1)
  }
  const isOpen = Object.keys(properties).length === 0
  if (isOpen || (wildness > 0 && chance.oneIn(15)))
    for (let count = chance.below(4); count > 0; count--)
      made[`${chance.pick(["a", "b", "Ünï", "x y", "", "a/b", "~"])}${count}`] = chance.pick(
        wildness > 0 ? strange : [1, "x", true, null, [1], { a: 1 }]
      )
  return made
}
