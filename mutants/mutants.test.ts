/**
 * The mutants are changes of the source as it is now: one that is none any more breaks nothing and proves nothing.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { mutants } from "./list.ts"
import { mutated } from "./mutated.ts"

const read = (file: string): string => readFileSync(join(import.meta.dirname, "..", file), "utf8")

describe("A mutant", () => {
  for (const { edits, fault } of mutants)
    it(`can be made: ${fault}`, () => {
      for (const edit of edits) expect(mutated(read(edit.file), edit)).not.toBe(read(edit.file))
    })

  it("is none where what it changes is not there, or twice", () => {
    const edit = { file: "a.ts", from: "b", to: "c" }
    expect(mutated("abz", edit)).toBe("acz")
    expect(() => mutated("az", edit)).toThrow("0 times")
    expect(() => mutated("abbz", edit)).toThrow("2 times")
  })
})
