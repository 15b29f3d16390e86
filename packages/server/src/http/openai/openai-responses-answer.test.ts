/**
 * The items of a response: the same whether they were heard as they were made, or read from the log.
 */
import { describe, expect, it } from "@effect/vitest"
import { contextEventId, ContextName, decodeEvent, type NewEvent } from "@tropism/domain/context-event"
import { AgentId, RunId } from "@tropism/domain/ids"
import { accumulateResponse } from "openai/lib/responses/ResponseAccumulator"
import type { PlacedResponse } from "../../chat/completions.ts"
import type { TurnPart } from "../../chat/turns.ts"
import { keyOfResponse, placeOfItem, type ResponseEvent, responseForm } from "./responses-answer.ts"

const runId = RunId.make("0193a000-0000-7000-8000-000000000001")
const context = ContextName.make("talk")

const placed: PlacedResponse = {
  id: "0193a000-0000-7000-8000-00000000000a",
  context,
  agentId: AgentId.make("0193a000-0000-7000-8000-000000000002"),
  beginsAfter: 0,
  number: 1,
  isAnswer: false,
  terms: {
    model: "clerk",
    background: false,
    conversation: null,
    instructions: null,
    maxOutputTokens: null,
    metadata: {},
    previousId: null,
    isStored: true,
    temperature: null,
    toolChoice: "auto",
    promptEnd: null
  },
  createdAt: new Date(0)
}

/** Parts, the events among them with the numbers behind the request. */
const partsOf = (...parts: ReadonlyArray<NewEvent | string>): ReadonlyArray<TurnPart> => {
  let number = 1
  return parts.map((part): TurnPart => {
    if (typeof part === "string") return { type: "words", text: part }
    number += 1
    const event = decodeEvent({
      id: contextEventId(context, number),
      timestamp: "2026-01-01T00:00:00.000Z",
      agentName: context,
      parentEventId: null,
      triggersAgentTurn: false,
      ...part
    })
    return { type: "event", event }
  })
}

const says = (content: string, ...calls: ReadonlyArray<string>): NewEvent => ({
  type: "AssistantMessageEvent",
  content,
  toolCalls: calls.map((id) => ({ id, name: "search", arguments: { q: id } })),
  runId,
  model: "scripted:story",
  usage: { inputTokens: 1, outputTokens: 1 }
})
/** An answer that reached the provider's limit. */
const cut = (content: string, continues = false): NewEvent =>
  ({ ...says(content), finishReason: "length", ...(continues ? { continues } : {}) }) as NewEvent
const answers = (callId: string): NewEvent => ({
  type: "ToolCallCompletedEvent",
  callId,
  tool: "search",
  result: callId
})
const fails = (callId: string): NewEvent => ({
  type: "ToolCallFailedEvent",
  callId,
  tool: "search",
  error: { error: "gone" }
})
const crash = (partialText: string): NewEvent => ({
  type: "AgentTurnInterruptedEvent",
  turnNumber: 1,
  reason: "crash",
  partialText
})
const started: NewEvent = { type: "AgentTurnStartedEvent", turnNumber: 1 }
const rest = (ending: "answered" | "bound" | "user"): TurnPart => ({
  type: "rest",
  status: "completed",
  ending,
  failure: null,
  runId,
  questions: []
})

/** The output and the events of a response. */
const heard = (parts: ReadonlyArray<TurnPart>, isRead = false) => {
  const form = responseForm(placed, isRead)
  let state = form.start
  const events: Array<ResponseEvent> = [...form.first]
  for (const part of parts) {
    const [next, told] = form.hear(state, part)
    state = next
    events.push(...told)
  }
  return { output: state.output, events }
}

const textsOf = (output: ReturnType<typeof heard>["output"]) =>
  output.map((item) =>
    item.type === "message"
      ? [item.status, ...item.content.map(({ text }) => text)]
      : [item.status, item.name]
  )

describe("The items of a response", () => {
  it("are those of the log, whatever was heard of an answer that a crash broke off", () => {
    const log = [started, crash("Hel"), started, says("Hello")]
    const [first, broken, again, whole] = log
    if (!first || !broken || !again || !whole) throw new Error("No log")
    const live = heard([...partsOf(first, "Hel", "lo?", broken, again, "Hello", whole), rest("answered")])
    const read = heard([...partsOf(first, "Hel", broken, again, "Hello", whole), rest("answered")], true)
    expect(textsOf(live.output)).toEqual([["completed", "Hello"]])
    expect(read.output).toEqual(live.output)
  })

  it("are closed in the order of their outcomes, and what has none is incomplete", () => {
    const { events, output } = heard([
      ...partsOf("Wait.", says("Wait.", "a", "b", "c"), fails("b"), answers("a"), "So f"),
      rest("bound")
    ])
    expect(textsOf(output)).toEqual([
      ["completed", "Wait.\n\n"],
      ["completed", "search"],
      ["failed", "search"],
      ["incomplete", "search"],
      ["incomplete", "So f"]
    ])
    const done = events.filter(({ type }) => type === "response.output_item.done")
    expect(done.map((event) => event["output_index"])).toEqual([0, 2, 1, 4, 3])
  })

  it("are parted by a blank line, and an answer of blanks is none", () => {
    const { output } = heard([...partsOf("One.", says("One."), " \n", says(" \n"), "Two.", says("Two."))])
    expect(textsOf(output)).toEqual([
      ["completed", "One."],
      ["completed", "\n\nTwo."]
    ])
  })

  it("are what OpenAI's client makes of the events", () => {
    const { events, output } = heard([
      ...partsOf(
        "I",
        " look.",
        says("I look.", "a"),
        answers("a"),
        "Then",
        says("Then.", "b"),
        fails("b"),
        "Done.",
        says("Done.")
      ),
      rest("answered")
    ])
    let snapshot: ReturnType<typeof accumulateResponse> | undefined
    for (const [index, event] of events.slice(0, -1).entries())
      snapshot = accumulateResponse({ ...event, sequence_number: index } as never, snapshot)
    expect(snapshot?.output).toEqual(output)
    expect(events.at(-1)).toMatchObject({ type: "response.completed", response: { output } })
  })

  it("are one message where an answer was cut and goes on, whether streamed or read", () => {
    const parts = [
      ...partsOf("piece0 ", cut("piece0 "), "piece1 ", cut("piece1 ", true), "end.", {
        ...says("end."),
        continues: true
      } as NewEvent),
      rest("answered")
    ]
    const { events, output } = heard(parts)
    expect(textsOf(output)).toEqual([["completed", "piece0 piece1 end."]])
    expect(heard(parts, true).output).toEqual(output)
    const of = (type: string) => events.filter((event) => event.type === `response.${type}`)
    expect(of("output_text.delta").map((event) => event["delta"])).toEqual(["piece0 ", "piece1 ", "end."])
    for (const type of [
      "output_item.added",
      "content_part.added",
      "output_text.done",
      "content_part.done",
      "output_item.done"
    ])
      expect([type, of(type).length]).toEqual([type, 1])
  })

  it("keep what a cut answer had where it does not go on, and begin another behind it", () => {
    const completed: NewEvent = { type: "AgentTurnCompletedEvent", turnNumber: 1, durationMs: 1 }
    const { output } = heard([
      ...partsOf("piece0 ", cut("piece0 "), completed, started, "Next.", says("Next.")),
      rest("answered")
    ])
    expect(textsOf(output)).toEqual([
      ["incomplete", "piece0 "],
      ["completed", "\n\nNext."]
    ])
  })

  it("are those of the log where a crash broke off what goes on", () => {
    const { output } = heard([
      ...partsOf("piece0 ", cut("piece0 "), "e", crash("e"), started, "end.", {
        ...says("end.", "a"),
        continues: true
      } as NewEvent),
      rest("answered")
    ])
    expect(textsOf(output)).toEqual([
      ["completed", "piece0 end.\n\n"],
      ["incomplete", "search"]
    ])
  })

  it("have ids that name their response and their place", () => {
    const { output } = heard(partsOf("One.", says("One.", "a")))
    expect(output.map(({ id }) => placeOfItem(id))).toEqual([
      { id: placed.id, place: 0 },
      { id: placed.id, place: 1 }
    ])
    for (const id of [
      "",
      "msg_1_0",
      `msg_${"g".repeat(32)}_0`,
      `msg_${"0".repeat(32)}_`,
      `x_${"0".repeat(32)}_0`
    ])
      expect([placeOfItem(id), keyOfResponse(id)]).toEqual([undefined, undefined])
  })
})
