/**
 * Messages read out of logs as they may come: with calls in between, broken off, and not at an end yet.
 */
import { describe, expect, it } from "@effect/vitest"
import { decodeEvent } from "./context-event.ts"
import { failedResponse, toolSentence } from "./chat-sentences.ts"
import { type PlacedMessage, readEvent, readingAfter, unsaid } from "./conversation-reading.ts"
import { todoSentences } from "./todo.ts"

const run = "0190f1b1-0000-7000-8000-000000000001"
const usage = { inputTokens: 0, outputTokens: 0, costUsd: 0 }

type Draft = { readonly type: string; readonly [field: string]: unknown }

const user = (content: string): Draft => ({ type: "UserMessageEvent", content })
const says = (content: string, ...calls: ReadonlyArray<string>): Draft => ({
  type: "AssistantMessageEvent",
  content,
  toolCalls: calls.map((id) => ({ id, name: "add_task", arguments: { title: id } })),
  runId: run,
  model: "scripted:story",
  usage
})
const did = (callId: string): Draft => ({
  type: "ToolCallCompletedEvent",
  callId,
  tool: "add_task",
  result: { title: callId }
})
const failed = (callId: string, error: unknown): Draft => ({
  type: "ToolCallFailedEvent",
  callId,
  tool: "add_task",
  error
})
const completed: Draft = { type: "AgentTurnCompletedEvent", turnNumber: 1, durationMs: 1 }
const broke = (reason?: string): Draft => ({
  type: "AgentTurnFailedEvent",
  turnNumber: 1,
  error: "HTTP 503",
  ...(reason === undefined ? {} : { reason })
})
const interrupted = (reason: string, partialText?: string): Draft => ({
  type: "AgentTurnInterruptedEvent",
  turnNumber: 1,
  reason,
  ...(partialText === undefined ? {} : { partialText })
})

const log = (...drafts: ReadonlyArray<Draft>) =>
  drafts.map((draft, index) =>
    decodeEvent({
      id: `talk:${index + 1}`,
      timestamp: "2026-11-22T00:00:00.000Z",
      agentName: "talk",
      parentEventId: null,
      triggersAgentTurn: false,
      ...draft
    })
  )

/** What is read of a log from a place on. */
const readFrom = (
  events: ReturnType<typeof log>,
  { after, past }: Pick<PlacedMessage, "after" | "past"> = { after: 0, past: 0 }
): ReadonlyArray<PlacedMessage> => {
  let reading = readingAfter(after)
  const told: Array<PlacedMessage> = []
  for (const event of events.slice(after)) {
    const step = readEvent(reading, event)
    if (step.told) told.push(step.told)
    reading = step.reading
  }
  return [...told, ...[unsaid(reading)].flatMap((last) => last ?? [])].slice(past)
}

const shown = (messages: ReadonlyArray<PlacedMessage>) =>
  messages.map(({ message: { content, id, role, toolCalls } }) => [
    id,
    role,
    content,
    ...toolCalls.map(({ arguments: given, result }) => [given, result])
  ])

const call = (id: string, result: unknown = { title: id }) => [{ title: id }, result]

describe("Requirement: A conversation is a reading of its log", () => {
  it("S003-R34 S003-R60 calls stand with the words that are said of them", () => {
    const events = log(
      user("Add a and b"),
      says("", "a"),
      did("a"),
      says("One more.", "b"),
      failed("b", "No such thing"),
      says("Done."),
      completed
    )
    expect(shown(readFrom(events))).toEqual([
      ["talk:1", "user", "Add a and b"],
      ["talk:4", "assistant", "One more.", call("a")],
      ["talk:6", "assistant", "Done.", call("b", { error: "No such thing" })]
    ])
  })

  it("what is done and not told of stands at the end of the turn, or of the log", () => {
    const silent = log(user("Add a"), says("", "a"), did("a"), completed, user("And?"))
    expect(shown(readFrom(silent))).toEqual([
      ["talk:1", "user", "Add a"],
      ["talk:2", "assistant", "Done.", call("a")],
      ["talk:5", "user", "And?"]
    ])
    const refused = log(user("Add a"), says("Let me see.", "a"), failed("a", "out of order"), completed)
    expect(shown(readFrom(refused)).slice(1)).toEqual([
      ["talk:2", "assistant", "Let me see."],
      ["talk:2", "assistant", toolSentence("out of order"), call("a", { error: "out of order" })]
    ])
    expect(shown(readFrom(log(user("Add a"), says("", "a"))))).toEqual([
      ["talk:1", "user", "Add a"],
      ["talk:2", "assistant", "", call("a", null)]
    ])
  })

  it("S003-R54 a turn that failed is told as whoever waited for it was told, with what was done by then", () => {
    const trouble = failedResponse(undefined, "model")
    // A log of an earlier version does not say what brought the turn down.
    for (const reason of [undefined, "model"])
      expect(
        shown(readFrom(log(user("Add a"), says("", "a"), did("a"), broke(reason), user("And?"))))
      ).toEqual([
        ["talk:1", "user", "Add a"],
        ["talk:4", "assistant", trouble, call("a")],
        ["talk:5", "user", "And?"]
      ])
    const refused = log(
      user("Add a"),
      says("One moment.", "a"),
      failed("a", todoSentences.noTitle),
      broke("doomLoop")
    )
    expect(shown(readFrom(refused)).at(-1)).toEqual([
      "talk:4",
      "assistant",
      failedResponse({ error: todoSentences.noTitle }, "doomLoop"),
      call("a", { error: todoSentences.noTitle })
    ])
  })

  it("what was said of an answer that was broken off stays; what a crash broke off is said again", () => {
    const broken = (reason: string) =>
      log(user("Tell"), says("", "a"), did("a"), interrupted(reason, "I was"), says("I was here."), completed)
    expect(shown(readFrom(broken("user")))).toEqual([
      ["talk:1", "user", "Tell"],
      ["talk:4", "assistant", "I was", call("a")],
      ["talk:5", "assistant", "I was here."]
    ])
    expect(shown(readFrom(broken("crash")))).toEqual([
      ["talk:1", "user", "Tell"],
      ["talk:5", "assistant", "I was here.", call("a")]
    ])
  })

  it("what was said when time was up stays, before what was said behind it", () => {
    const stopped = (partialText?: string): Draft => ({
      type: "SoftStopEvent",
      reason: "timeout",
      content: "Time's up.",
      ...(partialText === undefined ? {} : { partialText })
    })
    const toldWith = (stop: Draft) =>
      shown(
        readFrom(log(user("Tell"), says("", "a"), did("a"), stop, says("In short."), interrupted("timeout")))
      ).slice(1)
    expect(toldWith(stopped("Once upon a"))).toEqual([
      ["talk:4", "assistant", "Once upon a", call("a")],
      ["talk:5", "assistant", "In short."]
    ])
    expect(toldWith(stopped())).toEqual([["talk:5", "assistant", "In short.", call("a")]])
  })

  it("reading goes on behind any message, also where somebody speaks between calls", () => {
    const events = log(
      user("Add a"),
      says("", "a"),
      user("And b"),
      did("a"),
      says("", "b"),
      user("Quick"),
      did("b"),
      says("Done."),
      completed,
      user("Thanks"),
      says("Welcome."),
      completed
    )
    const all = readFrom(events)
    expect(shown(all).map(([, , content]) => content)).toEqual([
      "Add a",
      "And b",
      "Quick",
      "Done.",
      "Thanks",
      "Welcome."
    ])
    for (const [index, placed] of all.entries())
      expect(shown(readFrom(events, placed))).toEqual(shown(all.slice(index + 1)))
  })
})
