/**
 * What each event does to the state: messages, config, turns, calls, progress.
 *
 * Laws that hold for any log are in `context.test.ts`.
 */
import { describe, expect, it } from "@effect/vitest"
import { Option } from "effect"
import { type ContextEventId, contextEventId, type LoggedEvent, type NewEvent } from "./context-event.ts"
import { emptyContext, fold, promptOf } from "./context.ts"
import {
  answers,
  append,
  asks,
  contextName,
  contextOf,
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
  turnStarts
} from "../testing/log.ts"

const id = (number: number): ContextEventId => contextEventId(contextName, number)

describe("messages", () => {
  it("S004-R07 S004-R22…R24 are the system prompt, the user's words and the agent's answers, in order", () => {
    const context = contextOf(
      { type: "SystemPromptEvent", content: "Be brief." },
      asks("Hi"),
      turnStarts(1),
      answers("Hello"),
      turnCompletes(1)
    )
    expect(promptOf(context)).toStrictEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi" },
      { role: "assistant", content: [{ type: "text", text: "Hello" }] }
    ])
  })

  it("S004-R07 hold a tool call with its arguments and its result, or its error", () => {
    const { messages } = contextOf(
      asks("Look"),
      turnStarts(1),
      answers("", ["c1", "c2"]),
      toolStarts("c1"),
      toolCompletes("c1"),
      toolFails("c2")
    )
    expect(messages.slice(1)).toStrictEqual([
      {
        role: "assistant",
        content: [
          { type: "tool-call", id: "c1", name: "get_object", params: { id: "c1" } },
          { type: "tool-call", id: "c2", name: "get_object", params: { id: "c2" } }
        ],
        options: { tropism: { model: "scripted:tester" } }
      },
      {
        role: "tool",
        content: [
          { type: "tool-result", id: "c1", name: "get_object", isFailure: false, result: { of: "c1" } }
        ]
      },
      {
        role: "tool",
        content: [{ type: "tool-result", id: "c2", name: "get_object", isFailure: true, result: "refused" }]
      }
    ])
  })

  it("S004-R22 the newest system prompt stands, before everything", () => {
    const context = contextOf({ type: "SystemPromptEvent", content: "Be brief." }, asks("Hi"), {
      type: "SystemPromptEvent",
      content: "Rhyme."
    })
    expect(promptOf(context)).toStrictEqual([
      { role: "system", content: "Rhyme." },
      { role: "user", content: "Hi" }
    ])
  })

  it("what is said while a tool works comes after its result", () => {
    const log = logOf(
      asks("Look"),
      turnStarts(1),
      answers("", ["c1"]),
      toolStarts("c1"),
      mentions("By the way"),
      { type: "LoopWarningEvent", reason: "cycle", content: "You go in circles." }
    )
    expect(fold(log).messages).toHaveLength(2)
    expect(fold(append(log, toolCompletes("c1"))).messages.map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "tool",
      "user",
      "system"
    ])
  })

  it("S004-R37 what triggers a turn while another is open is for the next one: an answer that is just being written has not seen it", () => {
    const log = logOf(asks("First"), turnStarts(1), asks("Second"), answers("To the first"), turnCompletes(1))
    const context = fold(log)
    expect(context.messages.map((message) => message.role)).toEqual(["user", "assistant", "user"])
    expect(context.isTurnDue).toBe(true)
    expect(fold(append(log, turnStarts(2))).isAnswered).toBe(false)
  })

  it("S004-R37 the turn after an interruption has the new message in its prompt", () => {
    const { messages } = contextOf(
      asks("First"),
      turnStarts(1),
      asks("Second"),
      turnBreaks(1, "message"),
      turnStarts(2)
    )
    expect(messages).toStrictEqual([
      { role: "user", content: "First" },
      { role: "user", content: "Second" }
    ])
  })

  it("a second outcome of a call, and one of a call nobody made, say nothing", () => {
    const log = logOf(asks("Look"), turnStarts(1), answers("", ["c1"]), toolCompletes("c1"))
    expect(fold(append(log, toolCompletes("c1"), toolFails("c9"))).messages).toStrictEqual(fold(log).messages)
  })
})

describe("config", () => {
  it("S004-R08 S004-R27 is the last SetLlmConfigEvent of each role", () => {
    const set = (role: "primary" | "fallback", name: string): NewEvent => ({
      type: "SetLlmConfigEvent",
      role,
      provider: "openai",
      name
    })
    expect(emptyContext.config.primary).toStrictEqual(Option.none())
    const { config } = contextOf(set("primary", "one"), set("fallback", "two"), set("primary", "three"))
    expect(config.primary).toStrictEqual(Option.some({ provider: "openai", name: "three" }))
    expect(config.fallback).toStrictEqual(Option.some({ provider: "openai", name: "two" }))
  })

  it("S004-R08 S004-R28 is the last SetTimeoutEvent", () => {
    expect(emptyContext.config.timeoutMs).toStrictEqual(Option.none())
    const { config } = contextOf(
      { type: "SetTimeoutEvent", timeoutMs: 10 },
      { type: "SetTimeoutEvent", timeoutMs: 20 }
    )
    expect(config.timeoutMs).toStrictEqual(Option.some(20))
  })
})

describe("turns", () => {
  const open = logOf(asks("Hi"), turnStarts(1))

  it("S004-R10 S004-R31 currentTurnNumber is that of the last turn that began", () => {
    expect(emptyContext.currentTurnNumber).toBe(0)
    expect(fold(open).currentTurnNumber).toBe(1)
    expect(fold(append(open, turnCompletes(1))).currentTurnNumber).toBe(1)
    expect(fold(append(open, turnCompletes(1), asks("More"), turnStarts(2))).currentTurnNumber).toBe(2)
  })

  it("S004-R11 agentTurnStartedAtEventId is none when idle, and the open turn's start, which is the parent of new events (S004-R19)", () => {
    expect(contextOf(asks("Hi")).agentTurnStartedAtEventId).toStrictEqual(Option.none())
    expect(fold(open).agentTurnStartedAtEventId).toStrictEqual(Option.some(id(2)))
    expect(fold(append(open, answers("", ["c1"]), toolStarts("c1"))).agentTurnStartedAtEventId).toStrictEqual(
      Option.some(id(2))
    )
    expect(Option.getOrUndefined(fold(open).agentTurnStartedAt)).toBe(open[1]?.timestamp)
  })

  it.each([
    ["S004-R32 AgentTurnCompletedEvent", turnCompletes(1)],
    ["S004-R33 AgentTurnInterruptedEvent", turnBreaks(1, "message")],
    ["S004-R34 AgentTurnFailedEvent", turnFails(1)]
  ])("S004-R11 %s ends the turn", (_, end) => {
    const context = fold(append(open, end))
    expect(context.agentTurnStartedAtEventId).toStrictEqual(Option.none())
    expect(context.agentTurnStartedAt).toStrictEqual(Option.none())
  })

  it("S004-R21 a turn is due when an event triggers one, of whatever type, and no longer when one has begun", () => {
    expect(contextOf(mentions("Hi")).isTurnDue).toBe(false)
    expect(contextOf(asks("Hi")).isTurnDue).toBe(true)
    expect(contextOf({ type: "SystemPromptEvent", content: "Go", triggersAgentTurn: true }).isTurnDue).toBe(
      true
    )
    expect(contextOf({ type: "UnknownThingEvent", triggersAgentTurn: true }).isTurnDue).toBe(true)
    expect(fold(open).isTurnDue).toBe(false)
  })

  it("S004-R21 a turn that any event triggers wants an answer of its own", () => {
    const answered = append(open, answers("Hello"), turnCompletes(1))
    expect(fold(answered).isAnswered).toBe(true)
    expect(
      fold(
        append(
          answered,
          { type: "SystemPromptEvent", content: "Again", triggersAgentTurn: true },
          turnStarts(2)
        )
      ).isAnswered
    ).toBe(false)
  })

  it("S004-R21 a message that triggers nothing leaves the answer the turn's last word", () => {
    expect(fold(append(open, answers("Hello"), mentions("Thanks"))).isAnswered).toBe(true)
  })

  it("a crash makes a turn due, which goes on where the log ends", () => {
    const crashed = fold(append(open, answers("Hello"), turnBreaks(1, "crash")))
    expect(crashed.isTurnDue).toBe(true)
    expect(
      fold(append(append(open, answers("Hello"), turnBreaks(1, "crash")), turnStarts(2))).isAnswered
    ).toBe(true)
  })

  it.each(["message", "cancelled", "stepLimit"] as const)(
    "an interruption for the reason %s makes none due by itself",
    (reason) => {
      expect(fold(append(open, turnBreaks(1, reason))).isTurnDue).toBe(false)
    }
  )

  it("S004-R29 S004-R30 the session is open between its two events", () => {
    expect(contextOf({ type: "SessionStartedEvent" }).isSessionOpen).toBe(true)
    expect(contextOf({ type: "SessionStartedEvent" }, { type: "SessionEndedEvent" }).isSessionOpen).toBe(
      false
    )
  })
})

describe("pending calls", () => {
  const asked = logOf(asks("Look"), turnStarts(1), answers("", ["c1", "c2"]))
  const pending = (log: ReadonlyArray<LoggedEvent>) => fold(log).pendingCalls.map((each) => each.id)

  it("are those of the last answer that have no outcome, in the order the model made them", () => {
    expect(pending(asked)).toEqual(["c1", "c2"])
    expect(pending(append(asked, toolStarts("c1")))).toEqual(["c1", "c2"])
    expect(pending(append(asked, toolFails("c2")))).toEqual(["c1"])
    expect(pending(append(asked, toolFails("c2"), toolCompletes("c1")))).toEqual([])
  })

  it("are told in their order also where a model names them as every object names its methods", () => {
    const names = ["toString", "constructor", "__proto__", "c4"]
    const log = logOf(
      asks("Look"),
      turnStarts(1),
      answers("", names),
      ...names.toReversed().map(toolCompletes)
    )
    const told = (until: number) =>
      fold(log.slice(0, until)).messages.flatMap((message) =>
        message.role === "tool" ? message.content.map((part) => part.id) : []
      )
    expect(log.map((_, index) => told(index + 1))).toEqual([[], [], [], [], [], [], names])
  })

  it("outlive a crash", () => {
    const taken = fold(append(asked, toolCompletes("c1"), turnBreaks(1, "crash"), turnStarts(2)))
    expect(taken.pendingCalls.map((each) => each.id)).toEqual(["c2"])
    expect(taken.areCallsAbandoned).toBe(false)
  })

  it.each(["message", "cancelled"] as const)(
    "are abandoned when the turn ends for the reason %s, and stay so through a crash",
    (reason) => {
      const log = append(asked, turnBreaks(1, reason))
      expect(fold(log).areCallsAbandoned).toBe(true)
      expect(
        fold(append(log, asks("Else"), turnStarts(2), turnBreaks(2, "crash"), turnStarts(3)))
          .areCallsAbandoned
      ).toBe(true)
      expect(
        fold(
          append(
            log,
            toolCompletes("c1"),
            toolCompletes("c2"),
            asks("Else"),
            turnStarts(2),
            answers("", ["c3"])
          )
        ).areCallsAbandoned
      ).toBe(false)
    }
  )

  it("take an outcome that comes after the interruption, for the tool finishes and is recorded", () => {
    const context = fold(
      append(
        asked,
        toolStarts("c1"),
        asks("Stop"),
        turnBreaks(1, "message"),
        toolCompletes("c1"),
        toolFails("c2")
      )
    )
    expect(context.messages.map((message) => message.role)).toEqual([
      "user",
      "assistant",
      "tool",
      "tool",
      "user"
    ])
  })
})

describe("the run's progress", () => {
  it("counts its steps and its tokens, and begins anew with another run", () => {
    const log = logOf(
      asks("Hi"),
      turnStarts(1),
      answers("", ["c1"]),
      toolCompletes("c1"),
      answers("Done"),
      turnCompletes(1)
    )
    expect(fold(log).run).toMatchObject({ id: runA, steps: 2, usage: { inputTokens: 6, outputTokens: 4 } })
    expect(fold(append(log, asks("More"), turnStarts(2), answers("", [], runB))).run).toMatchObject({
      id: runB,
      steps: 1,
      softStop: Option.none()
    })
  })

  it("keeps the last text that was not empty, but never another run's", () => {
    const log = logOf(
      asks("Hi"),
      turnStarts(1),
      answers("Let me look", ["c1"]),
      toolCompletes("c1"),
      answers(""),
      turnCompletes(1)
    )
    expect(fold(log).lastText).toBe("Let me look")
    expect(fold(append(log, asks("More"), turnStarts(2), answers("", [], runB))).lastText).toBe("")
  })

  it("survives a crash, the soft stop too", () => {
    const log = logOf(
      asks("Hi"),
      turnStarts(1),
      answers("", ["c1"]),
      toolCompletes("c1"),
      softStops,
      turnBreaks(1, "crash"),
      turnStarts(2)
    )
    expect(fold(log).run).toMatchObject({
      steps: 1,
      softStop: Option.some({ reason: "stepLimit", steps: 1 }),
      pausedFor: Option.none()
    })
  })

  it("S002-R45 forgives the steps before a pause when a turn begins after it", () => {
    const paused = logOf(
      asks("Hi"),
      turnStarts(1),
      answers("", ["c1"]),
      toolCompletes("c1"),
      softStops,
      answers("So far"),
      turnBreaks(1, "stepLimit")
    )
    expect(fold(paused).run).toMatchObject({
      steps: 2,
      pausedFor: Option.some("stepLimit"),
      softStop: Option.some({ reason: "stepLimit" })
    })
    expect(fold(append(paused, asks("Go on"), turnStarts(2))).run).toMatchObject({
      steps: 2,
      stepsBeforeResume: 2,
      pausedFor: Option.none(),
      softStop: Option.none()
    })
  })
})
