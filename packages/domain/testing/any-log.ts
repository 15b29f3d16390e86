/**
 * Arbitrary logs of a context, also ones that no engine would write.
 */
import { Arbitrary, Schema } from "effect"
import type { NewEvent } from "../src/context-event.ts"
import {
  answers,
  asks,
  logOf,
  mentions,
  runA,
  runB,
  softStops,
  toolCompletes,
  toolFails,
  toolStarts,
  turnBreaks,
  turnCompletes,
  turnFails,
  turnStarts,
  type UnknownDraft
} from "./log.ts"

const call = Schema.Literals(["c1", "c2", "c3"])
const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** What the drafts of one event are made of. */
const anyDice = Arbitrary.all([
  Arbitrary.schema(between(0, 16)),
  Arbitrary.schema(call),
  Arbitrary.schema(Schema.Array(call).check(Schema.isMaxLength(3), Schema.isUnique())),
  Arbitrary.schema(Schema.Literals(["crash", "message", "cancelled", "stepLimit"])),
  Arbitrary.schema(Schema.Struct({ turn: between(1, 5), isOther: Schema.Boolean }))
])

const anyDraft: Arbitrary.Arbitrary<NewEvent | UnknownDraft> = anyDice.pipe(
  Arbitrary.map(([kind, id, ids, reason, { turn, isOther }]): NewEvent | UnknownDraft => {
    const kinds: ReadonlyArray<NewEvent | UnknownDraft> = [
      { type: "SessionStartedEvent" },
      { type: "SessionEndedEvent" },
      { type: "SystemPromptEvent", content: "Be brief.", triggersAgentTurn: isOther },
      asks("question"),
      mentions("remark"),
      answers("word", ids, isOther ? runB : runA),
      {
        type: "SetLlmConfigEvent",
        role: isOther ? "fallback" : "primary",
        provider: "scripted",
        name: "tester"
      },
      { type: "SetTimeoutEvent", timeoutMs: turn * 1_000 },
      softStops,
      turnStarts(turn),
      turnCompletes(turn),
      turnBreaks(turn, reason),
      turnFails(turn),
      toolStarts(id),
      toolCompletes(id),
      isOther ? toolFails(id) : { type: "UnknownThingEvent", triggersAgentTurn: turn > 3 },
      {
        type: "HistoryGivenEvent",
        instructions: isOther ? "Be kind." : null,
        messages: [
          { role: "user", content: "said before" },
          { role: "assistant", content: isOther ? "" : "answered before" }
        ]
      }
    ]
    return kinds[kind] ?? softStops
  })
)

/** Any log at all; `long` lets most have some tens of events. */
export const anyLog = Arbitrary.array(anyDraft, { maxLength: 40 }).pipe(
  Arbitrary.map((drafts) => logOf(...drafts))
)
export const long = { size: 40 }

/** Something that changes the window, or fills it. */
const anyWindowDraft: Arbitrary.Arbitrary<NewEvent> = Arbitrary.all([
  Arbitrary.schema(between(0, 6)),
  Arbitrary.schema(between(1, 12)),
  Arbitrary.schema(between(0, 2_000))
]).pipe(
  Arbitrary.map(([kind, number, length]): NewEvent => {
    const kinds: ReadonlyArray<NewEvent> = [
      mentions("r".repeat(length)),
      answers("w".repeat(length)),
      { type: "SetReducerEvent", reducer: { type: "truncating", maxMessages: number, maxTokens: null } },
      {
        type: "SetReducerEvent",
        reducer: { type: "truncating", maxMessages: null, maxTokens: 500 + length }
      },
      number < 3
        ? { type: "SetReducerEvent", reducer: { type: "whole" } }
        : {
            type: "SetReducerEvent",
            reducer: { type: "summarizing", maxTokens: 500 + length, keepTokens: 100 + number }
          },
      {
        type: "ContextSummarizedEvent",
        content: length > 1_900 ? null : "s".repeat(length),
        messages: number,
        runId: runA,
        model: "scripted:tester",
        usage: { inputTokens: 3, outputTokens: 2 }
      },
      {
        type: "ContextNotedEvent",
        content: length > 1_000 ? null : "n".repeat(length),
        messages: number,
        runId: runA,
        model: "scripted:tester",
        usage: { inputTokens: 1, outputTokens: 1 }
      }
    ]
    return kinds[kind] ?? softStops
  })
)

/** Any log in which the window is set, filled, and summed up. */
export const anyWindowedLog = Arbitrary.array(
  Arbitrary.all([anyDraft, anyWindowDraft, Arbitrary.schema(between(0, 2))]).pipe(
    Arbitrary.map(([draft, windowed, which]) => (which === 0 ? windowed : draft))
  ),
  { maxLength: 60 }
).pipe(Arbitrary.map((drafts) => logOf(...drafts)))
