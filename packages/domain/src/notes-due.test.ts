/** When a context's notes are renewed, as its log says. */
import { describe, expect, it } from "vitest"
import type { NewEvent } from "./context-event.ts"
import { decide } from "./decide.ts"
import {
  answers,
  asks,
  contextOf,
  mentions,
  runA,
  turnBreaks,
  turnCompletes,
  turnStarts
} from "../testing/log.ts"
import { areNotesDue } from "./notes-due.ts"

const keeps: NewEvent = { type: "SetMemoryConfigEvent", recallPassages: 0, keepsSummary: true }

const noted = (messages: number, content: string | null = "So far."): NewEvent => ({
  type: "ContextNotedEvent",
  content,
  messages,
  runId: runA,
  model: "scripted:tester",
  usage: { inputTokens: 2, outputTokens: 3 }
})

const chatter = (count: number): ReadonlyArray<NewEvent> =>
  Array.from({ length: count }, () => mentions("So"))

const turn = [asks("Well?"), turnStarts(1), answers("Yes."), turnCompletes(1)] as const

describe("SetMemoryConfigEvent: running summaries", () => {
  it("S004-F04 they are due when eight messages have come, and not before", () => {
    expect(areNotesDue(contextOf(keeps, ...chatter(5), ...turn))).toBe(false)
    expect(areNotesDue(contextOf(keeps, ...chatter(6), ...turn))).toBe(true)
    expect(areNotesDue(contextOf(...chatter(6), ...turn))).toBe(false)
    expect(areNotesDue(contextOf(keeps, ...chatter(6), ...turn, { ...keeps, keepsSummary: false }))).toBe(
      false
    )
  })

  it("S004-F04 they are made between turns, after an answer, and before the run ends", () => {
    const decided = (...events: ReadonlyArray<NewEvent>) =>
      decide({
        context: contextOf(keeps, ...chatter(7), ...events),
        runId: runA,
        ownTurnNumber: 1,
        maxSteps: null
      }).type
    expect(decided(...turn.slice(0, 3))).toBe("completeTurn")
    expect(decided(...turn)).toBe("takeNotes")
    expect(decided(...turn, noted(9))).toBe("finish")
    expect(decided(...turn, noted(9, null))).toBe("finish")
    expect(decided(...turn, asks("And?"))).toBe("startTurn")
    expect(decided(asks("Well?"), turnStarts(1), turnBreaks(1, "user"))).toBe("finish")
  })

  it("S004-F04 what a context says since its last notes counts, however much its window let go", () => {
    const small: NewEvent = {
      type: "SetReducerEvent",
      reducer: { type: "truncating", maxMessages: 4, maxTokens: null }
    }
    const before = [keeps, small, ...chatter(20), ...turn, noted(22)]
    expect(contextOf(...before).messages.length).toBeLessThan(5)
    expect(areNotesDue(contextOf(...before, ...chatter(7)))).toBe(false)
    expect(areNotesDue(contextOf(...before, ...chatter(8)))).toBe(true)
  })

  it("S004-F04 what no guard has judged is not noted", () => {
    const guard: NewEvent = {
      type: "SetGuardEvent",
      guard: { provider: "scripted", name: "guard", instructions: null }
    }
    const safe: NewEvent = {
      type: "GuardVerdictEvent",
      isFlagged: false,
      reason: "",
      content: "SAFE",
      messages: 10,
      runId: runA,
      model: "scripted:guard",
      usage: { inputTokens: 1, outputTokens: 1 }
    }
    expect(areNotesDue(contextOf(keeps, guard, ...chatter(9), ...turn))).toBe(false)
    expect(areNotesDue(contextOf(keeps, guard, ...chatter(9), ...turn, safe))).toBe(true)
  })

  it("S004-F04 notes that fail leave those before, and are told from where those end", () => {
    const { messages, notes, run } = contextOf(
      keeps,
      ...chatter(6),
      ...turn,
      noted(8),
      ...chatter(8),
      noted(16, null)
    )
    expect(notes).toMatchObject({ told: 8, tried: 16 })
    expect(notes.content).toMatchObject({ value: "So far." })
    expect(run.usage).toEqual({ inputTokens: 3 + 2 + 2, outputTokens: 2 + 3 + 3 })
    // The notes are for others: the model of this context is not shown them.
    expect(JSON.stringify(messages)).not.toContain("So far.")
  })
})
