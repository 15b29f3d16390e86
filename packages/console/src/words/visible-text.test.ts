/**
 * No character of a foreign text may hide or turn the reading order, and no honest text may be spoiled.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { visiblePieces, visibleText } from "./visible-text.ts"

/** The text as a reader sees it, marks in brackets. */
const seen = (text: string, exact = false): string =>
  visiblePieces(text, { exact })
    .map(({ text, name }) => (name === undefined ? text : `[${text}]`))
    .join("")

describe("a foreign text", () => {
  it("shows control characters by their number", () => {
    expect(seen("a\u0000b\u0007c\u001b[31m\u007f\u0085")).toBe(
      "a[U+0000]b[U+0007]c[U+001B][31m[U+007F][U+0085]"
    )
  })

  it("shows what turns the reading order", () => {
    expect(seen("user\u202etxt.exe\u2066x\u2069")).toBe("user[U+202E]txt.exe[U+2066]x[U+2069]")
  })

  it("shows what has no width, and spaces that are not the space bar's", () => {
    expect(seen("a\u200bb\u2060c\ufeffd\u00ade\u00a0f\u3000g\u2028h\u3164i")).toBe(
      "a[U+200B]b[U+2060]c[U+FEFF]d[U+00AD]e[U+00A0]f[U+3000]g[U+2028]h[U+3164]i"
    )
  })

  it("shows lone surrogates, private and tag characters, and selectors behind nothing they could select", () => {
    expect(seen("\ud83d x \ue000 \u{e0041} a\ufe0f \u{e0100}")).toBe(
      "[U+D83D] x [U+E000] [U+E0041] a[U+FE0F] [U+E0100]"
    )
  })

  it("leaves letters of every script, emoji and their joiners alone", () => {
    const honest = "Grüße, читать, 日本語, עברית, العربية, می\u200cخواهم, क्\u200dष, 👩‍💻 👍🏽 ❤️ 1️⃣ e\u0301"
    expect(visiblePieces(honest)).toEqual([{ text: honest }])
  })

  it("does not take a joiner between Latin letters for a needed one", () => {
    expect(seen("pay\u200dpal \u200c")).toBe("pay[U+200D]pal [U+200C]")
  })

  it("keeps line breaks and ordinary spaces in prose", () => {
    expect(seen(" a\r\nb\tc ")).toBe(" a\r\nb[⇥]c ")
  })

  it("marks line breaks and spaces at the ends of a value, but no indentation", () => {
    expect(seen("  a b \n  c\r\n ", true)).toBe("[·][·]a b[·][↵]\n  c[U+000D][↵]\n[·]")
    expect(seen(" ", true)).toBe("[·]")
  })

  it("names each mark for those who cannot see it", () => {
    expect(visiblePieces("\u202e\t", {})).toEqual([
      { text: "U+202E", name: "right-to-left override" },
      { text: "⇥", name: "tab" }
    ])
    expect(visiblePieces("\u0001")).toEqual([{ text: "U+0001", name: "U+0001" }])
  })

  it.prop(
    "loses no visible character and shows no hidden one",
    [Arbitrary.schema(Schema.String)],
    ([text]) => {
      const pieces = visiblePieces(text, { exact: true })
      const plain = pieces.filter(({ name }) => name === undefined).map((piece) => piece.text)
      expect(plain.join("").replaceAll(/\u200c|\u200d|\n|\p{Variation_Selector}/gu, "")).not.toMatch(
        /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u
      )
      const marks = pieces.filter(({ name }) => name !== undefined).length
      const breaks = text.split("\n").length - 1
      // Nothing at all is one mark.
      expect([...plain.join("")].length + marks).toBe(Math.max([...text].length + breaks, 1))
    }
  )

  it("is seen where it is nothing, in what is compared", () => {
    expect(seen("", true)).toBe("[empty]")
    expect(seen("")).toBe("")
  })

  it("is one line where no markup fits", () => {
    expect(visibleText("a\n\n b\u0000")).toBe("a bU+0000")
  })
})
