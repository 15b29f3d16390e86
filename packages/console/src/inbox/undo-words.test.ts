/**
 * A plan says what goes back and what stays before anybody approves it.
 */
import { expect, it } from "@effect/vitest"
import { itemWords, planSentence } from "./undo-words.ts"

const counts = { ready: 0, conflicts: 0, unneeded: 0, kept: 0, suggestions: 0 }
const said = (changes: Partial<typeof counts>) =>
  planSentence({ counts: { ...counts, ...changes } } as Parameters<typeof planSentence>[0])

it("says what a plan comes to", () => {
  expect(said({})).toBe("Nothing can go back.")
  expect(said({ ready: 1 })).toBe("1 thing goes back to what was before.")
  expect(said({ ready: 3, conflicts: 1, suggestions: 2 })).toBe(
    "3 things go back to what was before. 1 stays, because somebody came after. 2 suggestions that wait expire with it."
  )
})

it("says what becomes of each thing, which is nothing where somebody came after", () => {
  expect(itemWords({ action: "delete", status: "ready" })).toBe("is deleted again")
  expect(itemWords({ action: "delete", status: "conflict" })).toBe("stays: somebody came after")
  expect(itemWords({ action: "none", status: "unneeded" })).toBe("is as it was")
})
