/**
 * What a test asks of a sentence: which values it names, in whatever order and words.
 */
import { expect } from "@effect/vitest"

/** A value, or a pattern for one. */
export type Named = string | number | RegExp

/** Matches a text that names each of the values, as whole words. */
export const naming = (...values: readonly [Named, ...ReadonlyArray<Named>]) => namingAll(values)

/** The same for the values of a table's row, which may be none: any text then. */
export const namingAll = (values: ReadonlyArray<Named>) =>
  expect.stringMatching(new RegExp(`^${values.map((value) => `(?=[^]*${sourceOf(value)})`).join("")}`))

const sourceOf = (value: Named): string => {
  if (value instanceof RegExp) return value.source
  const text = String(value)
  const escaped = text.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&")
  return `${/^\w/.test(text) ? "(?<!\\w)" : ""}${escaped}${/\w$/.test(text) ? "(?!\\w)" : ""}`
}
