/**
 * What a test asks of a sentence: which values it names, in whatever order and words.
 */
import { expect } from "@effect/vitest"

/** Matches a text that names each of the values, as whole words. */
export const naming = (...values: ReadonlyArray<string | number | RegExp>) =>
  expect.stringMatching(new RegExp(`^${values.map((value) => `(?=[^]*${sourceOf(value)})`).join("")}`))

const sourceOf = (value: string | number | RegExp): string => {
  if (value instanceof RegExp) return value.source
  const text = String(value)
  const escaped = text.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&")
  return `${/^\w/.test(text) ? "(?<!\\w)" : ""}${escaped}${/\w$/.test(text) ? "(?!\\w)" : ""}`
}
