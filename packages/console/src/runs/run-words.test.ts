/**
 * What is said of a run in the list and at the head of its page.
 */
import type { Run } from "@tropism/domain/run"
import { GraphEventId } from "@tropism/domain/ids"
import { expect, it } from "vitest"
import { canCancel, outcomeText, wakerText } from "./run-words.ts"

const event = {
  id: GraphEventId.make("0198c0de-0000-7000-8000-000000000001"),
  type: "person.created",
  objectId: "ada",
  objectType: "Person",
  version: 1
}

it("says what woke a run by the first of its events", () => {
  expect(wakerText({ type: "reaction", events: [event] })).toBe("person.created")
  expect(wakerText({ type: "reaction", events: [event, event] })).toBe("2 events, first person.created")
  expect(wakerText({ type: "schedule" })).toBe("Its schedule")
})

const silent = { pauseReason: null, summary: null, errorMessage: null, stepCount: 1 } as const

it.each<[Pick<Run, "status" | "pauseReason" | "summary" | "errorMessage" | "stepCount">, string]>([
  [{ ...silent, status: "running" }, "It works: 1 step so far."],
  [{ ...silent, status: "paused", pauseReason: "timeout" }, "Its time is over. Resume it to let it go on."],
  [{ ...silent, status: "failed", errorMessage: "No model.", summary: "Half." }, "No model."],
  [{ ...silent, status: "completed", summary: "Tidied." }, "Tidied."],
  [{ ...silent, status: "completed" }, "It said nothing at its end."]
])("says what became of a run: %o", (run, text) => {
  expect(outcomeText(run)).toBe(text)
  expect(canCancel(run)).toBe(run.status === "running" || run.status === "paused")
})
