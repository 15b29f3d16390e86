/**
 * When a value goes back and forth, and when it only changes.
 */
import { describe, expect, it } from "@effect/vitest"
import { findOscillation, oscillationBounds } from "./oscillation.ts"

const told = (values: string) => findOscillation([{ property: "x", values: Array.from(values) }])

describe("a property goes back and forth", () => {
  it.each(["ababa", "abababab", "abcabc", "abcdabc"])("in %s", (values) => {
    const counts = [values.length, new Set(values).size].map(String)
    expect(told(values)).toMatch(/\bx\b/)
    expect(told(values)?.match(/\d+/g)).toEqual(counts)
  })

  it.each(["", "a", "ab", "aba", "abab", "abcab", "abcdefghijkl", "abcdefga"])("and not in %j", (values) => {
    expect(told(values)).toBeUndefined()
  })

  it("in whichever property it is", () => {
    const still = { property: "y", values: ["a", "b", "c", "d", "e"] }
    expect(findOscillation([still, { property: "z", values: Array.from("ababa") }])).toMatch(/\bz\b/)
  })

  it("within as many versions as are looked at", () => {
    expect(oscillationBounds.versions).toBeGreaterThan(2 * oscillationBounds.returns)
  })
})
