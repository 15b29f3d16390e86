/**
 * Snapshots: what is kept beside a log is what the log folds to, and the fold goes on from it.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Option, Schema } from "effect"
import { anyWindowedLog } from "../testing/any-log.ts"
import { decodeSnapshot, encodeSnapshot } from "./context-snapshot.ts"
import { emptyContext, fold } from "./context.ts"
import { answers, asks, contextOf, toolStarts, turnStarts } from "../testing/log.ts"

/** As the database gives it back. */
const throughJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

describe("a snapshot", () => {
  it.prop(
    "is the whole state: read back it is equal, and what is new folds onto it as onto the log",
    [anyWindowedLog, Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 60 })))],
    ([log, cut]) => {
      const kept = throughJson(encodeSnapshot(fold(log.slice(0, cut))))
      const read = Option.getOrElse(decodeSnapshot(kept), () => emptyContext)
      expect(read).toStrictEqual(fold(log.slice(0, cut)))
      expect(fold(log.slice(cut), read)).toStrictEqual(fold(log))
    },
    { arbitrary: { size: 60, runs: 200 } }
  )

  it("keeps every kind of setting, and what a run is in the middle of", () => {
    const context = contextOf(
      { type: "SystemPromptEvent", content: "Be brief." },
      { type: "SetLlmConfigEvent", role: "primary", provider: "openai", name: "m", temperature: 0.5 },
      { type: "SetRetryConfigEvent", maxRetries: 1, baseMs: 2, maxMs: 3 },
      { type: "SetRacingEvent", isRacing: true },
      { type: "SetGuardEvent", guard: { provider: "openai", name: "g" } },
      { type: "SetMemoryConfigEvent", recallPassages: 2, keepsSummary: true },
      { type: "SetReducerEvent", reducer: { type: "summarizing", maxTokens: 1_000, keepTokens: 200 } },
      {
        type: "DefineToolEvent",
        name: "find",
        tool: "search_objects",
        arguments: { type: "Tea", deep: [1, null] }
      },
      {
        type: "DefineToolEvent",
        name: "pick_colour",
        inputSchema: { type: "object", properties: { prompt: { type: "string" } } },
        timeoutMs: 5_000
      },
      {
        type: "DefineWorkflowEvent",
        flowType: "loop",
        maxIterations: 3,
        steps: [{ name: "look", prompt: "Look.", tools: ["graph.*"], model: null }]
      },
      asks("Look"),
      {
        type: "FlowStepStartedEvent",
        step: "look",
        index: 0,
        iteration: 1,
        content: "Look.",
        triggersAgentTurn: true
      },
      turnStarts(1),
      answers("", ["c1", "c2"]),
      toolStarts("c1")
    )
    expect(Option.getOrThrow(decodeSnapshot(throughJson(encodeSnapshot(context))))).toStrictEqual(context)
    expect(context.config.tools).toHaveLength(2)
    expect(Option.isSome(context.config.workflow) && Option.isSome(context.flow)).toBe(true)
  })

  it("of another shape is not understood", () => {
    const { messages: _messages, ...without } = encodeSnapshot(emptyContext)
    expect(decodeSnapshot(without)).toStrictEqual(Option.none())
    expect(decodeSnapshot({ ...without, messages: [{ role: "nobody", content: "" }] })).toStrictEqual(
      Option.none()
    )
    expect(decodeSnapshot("nonsense")).toStrictEqual(Option.none())
  })
})
