/** The option that a person's answer means. */
import { describe, expect, it } from "vitest"
import { chosenOption } from "./chosen-option.ts"

describe("An answer to a question with options", () => {
  const options = ["red", "Dark blue", "green!"]

  it.each([
    ["red", "red"],
    ["Red", "red"],
    ["red.", "red"],
    ["- red", "red"],
    ["1. red", "red"],
    ["“Red”", "red"],
    [" dark BLUE ", "Dark blue"],
    ["Green", "green!"],
    ["1", "red"],
    ["#3", "green!"]
  ])("%j means %j", (answer, option) => {
    expect(chosenOption(options, answer)).toBe(option)
  })

  it.each(["", "blue", "4", "0", "red or green", "not red"])("%j means none", (answer) => {
    expect(chosenOption(options, answer)).toBeUndefined()
  })

  it("takes a number for itself where an option is one", () => {
    expect(chosenOption(["10", "2"], "2")).toBe("2")
    expect(chosenOption(["10", "2"], "1")).toBeUndefined()
  })

  it("is none where two options differ only in case, unless it is one of them", () => {
    expect(chosenOption(["Yes", "yes"], "YES")).toBeUndefined()
    expect(chosenOption(["Yes", "yes"], "yes")).toBe("yes")
  })
})
