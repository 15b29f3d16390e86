/**
 * A cut value is a JSON value of the size asked for, and says what is missing.
 */
import { describe, expect, it } from "@effect/vitest"
import { cutJson } from "./json-cut.ts"

const sizeOf = (value: unknown): number => JSON.stringify(value).length

describe("cutting a JSON value", () => {
  it("leaves alone what fits", () => {
    const value = { a: [1, "two", null], b: true }
    expect(cutJson(value, sizeOf(value))).toBe(value)
  })

  it("cuts texts and lists, and says how many are missing", () => {
    const items = Array.from({ length: 1_000 }, (_, number) => ({ number, text: "x".repeat(50) }))
    const cut = cutJson({ items, total: 1_000 }, 5_000) as { items: Array<unknown>; total: number }
    expect(sizeOf(cut)).toBeLessThanOrEqual(5_000)
    expect(sizeOf(cut)).toBeGreaterThan(2_000)
    expect(cut.total).toBe(1_000)
    expect(cut.items[0]).toEqual(items[0])
    expect(cut.items.at(-1)).toMatch(new RegExp(`^… ${1_000 - (cut.items.length - 1)} `))
  })

  it("lets one large member not push the others out", () => {
    const cut = cutJson({ large: "y".repeat(10_000), small: "kept" }, 1_000) as Record<string, string>
    expect(cut["small"]).toBe("kept")
    expect(cut["large"]).toMatch(/^y{100,}…$/)
  })

  it("cuts no character in two, and counts what is escaped", () => {
    for (const text of ["\u{1F600}".repeat(400), "\u0001".repeat(400), '"'.repeat(400)])
      for (const room of [90, 91, 92, 93]) {
        const cut = cutJson(text, room)
        expect(sizeOf(cut)).toBeLessThanOrEqual(room)
        expect(String(cut).isWellFormed()).toBe(true)
      }
  })

  it("keeps any value within its bound", () => {
    const text = "z".repeat(300)
    for (const value of [
      text,
      [text, [text]],
      { [text]: text },
      [[[[text]]]],
      { a: { b: { c: text } } },
      [1, null]
    ])
      for (const bound of [200, 1_000]) {
        const many = Array.from({ length: 60 }, () => value)
        expect(sizeOf(cutJson(many, bound))).toBeLessThanOrEqual(bound)
        expect(sizeOf(cutJson({ many, value }, bound))).toBeLessThanOrEqual(bound)
      }
  })
})
