/**
 * What is said of a run in the list and at the head of its page.
 */
import type { Run, Trigger } from "@tropism/domain/run"
import { GraphEventId, ObjectId, UserId } from "@tropism/domain/ids"
import { expect, it } from "vitest"
import { canCancel, outcomeText, usedText, wakerOf } from "./run-words.ts"
import { namedText } from "../words/object-name.ts"

const event = {
  id: GraphEventId.make("0198c0de-0000-7000-8000-000000000001"),
  type: "created",
  objectId: "0198c0de-0000-7000-8000-000000000007",
  objectType: "Person",
  version: 1
}

it("says what woke a run by the first of its events, and names its object", () => {
  const subject = { objectId: ObjectId.make(event.objectId), type: "Person", name: "ada" }
  const woken = (events: Trigger["events"], named: Run["subject"] = subject) =>
    wakerOf({ trigger: { type: "reaction", ...(events && { events }) }, subject: named })
  expect(woken([event])).toEqual({ before: "", object: subject, what: "created" })
  expect(woken([event, event])).toMatchObject({ before: "2 events, first ", what: "created" })
  expect(woken([{ ...event, entityType: "relationship", objectType: "KNOWS" }], null)).toEqual({
    before: "",
    object: null,
    what: "relationship KNOWS created"
  })
  expect(wakerOf({ trigger: { type: "schedule" }, subject: null }).what).toBe("Its schedule")
  expect(namedText({ ...subject, name: null })).toBe("Person …00000007")
})

const silent = {
  pauseReason: null,
  summary: null,
  errorMessage: null,
  cancelledBy: null,
  stepCount: 1
} as const

it.each<[Parameters<typeof outcomeText>[0], string]>([
  [{ ...silent, status: "running" }, "It works: 1 step so far."],
  [{ ...silent, status: "paused", pauseReason: "timeout" }, "Its time is over. Resume it to let it go on."],
  [
    { ...silent, status: "paused", pauseReason: "budget", errorMessage: "The chain has spent its money." },
    "The chain has spent its money. Resume it when there is more."
  ],
  [{ ...silent, status: "failed", errorMessage: "No model.", summary: "Half." }, "No model."],
  [{ ...silent, status: "completed", summary: "Tidied." }, "Tidied."],
  [{ ...silent, status: "cancelled", errorMessage: "Its agent was disabled" }, "Its agent was disabled"],
  [
    { ...silent, status: "cancelled", cancelledBy: UserId.make("ada"), summary: "Half." },
    "ada cancelled it. Half."
  ],
  [{ ...silent, status: "cancelled", cancelledBy: UserId.make("ada") }, "ada cancelled it."],
  [{ ...silent, status: "completed" }, "It said nothing at its end."]
])("says what became of a run: %o", (run, text) => {
  expect(outcomeText(run)).toBe(text)
  expect(canCancel(run)).toBe(run.status === "running" || run.status === "paused")
})

it("says that what a run has used is a guess while its model speaks; where no price is known, the money is the least that it can be", () => {
  const run = { stepCount: 2, usage: { inputTokens: 900, outputTokens: 100 }, costUsd: 0.5 }
  expect(usedText(run)).toBe("2 steps, 1,000 tokens, $0.50")
  expect(usedText(run, { tokens: 50, costUsd: 0.25 })).toBe("2 steps, ~1,050 tokens, ~$0.75 while it speaks")
  expect(usedText(run, { tokens: 50, costUsd: null })).toBe(
    "2 steps, ~1,050 tokens, at least $0.50 while it speaks"
  )
})
