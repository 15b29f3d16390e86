/**
 * What is said of a run in the list and at the head of its page.
 */
import type { Run, Trigger } from "@tropism/domain/run"
import { GraphEventId, ObjectId, UserId } from "@tropism/domain/ids"
import { expect, it } from "vitest"
import { expectOneSentencePerKind } from "../../testing/sentence-kinds.ts"
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
  expect(woken([event, event])).toMatchObject({
    before: expect.stringMatching(/^2\D+ $/),
    what: "created"
  })
  expect(woken([{ ...event, entityType: "relationship", objectType: "KNOWS" }], null)).toEqual({
    before: "",
    object: null,
    what: expect.stringMatching(/KNOWS created$/)
  })
  const wakers = ["schedule", "manual", "webhook"] as const
  const without = (type: (typeof wakers)[number]) => wakerOf({ trigger: { type }, subject: null })
  expect(without("schedule")).toEqual({ before: "", object: null, what: expect.stringMatching(/\S/) })
  expect(new Set(wakers.map((type) => without(type).what)).size).toBe(wakers.length)
  expect(namedText({ ...subject, name: null })).toBe("Person …00000007")
})

const silent = {
  pauseReason: null,
  waitingFor: null,
  summary: null,
  errorMessage: null,
  cancelledBy: null,
  stepCount: 1
} as const

const away = {
  reason: "provider",
  since: "2026-11-20T00:00:00.000Z",
  message: "HTTP 503: Overloaded",
  nextTryAt: "2026-11-20T00:01:00.000Z"
} as const

it("says what is happening or how it ended, in the run's own words where it has any", () => {
  type Told = Parameters<typeof outcomeText>[0]
  const said = (run: Partial<Told>) => outcomeText({ ...silent, ...run } as Told)
  const paused = (pauseReason: Told["pauseReason"], errorMessage: string | null = null) =>
    said({ status: "paused", pauseReason, errorMessage })
  const fled = "Its sheep fled."
  expectOneSentencePerKind({
    queued: [said({ status: "queued" })],
    away: [said({ status: "queued", waitingFor: away })],
    running: [said({ status: "running" }), said({ status: "running", summary: fled })],
    stepLimit: [paused("stepLimit")],
    timeout: [paused("timeout"), paused("timeout", fled)],
    budget: [paused("budget")],
    ownBudget: [paused("budget", fled)],
    question: [paused("question"), paused(null)],
    subAgents: [paused("subAgents")],
    killSwitch: [paused("killSwitch")],
    toolResult: [paused("toolResult")],
    ended: [said({ status: "completed" }), said({ status: "failed" })]
  })
  expect(said({ status: "running" })).toMatch(/\b1\b/)
  expect(said({ status: "queued", waitingFor: away })).toMatch(/:00:00.*HTTP 503: Overloaded\. .*:01:00/)
  expect(paused("budget", fled)).toMatch(new RegExp(`^${fled} \\S`))
  const own: ReadonlyArray<Partial<Told>> = [
    { status: "failed", errorMessage: fled, summary: "Half." },
    { status: "completed", summary: fled },
    { status: "cancelled", errorMessage: fled }
  ]
  expect(own.map(said)).toEqual(own.map(() => fled))
  const byAda = { status: "cancelled", cancelledBy: UserId.make("ada") } as const
  expect(said(byAda)).toMatch(/^ada\b/)
  expect(said({ ...byAda, summary: fled })).toBe(`${said(byAda)} ${fled}`)
})

it("can be cancelled while it works or is paused", () => {
  const statuses = ["running", "paused", "failed", "completed", "cancelled"] as const
  expect(statuses.filter((status) => canCancel({ status }))).toEqual(["running", "paused"])
})

it("says that what a run has used is a guess while its model speaks; where no price is known, the money is the least that it can be", () => {
  const run = { stepCount: 2, usage: { inputTokens: 900, outputTokens: 100 }, costUsd: 0.5 }
  expect(usedText(run)).toBe("2 steps, 1,000 tokens, $0.50")
  expect(usedText(run, { tokens: 50, costUsd: 0.25 })).toMatch(/^2 steps, ~1,050 tokens, ~\$0\.75\b/)
  expect(usedText(run, { tokens: 50, costUsd: null })).toMatch(/^2 steps, ~1,050 tokens, \w[^~]* \$0\.50\b/)
})
