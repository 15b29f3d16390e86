/**
 * Whoever left before there was an answer is told what became of what they did.
 */
import { describe, expect, it } from "@effect/vitest"
import { doneMessage, failedMessage } from "./act-words.ts"
import { Problem, Unreachable } from "./problem.ts"

describe("what became of something whose page was left", () => {
  it("is told by its name", () => {
    expect(doneMessage("Make a token")).toMatchObject({ tone: "done", title: "Make a token: done" })
    expect(failedMessage("Make a token", new Problem({ status: 403, document: {} }))).toEqual({
      tone: "refused",
      title: "Make a token: not done",
      sentence: "Your role does not allow this."
    })
  })

  it("is not known where no answer came, and nobody is told that doing it again does nothing twice", () => {
    const { sentence, title } = failedMessage(
      "Make a token",
      new Unreachable({ cause: undefined, isOpen: true })
    )
    expect(title).toBe("Make a token: not known")
    expect(sentence).not.toMatch(/twice/)
  })
})
