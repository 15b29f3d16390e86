/**
 * Whoever comes second is told who was first, and what they decided.
 */
import { expect, it } from "@effect/vitest"
import type { UserId } from "@tropism/domain/ids"
import { decidedSentence } from "./decided-words.ts"

const shown = (text: string) => text.toUpperCase()
const task = {
  type: "object_update_suggestion",
  number: 5,
  resolvedBy: "ana" as UserId,
  resolutionNote: null
} as const

it("says who decided and how, with the reason of a rejection, and nothing of what waits", () => {
  expect(decidedSentence({ ...task, status: "pending", resolvedBy: null }, shown)).toBeUndefined()
  expect(decidedSentence({ ...task, status: "completed", resolutionNote: "Rebased" }, shown)).toBe(
    "ANA has approved #5 already."
  )
  expect(decidedSentence({ ...task, status: "rejected", resolutionNote: "not so" }, shown)).toBe(
    "ANA has rejected #5 already. The reason: “NOT SO”."
  )
  expect(decidedSentence({ ...task, type: "question", status: "completed" }, shown)).toBe(
    "ANA has answered #5 already."
  )
  expect(decidedSentence({ ...task, status: "expired", resolvedBy: null }, shown)).toBe("#5 has expired.")
  expect(decidedSentence({ ...task, status: "rejected", resolvedBy: null }, shown)).toBe("#5 was rejected.")
})
