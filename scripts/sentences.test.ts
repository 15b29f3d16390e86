/**
 * Keeps the sentences that people read in one reviewed list per surface, and tests free of them.
 *
 * After a change of wording, `npm run sentences` writes the lists again: their diff is the text to review.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { repeatedSentences, sentencesOf, surfaces } from "./sentences.ts"

const root = join(import.meta.dirname, "..")

const files = readdirSync(join(root, "packages"), { recursive: true, encoding: "utf8" })
  .map((path) => `packages/${path.replaceAll("\\", "/")}`)
  .filter((path) => /\.tsx?$/.test(path) && !/\/(?:node_modules|dist)\//.test(path))
  .map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }))

describe("the sentences that people read", () => {
  it.each(Object.entries(surfaces))("of the surface %s are as they were reviewed", (name, surface) =>
    expect(sentencesOf(files, surface)).toMatchFileSnapshot(`sentences/${name}.txt`)
  )

  it("are repeated by no test, so that a better wording turns no story red", () => {
    expect(repeatedSentences(files).map(({ line, message, path }) => `${path}:${line} ${message}`)).toEqual(
      []
    )
  })
})

describe("finding sentences", () => {
  const product = {
    path: "packages/console/src/a.tsx",
    text: [
      'const a = "The run has ended " + "without an answer"',
      "const b = `There is no agent ${name} in this project`",
      'const c = <p className="one two three four">Ask an <b>admin</b> for it, {name}</p>',
      'const d = "three words only"',
      "const e = sql`select a from b where c is null`",
      '// "A comment has many words"'
    ].join("\n")
  }

  it("joins what is put together, marks values, and leaves out code, styles and short texts", () => {
    expect(sentencesOf([product], surfaces.console)).toBe(
      [
        "packages/console/src/a.tsx",
        "  The run has ended without an answer",
        "  There is no agent {…} in this project",
        "  Ask an admin for it, {…}",
        ""
      ].join("\n")
    )
  })

  it("finds a test that repeats one in a string or a pattern, and no title", () => {
    const test = (text: string) => ({ path: "packages/console/src/a.test.ts", text })
    const found = (text: string) => repeatedSentences([product, test(text)]).length
    expect(found('expect(x).toBe("The run has ended without an answer")')).toBe(1)
    expect(found("expect(x).toMatch(/^The run has ended without \\S+ answer$/)")).toBe(1)
    expect(found("expect(x).toMatch(/There is no agent \\S+ in this project/)")).toBe(0)
    expect(found('it("The run has ended without an answer", () => {})')).toBe(0)
    expect(found('expect(x).toBe("The run has begun")')).toBe(0)
    expect(found('expect(x).toBe("Error 4: the run has ended without any words")')).toBe(1)
    expect(found('expect(x).toBe("The run has ended, 3 of them without an answer")')).toBe(0)
  })
})
