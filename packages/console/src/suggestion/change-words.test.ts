/**
 * What a decision did, in the server's own facts.
 */
import { describe, expect, it } from "@effect/vitest"
import { isSuggestion } from "@tropism/domain/task"
import { demoWorld } from "../../testing/demo-world.ts"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
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
    const sentence = approvalSentence({ ...byNumber(1), outcome })
    expect(sentence).toMatch(/Package tropism-workspace\/caniuse-lite\b.*\b4\b/)
    const resolutionNote = "Laid over version 3."
    expect(approvalSentence({ ...byNumber(1), outcome, resolutionNote })).toBe(
      `${sentence} ${resolutionNote}`
    )
  })

  it("tells all that it may have done apart", () => {
    const said = (number: number, change: "created" | "updated" | "deleted" | "unchanged") =>
      approvalSentence({ ...byNumber(number), outcome: { entityId: "o", version: 2, change } })
    expectOneSentencePerKind({
      unknown: [approvalSentence(byNumber(1)), approvalSentence(byNumber(6))],
      unchanged: [said(1, "unchanged"), said(7, "unchanged"), said(8, "unchanged")],
      created: [said(7, "created")],
      updated: [said(7, "updated")],
      deleted: [said(7, "deleted")],
      connected: [said(6, "created"), said(8, "created")],
      connectionUpdated: [said(6, "updated"), said(8, "updated")],
      disconnected: [said(6, "deleted"), said(8, "deleted")]
    })
    expect(said(5, "created")).toMatch(/^Finding install-script:\S+/)
    expect(said(7, "deleted")).toMatch(/^Finding install-script:sharp\b/)
    expect(said(6, "updated")).toMatch(/\b2\b/)
  })
})

describe("a confidence", () => {
  it("is said in percent and never beyond certainty", () => {
    expect([0, 0.123, 0.8, 1, 1.7, -1].map(confidenceText)).toEqual([
      "0%",
      "12%",
      "80%",
      "100%",
      "100%",
      "0%"
    ])
  })
})
