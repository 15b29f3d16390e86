/**
 * Long texts are cut by lines and characters, and never inside a character.
 */
import { describe, expect, it } from "@effect/vitest"
import { cutText, shortText } from "./cut-text.ts"

describe("a cut text", () => {
  it("is the text itself when it fits", () => {
    expect(cutText("a\nb\nc", 3, 5)).toBe("a\nb\nc")
  })

  it("keeps so many lines and characters", () => {
    expect(cutText("a\nb\nc", 2, 5)).toBe("a\nb")
    expect(cutText("abcdef", 2, 5)).toBe("abcde")
  })

  it("does not cut a character in two", () => {
    expect(cutText("ab😀", 1, 3)).toBe("ab")
    expect(cutText("ab👩‍👩‍👧 and more", 1, 5)).toBe("ab")
    expect(cutText("cafe\u0301s", 1, 4)).toBe("caf")
    expect(cutText("🇫🇷🇩🇪", 1, 6)).toBe("🇫🇷")
  })
})

describe("a short text", () => {
  it.each([
    ["a b", 1, 3, "a b"],
    ["one two three", 1, 9, "one two…"],
    ["one two three", 1, 7, "one two…"],
    ["one\ntwo", 1, 9, "one…"],
    ["unbroken", 1, 3, "unb…"]
  ])("of %o in %i line and %i characters", (text, lines, characters, short) => {
    expect(shortText(text, lines, characters)).toBe(short)
  })
})
