/**
 * What is said of an agent's queue and of what was meant for it.
 */
import type { ReactionQueue } from "@tropism/api/processing-api"
import { AgentId, ObjectId } from "@tropism/domain/ids"
import { expect, it } from "vitest"
import { batchText, listensToText, queueText, subjectText } from "./reaction-words.ts"

const still: ReactionQueue = {
  id: AgentId.make("0198c0de-0000-7000-8000-000000000001"),
  agentName: "tidy",
  enabled: true,
  disabledReason: null,
  objectTypes: [],
  waiting: 0,
  waitingSince: null,
  working: 0,
  deadLetters: 0,
  newest: null
}
const newest = { status: "completed", reason: null, createdAt: "2026-01-01T00:00:00.000Z" } as const

it.each<[Partial<ReactionQueue>, string]>([
  [{}, "It has heard nothing yet."],
  [{ newest }, "It has caught up."],
  [{ newest, working: 2 }, "It works on all that it heard."],
  [{ newest, working: 2, waiting: 1 }, "It has not caught up yet."],
  [{ newest, waiting: 1, deadLetters: 3 }, "3 failed for good and wait for a person."],
  [{ deadLetters: 1_000 }, "1,000 or more failed for good and wait for a person."],
  [{ enabled: false, deadLetters: 3 }, "It is disabled and wakes for nothing."],
  [{ enabled: false, disabledReason: "5 failures in a row." }, "5 failures in a row."]
])("says the one thing to know of %j", (changes, expected) => {
  expect(queueText({ ...still, ...changes })).toBe(expected)
})

it("says what an agent listens to and what was meant for it", () => {
  expect(listensToText({ objectTypes: [] })).toBe("All types")
  expect(listensToText({ objectTypes: ["Person", "Note"] })).toBe("Person, Note")
  expect(
    subjectText({ entityType: "relationship", eventType: "deleted", objectVersion: 4, subject: null })
  ).toBe("Relationship deleted, version 4")
  const subject = {
    objectId: ObjectId.make("0198c0de-0000-7000-8000-000000000007"),
    type: "Person",
    name: null
  }
  expect(subjectText({ entityType: "graphObject", eventType: "updated", objectVersion: 2, subject })).toBe(
    "updated, version 2"
  )
})

it("says what a batch came to, each reason once", () => {
  const queued = { id: "a", entryId: "b", runId: null, reason: null }
  const skipped = { id: "c", reason: "It is deleted." }
  expect(batchText({ queued: [], skipped: [] })).toBe("0 runs will begin.")
  expect(batchText({ queued: [queued as never], skipped: [skipped, skipped] })).toBe(
    "1 run will begin. 2 will not: It is deleted."
  )
})
