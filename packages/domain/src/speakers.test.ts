/**
 * For whom a turn works, folded from logs in which several people speak.
 */
import { describe, expect, it } from "@effect/vitest"
import { fold } from "./context.ts"
import { contextEventId, decodeEvent, type NewEvent } from "./context-event.ts"
import { UserId } from "./ids.ts"
import { askedBy, workedFor } from "./speakers.ts"

const [ann, ben, cleo] = [UserId.make("ann"), UserId.make("ben"), UserId.make("cleo")]

const said = (userId: UserId | undefined, triggersAgentTurn = true): NewEvent => ({
  type: "UserMessageEvent",
  content: "Hello",
  triggersAgentTurn,
  ...(userId === undefined ? {} : { userId })
})
const started: NewEvent = { type: "AgentTurnStartedEvent", turnNumber: 1 }
const completed: NewEvent = { type: "AgentTurnCompletedEvent", turnNumber: 1, durationMs: 1 }
const failed: NewEvent = { type: "AgentTurnFailedEvent", turnNumber: 1, error: "No model" }
const interrupted = (reason: "message" | "crash" | "user" | "stepLimit"): NewEvent => ({
  type: "AgentTurnInterruptedEvent",
  turnNumber: 1,
  reason
})
const resumed = (userId?: UserId): NewEvent => ({
  type: "RunResumedEvent",
  by: "cleo",
  content: "Go on",
  ...(userId === undefined ? {} : { userId })
})

/** For whom the last turn of a log works, where Cleo began the run. */
const worksFor = (...events: ReadonlyArray<NewEvent>) => {
  const context = fold(
    events.map((event, index) =>
      decodeEvent({
        id: contextEventId("talk", index + 1),
        timestamp: "2026-11-22T00:00:00.000Z",
        agentName: "talk",
        parentEventId: null,
        triggersAgentTurn: false,
        ...event
      })
    )
  )
  return workedFor(askedBy(context, cleo), cleo)
}

describe("Requirement: A turn works for the person whose words it reads", () => {
  it.each([
    ["nobody has spoken: for whoever began the run", [started], cleo],
    ["words of an earlier version are of whoever began the run", [said(undefined), started], cleo],
    ["one person has spoken, whoever began the run", [said(ann), said(ann), started], ann],
    ["two have spoken", [said(ann), said(ben), started], null],
    ["one has spoken, and one has only told something", [said(ben, false), said(ann), started], null],
    ["who spoke before is answered", [said(ann), started, completed, said(ben), started], ben],
    ["who spoke before was told of a failure", [said(ann), started, failed, said(ben), started], ben],
    ["who spoke before gave up", [said(ann), started, interrupted("user"), said(ben), started], ben],
    ["the turn that is open goes on for who asked for it", [said(ann), started, said(ben)], ann],
    ["what is told in between is read at once", [said(ann), started, said(ben, false)], null],
    [
      "who breaks in is read with what was broken off",
      [said(ann), started, said(ben), interrupted("message"), started],
      null
    ],
    [
      "who breaks in on himself is alone",
      [said(ann), started, said(ann), interrupted("message"), started],
      ann
    ],
    ["a crash changes nothing", [said(ann), started, interrupted("crash"), started], ann],
    [
      "who is answered behind another has the turn alone",
      [said(ann), started, said(ben), completed, started],
      ben
    ],
    [
      "who lets a run go on says nothing by that",
      [said(ann), started, interrupted("stepLimit"), resumed(), started],
      ann
    ],
    [
      "who lets it go on with words is read too",
      [said(ann), started, interrupted("stepLimit"), resumed(ben), started],
      null
    ]
  ] as const)("S003-R44 S003-R46 %s", (_, events, person) => {
    expect(worksFor(...events)).toBe(person)
  })
})
