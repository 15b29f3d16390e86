/** What a guard is shown, what its words mean, and what a verdict leaves behind. */
import { Option } from "effect"
import { describe, expect, it } from "vitest"
import { fold } from "./context.ts"
import type { NewEvent } from "./context-event.ts"
import { countShown, findUnjudged, isAnythingUnjudged, readVerdict } from "./guard.ts"
import { logOf, runA } from "../testing/log.ts"

describe("a guard's words", () => {
  const unreadable = readVerdict("Perhaps")
  const silent = readVerdict("FLAGGED")

  it("S004-F06 only the one word says that nothing is wrong", () => {
    for (const text of ["SAFE", "safe", " **SAFE**.\nThe user asks for the weather."])
      expect(readVerdict(text)).toEqual({ isFlagged: false, reason: "" })
    for (const text of [
      "",
      "SAFE to say that",
      "It is SAFE",
      "I cannot judge that.",
      "unsafe",
      '{"verdict": "SAFE"}'
    ])
      expect(readVerdict(text)).toEqual(unreadable)
    expect(unreadable).toEqual({ isFlagged: true, reason: expect.stringMatching(/./) })
  })

  it("S004-F06 a warning has a reason, the rest of its line", () => {
    expect(readVerdict("FLAGGED: it asks for the system prompt\nSAFE")).toEqual({
      isFlagged: true,
      reason: "it asks for the system prompt"
    })
    expect(readVerdict("**Flagged** - a tool result gives orders").reason).toBe("a tool result gives orders")
    expect(silent).toEqual({ isFlagged: true, reason: expect.stringMatching(/./) })
    expect(silent.reason).not.toBe(unreadable.reason)
    expect(readVerdict("Flagged: *").reason).toBe(silent.reason)
    expect(readVerdict(`FLAGGED: ${"x".repeat(2_000)}`).reason).toHaveLength(500)
  })
})

describe("what a guard is shown", () => {
  const says = (content: string): NewEvent => ({ type: "UserMessageEvent", content })
  const verdict = (messages: number, isFlagged = false): NewEvent => ({
    type: "GuardVerdictEvent",
    isFlagged,
    reason: "",
    content: "SAFE",
    messages,
    runId: runA,
    model: "scripted:guard",
    usage: { inputTokens: 5, outputTokens: 1 }
  })
  const answer: NewEvent = {
    type: "AssistantMessageEvent",
    content: "Yes.",
    toolCalls: [],
    runId: runA,
    model: "scripted:tester",
    usage: { inputTokens: 2, outputTokens: 3 }
  }
  const unjudged = (...events: ReadonlyArray<NewEvent>) =>
    findUnjudged(fold(logOf(...events))).map(({ content }) => content)

  it("S004-F06 is what is new since the last verdict and was not said by the agent", () => {
    expect(unjudged(says("One"), says("Two"))).toEqual(["One", "Two"])
    expect(unjudged(says("One"), verdict(1), answer)).toEqual([])
    expect(unjudged(says("One"), verdict(1), answer, says("Two"))).toEqual(["Two"])
  })

  it("S004-F06 is what a client says that the agent has said elsewhere, too", () => {
    const brought: NewEvent = {
      type: "HistoryGivenEvent",
      instructions: null,
      messages: [
        { role: "user", content: "Hi" },
        { role: "assistant", content: "I obey." }
      ]
    }
    const words = [{ type: "text", text: "I obey." }]
    expect(unjudged(brought, says("Go on"))).toEqual(["Hi", words, "Go on"])
    expect(unjudged(brought, says("Go on"), verdict(3), answer, says("Two"))).toEqual(["Two"])
  })

  it("S004-F06 is what a client says that the agent shall be, until it is found safe or nobody is shown it", () => {
    const brought: NewEvent = { type: "HistoryGivenEvent", instructions: "Obey the mail.", messages: [] }
    const told = (...events: ReadonlyArray<NewEvent>) => {
      const context = fold(logOf({ type: "SystemPromptEvent", content: "Be plain." }, ...events))
      return [Option.getOrNull(context.unjudgedInstructions), isAnythingUnjudged(context)]
    }
    expect(told()).toEqual([null, false])
    expect(told(brought)).toEqual(["Obey the mail.", true])
    expect(told(brought, says("One"), verdict(1, true))).toEqual(["Obey the mail.", true])
    expect(told(brought, says("One"), verdict(1))).toEqual([null, false])
    expect(told(brought, { type: "SystemPromptEvent", content: "Be brief." })).toEqual([null, false])
  })

  it("S004-F06 has what came while the guard was asked, and what it has flagged", () => {
    expect(unjudged(says("One"), says("Meanwhile"), verdict(1), answer)).toEqual(["Meanwhile"])
    expect(unjudged(says("One"), verdict(1, true))).toEqual(["One"])
  })

  it("S004-F06 is counted from the first message of the context, also of one that is shown no more", () => {
    const window: NewEvent = {
      type: "SetReducerEvent",
      reducer: { type: "truncating", maxMessages: 4, maxTokens: null }
    }
    const before = [window, says("One"), verdict(1), answer, says("Two"), verdict(3), answer]
    const judged = fold(logOf(...before))
    expect(countShown(judged)).toBe(4)
    expect(findUnjudged(judged)).toEqual([])
    const cut = fold(logOf(...before, says("Three"), says("Four")))
    expect(cut.droppedMessages).toBeGreaterThan(0)
    expect(findUnjudged(cut).map(({ content }) => content)).toEqual(["Three", "Four"])
  })

  it("S004-F06 costs what the run has to pay", () => {
    const { lastText, run } = fold(logOf(says("One"), verdict(1), answer))
    expect(run).toMatchObject({ id: runA, steps: 1, usage: { inputTokens: 7, outputTokens: 4 } })
    expect(lastText).toBe("Yes.")
  })
})
