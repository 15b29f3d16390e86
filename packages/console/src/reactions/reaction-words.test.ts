/**
 * What is said of an agent's queue and of what was meant for it.
 */
import type { ReactionQueue } from "@tropism/api/processing-api"
import { AgentId, ObjectId } from "@tropism/domain/ids"
import { expect, it } from "vitest"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
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

it("says the one thing to know of a queue, what waits for a person first", () => {
  const said = (...queues: ReadonlyArray<Partial<ReactionQueue>>) =>
    queues.map((changes) => queueText({ ...still, ...changes }))
  expectOneSentencePerKind({
    heardNothing: said({}),
    caughtUp: said({ newest }),
    working: said({ working: 1 }, { newest, working: 2 }),
    behind: said({ waiting: 1 }, { newest, working: 2, waiting: 1 }),
    deadLetters: said({ deadLetters: 3 }, { newest, waiting: 1, deadLetters: 3 }),
    manyDeadLetters: said({ deadLetters: 1_000 }, { deadLetters: 1_000, working: 1 }),
    disabled: said({ enabled: false }, { enabled: false, deadLetters: 3 })
  })
  expect(said({ deadLetters: 3 })[0]).toMatch(/\b3\b/)
  expect(said({ deadLetters: 1_000 })[0]).toContain("1,000")
  const disabledReason = "5 sheep fled."
  expect(said({ enabled: false, disabledReason })).toEqual([disabledReason])
})

it("says what an agent listens to and what was meant for it", () => {
  expect(listensToText({ objectTypes: [] })).toMatch(/\S/)
  expect(listensToText({ objectTypes: ["Person", "Note"] })).toBe("Person, Note")
  expect(
    subjectText({ entityType: "relationship", eventType: "deleted", objectVersion: 4, subject: null })
  ).toMatch(/^\w+ deleted\b.*\b4$/)
  const subject = {
    objectId: ObjectId.make("0198c0de-0000-7000-8000-000000000007"),
    type: "Person",
    name: null
  }
  expect(subjectText({ entityType: "graphObject", eventType: "updated", objectVersion: 2, subject })).toMatch(
    /^updated\b.*\b2$/
  )
})

it("says what a batch came to, each reason once", () => {
  const queued = { id: "a", entryId: "b", runId: null, reason: null }
  const skipped = { id: "c", reason: "Its sheep fled." }
  expect(batchText({ queued: [], skipped: [] })).toMatch(/^0\D+$/)
  expect(batchText({ queued: [queued as never], skipped: [skipped, skipped] })).toMatch(
    /^1\D+2\D+Its sheep fled\.$/
  )
})
