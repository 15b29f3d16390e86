/**
 * A text is cut between two characters, as people see them.
 */
import { describe, expect, it } from "@effect/vitest"
import { beginningOf, beginningTold, shortened, shortenedAtWord } from "./text-beginning.ts"

describe("The beginning of a text", () => {
  it("is the text itself when it fits", () => {
    expect([beginningOf("abc", 3), beginningOf("", 0), beginningOf("😀", 2)]).toEqual(["abc", "", "😀"])
  })

  it.each<[string, number, string]>([
    ["abcdef", 5, "abcde"],
    ["abcdef", 0, ""],
    ["abcdef", -1, ""],
    ["ab😀cd", 3, "ab"],
    ["ab😀cd", 4, "ab😀"],
    ["ab👩‍👩‍👧 and more", 5, "ab"],
    ["ab👍🏽 yes", 4, "ab"],
    ["cafe\u0301s", 4, "caf"],
    ["🇫🇷🇩🇪", 6, "🇫🇷"],
    ["a\r\nb", 2, "a"],
    ["नमस्ते", 3, "नम"]
  ])("of %j in %i units is %j", (text, maxChars, beginning) => {
    expect(beginningOf(text, maxChars)).toBe(beginning)
  })

  it("is not nothing where a character has no end, and never ends in half of a pair", () => {
    const heaped = `a${"\u0301".repeat(500)}`
    expect(beginningOf(heaped, 100)).toBe(heaped.slice(0, 100))
    const joined = "👩\u200d".repeat(100)
    for (const maxChars of [97, 98, 99, 100, 101]) {
      const beginning = beginningOf(joined, maxChars)
      expect(beginning.length).toBeGreaterThan(maxChars - 3)
      expect(beginning.isWellFormed()).toBe(true)
    }
  })

  it("tells how much of how much it is, and is longer than the bound only then", () => {
    expect(beginningTold("abcd", 4)).toBe("abcd")
    const long = `${"👩\u200d".repeat(100)}b`
    for (const maxChars of [1, 97, 98, 99, 100, 300]) {
      const told = beginningTold(long, maxChars)
      expect(told.startsWith(beginningOf(long, maxChars))).toBe(true)
      expect(told).toContain(`${maxChars}`)
      expect(told).toContain(`${long.length}`)
      expect(told.length).toBeGreaterThan(maxChars)
    }
  })

  it("has an ellipsis behind it only where something is left out", () => {
    expect([shortened("ab😀cd", 3), shortened("ab😀", 4)]).toEqual(["ab…", "ab😀"])
  })
})

describe("A text that is cut at a word", () => {
  it.each([
    ["one two three", 20, "one two three"],
    ["one two three", 9, "one two…"],
    ["one two three", 7, "one two…"],
    ["a incomprehensible", 10, "a incompre…"],
    ["incomprehensible", 10, "incomprehe…"]
  ])("%j in %i characters is %j", (text, maxChars, cut) => {
    expect(shortenedAtWord(text, maxChars)).toBe(cut)
  })
})
