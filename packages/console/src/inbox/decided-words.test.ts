/**
 * Whoever comes second is told who was first, and what they decided.
 */
import { expect, it } from "@effect/vitest"
import type { UserId } from "@tropism/domain/ids"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
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
  const said = (decided: Partial<Parameters<typeof decidedSentence>[0]>) =>
    decidedSentence({ ...task, ...decided } as Parameters<typeof decidedSentence>[0], shown) ?? ""
  const answered = { type: "question", status: "completed" } as const
  const byNobody = { status: "rejected", resolvedBy: null } as const
  const sentences = {
    approved: [said({ status: "completed" }), said({ status: "completed", resolutionNote: "Laid over 3" })],
    rejected: [said({ status: "rejected" }), said({ status: "rejected", resolutionNote: "" })],
    rejectedWithReason: [said({ status: "rejected", resolutionNote: "not so" })],
    answered: [said(answered)],
    expired: [said({ status: "expired" }), said({ status: "expired", resolvedBy: null })],
    rejectedByNobody: [said(byNobody), said({ ...byNobody, resolutionNote: "not so" })]
  }
  expectOneSentencePerKind(sentences)
  const facts = (kind: keyof typeof sentences) =>
    ["ANA", "#5", "NOT SO"].filter((fact) => sentences[kind][0]?.includes(fact))
  for (const kind of ["approved", "rejected", "answered"] as const) expect(facts(kind)).toEqual(["ANA", "#5"])
  for (const kind of ["expired", "rejectedByNobody"] as const) expect(facts(kind)).toEqual(["#5"])
  expect(facts("rejectedWithReason")).toEqual(["ANA", "#5", "NOT SO"])
})
