/**
 * Two texts are cut where they differ, at the borders of words.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { textDifference } from "./text-difference.ts"

describe("the difference of two texts", () => {
  it("is the words that differ", () => {
    expect(textDifference("4.17.20", "4.17.21")).toEqual({
      start: "4.17.",
      before: "20",
      after: "21",
      end: ""
    })
    expect(textDifference("the old name stays", "the new name stays")).toEqual({
      start: "the ",
      before: "old",
      after: "new",
      end: " name stays"
    })
  })

  it("may be a word that is only on one side, though it is there twice", () => {
    expect(textDifference("very good", "very very good")).toEqual({
      start: "very ",
      before: "",
      after: "very ",
      end: "good"
    })
  })

  it("is not told for texts that share too little", () => {
    expect(textDifference("MIT", "Apache-2.0")).toBeUndefined()
    expect(textDifference("", "something")).toBeUndefined()
  })

  it.prop(
    "puts both texts together again",
    [Arbitrary.schema(Schema.String), Arbitrary.schema(Schema.String)],
    ([shared, other]) => {
      const before = `${shared} one ${other}`
      const after = `${shared} two ${other}`
      const difference = textDifference(before, after)
      if (difference === undefined) return
      expect(difference.start + difference.before + difference.end).toBe(before)
      expect(difference.start + difference.after + difference.end).toBe(after)
    }
  )
})
