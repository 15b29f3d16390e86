/**
 * A plan says what goes back and what stays before anybody approves it.
 */
import { expect, it } from "@effect/vitest"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
import { itemWords, planSentence } from "./undo-words.ts"

const counts = { ready: 0, conflicts: 0, unneeded: 0, kept: 0, suggestions: 0 }
const said = (changes: Partial<typeof counts>) =>
  planSentence({ counts: { ...counts, ...changes } } as Parameters<typeof planSentence>[0])

it("says what a plan comes to", () => {
  expect(said({})).toMatch(/^\D+$/)
  expect(said({ ready: 1 })).toMatch(/^1\b\D+$/)
  const whole = said({ ready: 3, conflicts: 1, kept: 4, unneeded: 5, suggestions: 2 })
  expect(whole.match(/\d+/g)).toEqual(["3", "1", "4", "5", "2"])
  // Each number has a sentence of its own, which goes where it is nothing.
  expectOneSentencePerKind({
    nothing: [said({})],
    ready: [said({ ready: 2 })],
    conflicts: [said({ conflicts: 2 })],
    kept: [said({ kept: 2 })],
    unneeded: [said({ unneeded: 2 })],
    suggestions: [said({ suggestions: 2 })]
  })
})

it("says what becomes of each thing, which is nothing where somebody came after", () => {
  const words = (status: "ready" | "conflict" | "unneeded") =>
    (["delete", "restore", "update"] as const).map((action) => itemWords({ action, status }))
  const [deleted = "", restored = "", updated = ""] = words("ready")
  expectOneSentencePerKind({
    deleted: [deleted],
    restored: [restored],
    updated: [updated],
    conflict: words("conflict"),
    unneeded: [...words("unneeded"), itemWords({ action: "none", status: "unneeded" })]
  })
})
