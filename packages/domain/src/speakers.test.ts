/**
 * For whom a turn works, folded from logs in which several people speak.
 */
import { describe, expect, it } from "@effect/vitest"
import { fold } from "./context.ts"
import { contextEventId, ContextName, decodeEvent, type NewEvent } from "./context-event.ts"
import { UserId } from "./ids.ts"
import { stepStarts, workflow } from "../testing/log.ts"
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
const interrupted = (reason: "message" | "crash" | "user" | "stepLimit" | "forked"): NewEvent => ({
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
const prompted = (userId?: UserId, triggersAgentTurn = false): NewEvent => ({
  type: "SystemPromptEvent",
  content: "Do it again",
  triggersAgentTurn,
  ...(userId === undefined ? {} : { userId })
})
const timed = (userId: UserId, triggersAgentTurn = true): NewEvent => ({
  type: "SetTimeoutEvent",
  timeoutMs: 1_000,
  triggersAgentTurn,
  userId
})
const answered = (userId?: UserId): NewEvent => ({
  type: "ToolCallCompletedEvent",
  callId: "c1",
  tool: "ask_user",
  result: { answer: "Yes" },
  ...(userId === undefined ? {} : { userId })
})
const [first, second] = [stepStarts("first", 0), stepStarts("second", 1)]
const works = workflow("first", "second")
const forked: NewEvent = { type: "ContextForkedEvent", from: ContextName.make("origin"), at: 1 }

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
    ["an open turn goes on for who asked for it", [said(ann), started, said(ben)], ann],
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
      "letting a run go on says nothing",
      [said(ann), started, interrupted("stepLimit"), resumed(), started],
      ann
    ],
    [
      "who lets it go on with words is read too",
      [said(ann), started, interrupted("stepLimit"), resumed(ben), started],
      null
    ],
    [
      "who asks by setting something speaks",
      [said(ann), started, completed, prompted(ben, true), started],
      ben
    ],
    ["who asks once more by setting something is read too", [said(ann), timed(ben), started], null],
    [
      "letting a run go on by setting something is read too",
      [said(ann), started, interrupted("stepLimit"), timed(ben), started],
      null
    ],
    ["who sets something in an open turn asks for the next", [said(ann), started, timed(ben)], ann],
    ["and has that turn alone", [said(ann), started, timed(ben), completed, started], ben],
    [
      "who set something in an earlier version is whoever began the run",
      [said(cleo), prompted(undefined, true), started],
      cleo
    ],
    ["a setting that asks for nothing is the context's", [prompted(ben), said(ann), started], ann],
    ["what the model is told in between is read at once", [said(ann), started, prompted(ben)], null],
    ["also before the turn begins", [said(ann), prompted(ben), started], null],
    ["also where it asks for the next turn", [said(ann), started, prompted(ben, true)], null],
    ["also where the run's own prompt is worked on", [started, prompted(ben)], null],
    ["what tells the model nothing is not read", [said(ann), started, timed(ben, false)], ann],
    ["who answers what the agent asked is read at once", [said(ann), started, answered(ben)], null],
    ["who answers what was asked for him is alone", [said(ann), started, answered(ann)], ann],
    ["also who began the run with its own prompt", [said(undefined), started, answered(cleo)], cleo],
    ["an answer is read with the run's own prompt", [said(undefined), started, answered(ben)], null],
    [
      "a tool's result and an answer of an earlier version are nobody's words",
      [said(ann), started, answered()],
      ann
    ],
    [
      "an answer is of the turn that asked, and not of the next that somebody wants",
      [said(ann), started, said(cleo), answered(ben), completed, started],
      cleo
    ],
    ["a step is of whoever began the run", [first, started, answered(ben)], null],
    ["also one behind another", [first, started, completed, second, started, answered(ben)], null],
    [
      "also where somebody lets the run go on with words",
      [first, started, completed, second, started, interrupted("stepLimit"), resumed(ben), started],
      null
    ],
    [
      "the steps of a workflow are of whom it works for",
      [works, said(ann), first, started, completed, second, started],
      ann
    ],
    [
      "and not of who began the run",
      [works, said(ann), first, started, completed, second, started, answered(ann)],
      ann
    ],
    [
      "who breaks into a workflow is read with whom it worked for",
      [works, said(ann), first, started, said(ben), interrupted("message"), first, started],
      null
    ],
    [
      "who is answered by a workflow behind another has it alone",
      [works, said(ann), first, started, completed, second, started, said(ben), completed, first, started],
      ben
    ],
    ["what a fork shares is of whoever begins the run there", [said(ann), forked, started], cleo],
    ["and of whoever speaks there", [said(ann), forked, said(ben), started], ben],
    [
      "and of whoever asks there by setting something",
      [said(ann), forked, prompted(ben, true), started],
      ben
    ],
    [
      "and what was said for the next turn is so, too",
      [said(ann), started, said(ann), forked, interrupted("forked"), started],
      cleo
    ]
  ] as const)("S003-R44 S003-R46 %s", (_, events, person) => {
    expect(worksFor(...events)).toBe(person)
  })
})
