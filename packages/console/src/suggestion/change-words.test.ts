/**
 * What a decision did, in the server's own facts.
 */
import { describe, expect, it } from "@effect/vitest"
import { isSuggestion } from "@tropism/domain/task"
import { demoWorld } from "../../testing/demo-world.ts"
import { approvalSentence, confidenceText } from "./change-words.ts"

const tasks = demoWorld().tasks.filter(isSuggestion)
const byNumber = (number: number) => {
  const task = tasks.find((task) => task.number === number)
  if (task === undefined) throw new Error(`there is no suggestion ${number}`)
  return task
}

describe("an approval", () => {
  it("says which version the object now has, and what the server noted", () => {
    const outcome = { entityId: "o", version: 4, change: "updated" as const }
    expect(approvalSentence({ ...byNumber(1), outcome })).toBe(
      "Package tropism-workspace/caniuse-lite is now version 4."
    )
    expect(approvalSentence({ ...byNumber(1), outcome, resolutionNote: "Rebased on version 3." })).toBe(
      "Package tropism-workspace/caniuse-lite is now version 4. Rebased on version 3."
    )
  })

  it("says that nothing had to change", () => {
    const outcome = { entityId: "o", version: 4, change: "unchanged" as const }
    expect(approvalSentence({ ...byNumber(1), outcome })).toBe("Nothing had to change: it was so already.")
  })

  it("tells creating, deleting and connecting apart", () => {
    const created = { entityId: "o", version: 1, change: "created" as const }
    const deleted = { entityId: "o", version: 2, change: "deleted" as const }
    expect(approvalSentence({ ...byNumber(5), outcome: created })).toMatch(
      /^Finding install-script:\S+ is created\.$/
    )
    expect(approvalSentence({ ...byNumber(6), outcome: created })).toBe("The relationship is made.")
    expect(approvalSentence({ ...byNumber(7), outcome: deleted })).toBe(
      "Finding install-script:sharp is deleted; its history stays."
    )
    expect(approvalSentence({ ...byNumber(8), outcome: deleted })).toBe("The relationship is removed.")
  })
})

describe("a confidence", () => {
  it("is said in percent and never beyond certainty", () => {
    expect([0, 0.123, 0.8, 1, 1.7, -1].map(confidenceText)).toEqual([
      "0 %",
      "12 %",
      "80 %",
      "100 %",
      "100 %",
      "0 %"
    ])
  })
})
