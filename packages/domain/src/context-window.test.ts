/**
 * The window of a context: what it lets go, what it never does, and that it is the same however a log is read.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Option, Schema } from "effect"
import { anyWindowedLog } from "../testing/any-log.ts"
import { findSummaryDue, reducerOf } from "./context-window.ts"
import type { LoggedEvent, NewEvent } from "./context-event.ts"
import { decodeEvent } from "./context-event.ts"
import { emptyContext, fold, promptOf, reduce } from "./context.ts"
import {
  answers,
  asks,
  contextOf,
  findUnpaired,
  logOf,
  mentions,
  runA,
  softStops,
  toolCompletes,
  toolStarts,
  turnCompletes,
  turnStarts
} from "../testing/log.ts"
import type { Message } from "./message.ts"
import { listTokens, textTokens } from "./message-size.ts"
import { findReducerFault, type ReducerConfig } from "./prompt-window.ts"

const sets = (reducer: ReducerConfig): NewEvent => ({ type: "SetReducerEvent", reducer })
const last = (maxMessages: number) => sets({ type: "truncating", maxMessages, maxTokens: null })
const within = (maxTokens: number) => sets({ type: "truncating", maxMessages: null, maxTokens })

/** What the user, the agent and the tools said, by their contents' beginnings. */
const said = (messages: ReadonlyArray<Message>): ReadonlyArray<string> =>
  messages.map(({ content, role }) => {
    if (typeof content === "string") return `${role}: ${content.slice(0, 12)}`
    return `${role}: ${content.map((part) => ("id" in part ? part.id : part.type === "text" ? part.text.slice(0, 12) : "")).join(" ")}`
  })

/** The same log, in which nothing was ever let go. */
const unwindowed = (log: ReadonlyArray<LoggedEvent>): ReadonlyArray<LoggedEvent> =>
  log.map((event) => {
    if (event.type !== "SetReducerEvent" && event.type !== "ContextSummarizedEvent") return event
    const { agentName, id, parentEventId, timestamp } = event
    return decodeEvent({
      type: event.type === "SetReducerEvent" ? event.type : "UnknownThingEvent",
      reducer: { type: "whole" },
      agentName,
      id,
      timestamp,
      parentEventId: Option.getOrNull(parentEventId),
      triggersAgentTurn: false
    })
  })

/** How many units a list has: a message, or an answer with the results of its calls. */
const unitsOf = (messages: ReadonlyArray<Message>): number =>
  messages.filter(({ role }) => role !== "tool").length

describe("the window", () => {
  it.prop(
    "S004-F05 is the same however a log is folded: at once, in pieces, event by event",
    [anyWindowedLog, Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 })))],
    ([log, cut]) => {
      const whole = fold(log)
      expect(fold(log.slice(cut), fold(log.slice(0, cut)))).toStrictEqual(whole)
      expect(log.reduce(reduce, emptyContext)).toStrictEqual(whole)
    },
    { arbitrary: { size: 60, runs: 300 } }
  )

  it.prop(
    "S004-F09, F10 never parts a call from its results, counts its tokens rightly, and is the newest of what was said",
    [anyWindowedLog],
    ([log]) => {
      let context = emptyContext
      let all = emptyContext
      const without = unwindowed(log)
      for (const [index, event] of log.entries()) {
        context = reduce(context, event)
        const plain = without[index]
        if (plain) all = reduce(all, plain)
        const { droppedMessages, messages, windowTokens } = context
        expect(windowTokens).toBe(listTokens(messages))
        expect(messages[0]?.role).not.toBe("tool")
        if (context.pendingCalls.length === 0) expect(findUnpaired(messages)).toBeUndefined()
        expect(droppedMessages + messages.length).toBe(all.messages.length)
        const newest = all.messages.slice(droppedMessages)
        const carried = newest.findLastIndex((message, at) => !isSame(message, messages[at])) + 1
        expect(messages.slice(0, carried).every(({ role }) => role === "user")).toBe(true)
        // What is carried along are the last words of the user that were let go.
        const asked = all.messages.slice(0, droppedMessages + carried).filter(({ role }) => role === "user")
        expect(said(asked.slice(asked.length - carried))).toEqual(said(messages.slice(0, carried)))
        if (messages.length > 0) expect(isSame(messages.at(-1), all.messages.at(-1))).toBe(true)
      }
    },
    { arbitrary: { size: 60, runs: 300 } }
  )

  it.prop(
    "S004-F09 keeps its bound, unless the newest unit alone is larger",
    [anyWindowedLog],
    ([log]) => {
      let context = emptyContext
      for (const event of log) {
        context = reduce(context, event)
        const reducer = reducerOf(context.config)
        if (reducer.type !== "truncating" || context.unsaidCalls.length > 0) continue
        const isSummed = event.type === "ContextSummarizedEvent"
        const tokens = [context.systemPrompt, context.summary]
          .flatMap(Option.toArray)
          .reduce((sum, text) => sum + textTokens(text), context.windowTokens)
        const isWithin =
          context.messages.length <= (reducer.maxMessages ?? Infinity) &&
          tokens <= (reducer.maxTokens ?? Infinity)
        const first = context.messages.findIndex(({ role }) => role !== "user")
        const isNewestUnit = unitsOf(first === -1 ? context.messages : context.messages.slice(first)) === 1
        expect(isWithin || isSummed || isNewestUnit).toBe(true)
      }
    },
    { arbitrary: { size: 60, runs: 300 } }
  )
})

const isSame = (one: Message | undefined, other: Message | undefined): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

/** A turn in which the agent calls tools before it answers. */
const turn = (number: number, ...callIds: ReadonlyArray<string>): ReadonlyArray<NewEvent> => [
  asks(`question ${number}`),
  turnStarts(number),
  ...(callIds.length === 0
    ? []
    : [answers("", callIds), ...callIds.flatMap((id) => [toolStarts(id), toolCompletes(id)])]),
  answers(`answer ${number}`),
  turnCompletes(number)
]

describe("Truncating", () => {
  it("S004-F09 keeps the newest messages, down to three quarters of the bound at once", () => {
    const before = contextOf(last(4), ...turn(1), ...turn(2))
    expect(said(before.messages)).toEqual([
      "user: question 1",
      "assistant: answer 1",
      "user: question 2",
      "assistant: answer 2"
    ])
    const after = contextOf(last(4), ...turn(1), ...turn(2), mentions("remark"))
    expect(said(after.messages)).toEqual(["user: question 2", "assistant: answer 2", "user: remark"])
    expect(after.droppedMessages).toBe(2)
  })

  it("S004-F09 lets go of an answer with all of its results, or of nothing", () => {
    const context = contextOf(last(4), ...turn(1, "c1", "c2"), ...turn(2))
    expect(said(context.messages)).toEqual([
      "user: question 1",
      "assistant: answer 1",
      "user: question 2",
      "assistant: answer 2"
    ])
    const open = contextOf(last(2), asks("question"), turnStarts(1), answers("", ["c1", "c2", "c3"]))
    expect(said(open.messages)).toEqual(["user: question", "assistant: c1 c2 c3"])
  })

  it("S004-F09 the system prompt stays, and a turn that is long keeps what it was asked", () => {
    const steps = Array.from({ length: 40 }, (_, n) => [
      answers("", [`c${n}`]),
      toolStarts(`c${n}`),
      toolCompletes(`c${n}`)
    ]).flat()
    const context = contextOf(
      { type: "SystemPromptEvent", content: "Be brief." },
      last(8),
      ...turn(1),
      asks("the task"),
      mentions("its input"),
      turnStarts(2),
      ...steps
    )
    expect(said(promptOf(context))).toEqual([
      "system: Be brief.",
      "user: the task",
      "user: its input",
      "assistant: c37",
      "tool: c37",
      "assistant: c38",
      "tool: c38",
      "assistant: c39",
      "tool: c39"
    ])
  })

  it("S004-F09 what an earlier turn was asked goes with it, wherever the cuts fall", () => {
    const steps = Array.from({ length: 40 }, (_, n) => [
      answers("", [`c${n}`]),
      toolStarts(`c${n}`),
      toolCompletes(`c${n}`)
    ]).flat()
    const log = [asks("question 1"), turnStarts(1), ...steps, asks("question 2"), turnStarts(2), ...steps]
    for (let bound = 8; bound <= 40; bound++)
      expect([
        bound,
        said(contextOf(last(bound), ...log).messages).filter((words) => words.startsWith("user"))
      ]).toEqual([bound, ["user: question 2"]])
  })

  it("S004-F09 the newest unit stays, however large, and nothing comes back when the bound is wider", () => {
    const huge = "x".repeat(10_000)
    const context = contextOf(within(500), ...turn(1), mentions(huge))
    expect(said(context.messages)).toEqual([`user: ${huge.slice(0, 12)}`])
    const wider = contextOf(within(500), ...turn(1), mentions(huge), sets({ type: "whole" }), ...turn(2))
    expect(said(wider.messages)).toHaveLength(3)
    expect(wider.droppedMessages).toBe(2)
  })

  it("what was said is counted, whether it is still in the window or not", () => {
    const context = contextOf(
      within(500),
      ...turn(1),
      ...turn(2),
      mentions("x".repeat(10_000)),
      answers("Long.")
    )
    expect(context.droppedMessages).toBeGreaterThan(0)
    expect(context.spoken).toEqual({ turns: 3, answers: 1 })
  })

  it("a context that nobody chose a reducer for is shown no more than most models take", () => {
    const long = logOf(...Array.from({ length: 300 }, () => mentions("x".repeat(4_000))))
    expect(fold(long).windowTokens).toBeLessThanOrEqual(100_000)
    expect(fold(long).windowTokens).toBeGreaterThan(70_000)
    expect(fold([...logOf(sets({ type: "whole" })), ...long]).messages).toHaveLength(300)
  })
})

describe("Summarizing", () => {
  const summed = (messages: number, content: string | null = "They said much."): NewEvent => ({
    type: "ContextSummarizedEvent",
    content,
    messages,
    runId: runA,
    model: "scripted:tester",
    usage: { inputTokens: 30, outputTokens: 20 }
  })
  it("S004-F10 a summary stands for the messages that it counts, and for no later ones", () => {
    const context = contextOf(...turn(1, "c1"), ...turn(2), mentions("remark"), summed(4))
    expect(said(context.messages)).toEqual(["user: question 2", "assistant: answer 2", "user: remark"])
    expect(context).toMatchObject({ droppedMessages: 4, summary: Option.some("They said much.") })
    expect(promptOf(context)[0]).toStrictEqual({
      role: "system",
      content: expect.stringMatching(/\n\nThey said much\.$/)
    })
    // What it cost is the run's; it is no step of it.
    expect(context.run).toMatchObject({ steps: 3, usage: { inputTokens: 39, outputTokens: 26 } })
  })

  it("S004-F10 a summary that would part a call from its result stands for less", () => {
    const context = contextOf(...turn(1, "c1", "c2"), ...turn(2), summed(3))
    expect(said(context.messages)).toEqual([
      "user: question 1",
      "assistant: c1 c2",
      "tool: c1",
      "tool: c2",
      "assistant: answer 1",
      "user: question 2",
      "assistant: answer 2"
    ])
  })

  it("S004-F10 one that failed lets go all the same, and the one before it stands", () => {
    const context = contextOf(...turn(1), ...turn(2), summed(2), ...turn(3), softStops, summed(4, null))
    expect(context).toMatchObject({ droppedMessages: 4, summary: Option.some("They said much.") })
    expect(said(context.messages).slice(0, 2)).toEqual(["user: question 3", "assistant: answer 3"])
  })

  it("S004-F06, F10 what no guard has judged is not summed up", () => {
    const crowd = Array.from({ length: 30 }, () => mentions("x".repeat(200)))
    const reducer = sets({ type: "summarizing", maxTokens: 1_000, keepTokens: 200 })
    const guard: NewEvent = { type: "SetGuardEvent", guard: { provider: "openai", name: "g" } }
    const judged = (messages: number): NewEvent => ({
      type: "GuardVerdictEvent",
      isFlagged: false,
      reason: "",
      content: "SAFE",
      messages,
      runId: runA,
      model: "openai:g",
      usage: { inputTokens: 1, outputTokens: 1 }
    })
    expect(findSummaryDue(contextOf(reducer, ...crowd))?.index).toBe(19)
    expect(findSummaryDue(contextOf(reducer, guard, ...crowd))).toBeUndefined()
    expect(findSummaryDue(contextOf(reducer, guard, ...crowd, judged(10)))?.index).toBe(10)
  })

  it("what could not come to an end is refused", () => {
    expect(findReducerFault({ type: "summarizing", maxTokens: 1_000, keepTokens: 500 })).toBeUndefined()
    expect(findReducerFault({ type: "summarizing", maxTokens: 1_000, keepTokens: 501 })).toMatchObject({
      field: "keepTokens"
    })
  })
})
