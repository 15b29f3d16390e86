/**
 * Whoever left before there was an answer is told what became of what they did.
 */
import { describe, expect, it } from "@effect/vitest"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
import { doneMessage, failedMessage } from "./act-words.ts"
import { Problem, Unreachable } from "./problem.ts"

describe("what became of something whose page was left", () => {
  it("is told by its name", () => {
    const title = expect.stringContaining("Paint a door")
    expect(doneMessage("Paint a door")).toMatchObject({ tone: "done", title })
    const refused = new Problem({ status: 403, document: { detail: "Doors are for painters" } })
    expect(failedMessage("Paint a door", refused)).toEqual({
      tone: "refused",
      title,
      sentence: "Doors are for painters."
    })
  })

  it("is not known where no answer came, and nobody is told that doing it again does nothing twice", () => {
    const noAnswer = new Unreachable({ cause: undefined, isOpen: true })
    const { sentence, title } = failedMessage("Paint a door", noAnswer)
    expectOneSentencePerKind({
      done: [doneMessage("Paint a door").title],
      refused: [failedMessage("Paint a door", new Problem({ status: 403, document: {} })).title],
      unknown: [title]
    })
    // On the page itself the same request would be sent again; here another one would.
    expect(sentence).not.toBe(noAnswer.message)
  })
})
