/**
 * Which events and pieces of a log are the answer to a message, case by case.
 */
import { describe, expect, it } from "@effect/vitest"
import { contextEventId, ContextName, decodeEvent, type NewEvent } from "@tropism/domain/context-event"
import { RunId } from "@tropism/domain/ids"
import {
  endOfRun,
  hearEvent,
  type Hearing,
  hearingFrom,
  hearPiece,
  isOver,
  mayGoOn,
  type Piece
} from "./turns.ts"

const name = ContextName.make("talk")
const runId = RunId.make("0193a000-0000-7000-8000-000000000001")

const logged = (number: number, event: NewEvent) =>
  decodeEvent({
    id: contextEventId(name, number),
    timestamp: "2026-01-01T00:00:00.000Z",
    agentName: name,
    parentEventId: null,
    triggersAgentTurn: false,
    ...event
  })

const started = (turnNumber: number): NewEvent => ({ type: "AgentTurnStartedEvent", turnNumber })
const completed: NewEvent = { type: "AgentTurnCompletedEvent", turnNumber: 1, durationMs: 5 }
const interrupted = (reason: "crash" | "message" | "stepLimit" | "user", partialText?: string): NewEvent => ({
  type: "AgentTurnInterruptedEvent",
  turnNumber: 1,
  reason,
  ...(partialText === undefined ? {} : { partialText })
})
const stopped = (partialText: string): NewEvent => ({
  type: "SoftStopEvent",
  reason: "timeout",
  content: "Time's up.",
  partialText
})
const failed: NewEvent = { type: "AgentTurnFailedEvent", turnNumber: 1, error: "HTTP 503" }
const step = (name: string): NewEvent => ({
  type: "FlowStepStartedEvent",
  step: name,
  index: 0,
  iteration: 1,
  content: name,
  triggersAgentTurn: true
})
const asks: NewEvent = { type: "UserMessageEvent", content: "More", triggersAgentTurn: true }
const noted: NewEvent = { type: "UserMessageEvent", content: "By the way" }
const says = (content: string): NewEvent => ({
  type: "AssistantMessageEvent",
  content,
  toolCalls: [],
  runId,
  model: "scripted:story",
  usage: { inputTokens: 1, outputTokens: 1 }
})

const piece = (after: number, place: number, text: string, at = "first attempt"): Piece => ({
  after,
  first: place,
  last: place,
  at,
  text
})

type Line = ReadonlyArray<readonly [number, NewEvent] | Piece>

/** What is heard of a log behind an event, and told: words as they are, events by their type. */
const heardOf = (after: number, line: Line, isTurnOpen = false) => {
  let hearing: Hearing = hearingFrom(after, isTurnOpen)
  const parts: Array<string> = []
  for (const each of line) {
    const heard = "after" in each ? hearPiece(hearing, each) : hearEvent(hearing, logged(...each))
    hearing = heard.hearing
    for (const part of heard.parts)
      if (part.type === "words") parts.push(`"${part.text}"`)
      else if (part.type === "event") parts.push(part.event.type)
  }
  return { hearing, parts }
}

const told = (after: number, line: Line, isTurnOpen = false) => {
  const { hearing, parts } = heardOf(after, line, isTurnOpen)
  return { parts, end: hearing.end?.ending, runId: hearing.runId }
}

/** Events that follow one another from the fourth on. */
const following = (...events: ReadonlyArray<NewEvent>): Line =>
  events.map((event, index) => [index + 4, event] as const)

describe("What belongs to the turn that answers a message", () => {
  it("begins with the turn that begins behind it, and ends with that turn", () =>
    expect(
      told(3, [
        [4, started(1)],
        [5, says("Hello")],
        [6, completed]
      ])
    ).toEqual({
      parts: ["AgentTurnStartedEvent", '"Hello"', "AssistantMessageEvent", "AgentTurnCompletedEvent"],
      end: "answered",
      runId
    }))

  it("leaves out the turn that was open when it was said", () =>
    expect(
      told(3, [piece(2, 1, "old"), [4, says("old")], [5, interrupted("message")], [6, started(2)]])
    ).toEqual({
      parts: ["AgentTurnStartedEvent"],
      end: undefined,
      runId: null
    }))

  it("has the turn that was open, where what came is an outcome that it waited for", () =>
    expect(
      told(
        3,
        [
          [4, says("Thanks")],
          [5, completed]
        ],
        true
      ).parts
    ).toEqual(['"Thanks"', "AssistantMessageEvent", "AgentTurnCompletedEvent"]))

  it("tells the words of an answer once, as they are made and then what is left of them", () =>
    expect(
      told(3, [[4, started(1)], piece(4, 1, "Hel"), piece(4, 2, "lo"), [5, says("Hello!")], piece(4, 3, "!")])
        .parts
    ).toEqual(["AgentTurnStartedEvent", '"Hel"', '"lo"', '"!"', "AssistantMessageEvent"]))

  it.each([
    ["its first piece", [piece(4, 2, "east "), piece(4, 3, "south ")], ['"north east south west"']],
    ["one in its midst", [piece(4, 1, "north "), piece(4, 3, "south ")], ['"north "', '"east south west"']]
  ])("tells the rest of an answer when it is kept, where %s was not heard", (_, pieces, words) =>
    expect(
      told(3, [[4, started(1)], ...pieces, [5, says("north east south west")]]).parts.filter((part) =>
        part.startsWith('"')
      )
    ).toEqual(words)
  )

  it.each([
    ["when time was up", stopped("one two"), [piece(4, 1, "one ")], ['"one "', '"two"']],
    ["by a person, and no piece of it was heard", interrupted("user", "one two"), [], ['"one two"']],
    ["by a person, and less of it was kept", interrupted("user", "on"), [piece(4, 1, "one ")], ['"one "']]
  ])("tells the rest of what there is of an answer that was broken off %s", (_, event, pieces, words) =>
    expect(
      told(3, [[4, started(1)], ...pieces, [5, event], piece(4, 2, "two")]).parts.filter((part) =>
        part.startsWith('"')
      )
    ).toEqual(words)
  )

  it("tells nothing again of an answer whose thinking was told first", () =>
    expect(
      told(3, [[4, started(1)], piece(4, 1, "I think. "), piece(4, 2, "42"), [5, says("42")]]).parts
    ).toEqual(["AgentTurnStartedEvent", '"I think. "', '"42"', "AssistantMessageEvent"]))

  it("tells an answer anew that a crash broke off, and does not end with it", () =>
    expect(
      told(3, [
        [4, started(1)],
        piece(4, 1, "Hel"),
        [5, interrupted("crash")],
        [6, started(2)],
        [7, says("Hi")]
      ])
    ).toMatchObject({
      parts: [
        "AgentTurnStartedEvent",
        '"Hel"',
        "AgentTurnInterruptedEvent",
        "AgentTurnStartedEvent",
        '"Hi"',
        "AssistantMessageEvent"
      ],
      end: undefined
    }))

  it.each([
    [
      "and its last piece came late",
      [piece(4, 1, "Hi", "second attempt"), piece(4, 3, "p!")],
      ['"Hi"', '" there"']
    ],
    [
      "and its first piece came twice",
      [piece(4, 1, "Hel"), piece(4, 1, "Hi", "second attempt")],
      ['"Hi"', '" there"']
    ]
  ])("tells an answer anew that is asked for again behind the same event, %s", (_, pieces, words) =>
    expect(
      told(3, [[4, started(1)], piece(4, 1, "Hel"), piece(4, 2, "l"), ...pieces, [5, says("Hi there")]]).parts
    ).toEqual(["AgentTurnStartedEvent", '"Hel"', '"l"', ...words, "AssistantMessageEvent"])
  )

  it("is the turn behind one that the message has broken into", () =>
    expect(
      told(3, following(started(1), interrupted("message"), step("a"), started(2), says("Hi"), completed))
    ).toMatchObject({
      parts: expect.arrayContaining(['"Hi"', "AgentTurnCompletedEvent"]),
      end: "answered"
    }))

  it.each([
    ["a step is complete", following(step("a"), started(1), says("A"), completed), false, true, false],
    ["… and something is kept", following(step("a"), started(1), completed, noted), false, true, false],
    ["… and the next has begun", following(step("a"), started(1), completed, step("b")), false, false, false],
    ["… and more is asked", following(step("a"), started(1), says("A"), completed, asks), false, true, true],
    [
      "more was asked before",
      following(step("a"), started(1), asks, says("A"), completed),
      false,
      true,
      true
    ],
    ["a step has failed", following(step("a"), started(1), failed), false, false, true],
    [
      "a step was broken into",
      following(step("a"), started(1), asks, interrupted("message")),
      false,
      false,
      true
    ],
    ["a step was stopped", following(step("a"), started(1), interrupted("stepLimit")), false, false, true],
    ["a step was open before and is complete", following(says("A"), completed), true, true, false],
    ["a turn without steps is complete", following(started(1), says("A"), completed), false, false, true]
  ] as const)("of a workflow: where %s", (_, line, isTurnOpen, goesOn, over) => {
    const { hearing } = heardOf(3, line, isTurnOpen)
    expect([mayGoOn(hearing), isOver(hearing)]).toEqual([goesOn, over])
  })

  it("has nothing of what is kept between two steps", () =>
    expect(
      told(3, following(step("a"), started(1), says("A"), completed, noted, step("b"), started(2), says("B")))
        .parts
    ).toEqual([
      "AgentTurnStartedEvent",
      '"A"',
      "AssistantMessageEvent",
      "AgentTurnCompletedEvent",
      "AgentTurnStartedEvent",
      '"B"',
      "AssistantMessageEvent"
    ]))

  it.each([
    ["queued", null, undefined],
    ["running", null, undefined],
    ["paused", "subAgents", undefined],
    ["paused", "toolResult", undefined],
    ["paused", "question", "question"],
    ["paused", "killSwitch", "stopped"],
    ["paused", "budget", "budget"],
    ["completed", null, "answered"],
    ["cancelled", null, "cancelled"],
    ["failed", null, "failed"]
  ] as const)("of a run that is %s (%s) it ends as %s", (status, pauseReason, ending) =>
    expect(endOfRun({ id: runId, status, pauseReason, isHeldBack: false })?.ending).toBe(ending)
  )
})
