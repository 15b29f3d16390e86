/**
 * When the same again is too much: by counting calls, and from a log, wherever it was cut.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import type { NewEvent } from "./context-event.ts"
import { decide, type Decision } from "./decide.ts"
import { fold } from "./context.ts"
import { append, asks, logOf, runA, turnBreaks, turnStarts } from "../testing/log.ts"
import {
  findLoopWarning,
  noRepetition,
  type Repetition,
  timesInARow,
  warned,
  withCall,
  withError
} from "./repetition.ts"

const call = (name: string, args: Schema.Json = {}, id = "c") => ({ id, name, arguments: args })

/** The state after calls with these names, each with an id of its own. */
const after = (...names: ReadonlyArray<string>): Repetition =>
  names.reduce((state, name, index) => withCall(state, call(name, {}, `c${index}`)), noRepetition)

const never = () => false

describe("S002-R33 two calls are the same", () => {
  it.each([
    [
      "whatever the order of their keys",
      { a: 1, b: [2, { c: 3, d: 4 }] },
      { b: [2, { d: 4, c: 3 }], a: 1 },
      2
    ],
    ["but not with another argument", { a: 1 }, { a: 2 }, 1],
    ["but not with one more", { a: 1 }, { a: 1, b: null }, 1],
    ["but not with another order of a list", { a: [1, 2] }, { a: [2, 1] }, 1],
    ["but not with a text for a number", { a: 1 }, { a: "1" }, 1],
    ["and minus nothing is nothing", { a: 0 }, { a: -0 }, 2]
  ] as const)("%s", (_, first, second, times) => {
    expect(timesInARow(withCall(noRepetition, call("get", first)), call("get", second))).toBe(times)
  })
  it("but not with another tool", () => {
    expect(timesInARow(after("get"), call("list"))).toBe(1)
  })
  it("S002-R38 a different call between them counts from 1 again", () => {
    expect(timesInARow(after("get", "get", "get", "list"), call("get"))).toBe(1)
    expect(timesInARow(after("get", "get", "get", "list"), call("list"))).toBe(2)
  })
})

describe("a warning", () => {
  it.each([
    ["a b a b", "cycle"],
    ["a b c a b c", "cycle"],
    ["a b c d a b c d", "cycle"],
    ["x a b a b", "cycle"],
    ["a b a", undefined],
    ["a b a c", undefined],
    ["a b c a c b", undefined],
    ["a b c d e a b c d e", undefined],
    ["a a a a", undefined]
  ])("of %s is %s", (names, warning) => {
    expect(findLoopWarning(after(...names.split(" ")), never)).toBe(warning)
  })

  const failing = (...errors: ReadonlyArray<Schema.Json | null>): Repetition =>
    errors.reduce<Repetition>((state, error, index) => {
      const made = withCall(state, call(`tool${index}`, {}, `c${index}`))
      return error === null ? made : withError(made, `c${index}`, error)
    }, noRepetition)

  it.each([
    [
      "three the same",
      [
        { error: "x", reason: "r" },
        { reason: "r", error: "x" },
        { error: "x", reason: "r" }
      ],
      "errorStreak"
    ],
    ["two", ["x", "x"], undefined],
    ["three, of which one is another", ["x", "y", "x"], undefined],
    ["three with a success between", ["x", null, "x", "x"], undefined],
    ["three after a success", [null, "x", "x", "x"], "errorStreak"]
  ] as const)("of errors: %s", (_, errors, warning) => {
    expect(findLoopWarning(failing(...errors), never)).toBe(warning)
  })

  it("is given once: the same must come again before it is given once more", () => {
    const told = warned(after("a", "b", "a", "b"))
    expect(findLoopWarning(told, never)).toBeUndefined()
    const again = ["a", "b", "a"].reduce((state, name) => withCall(state, call(name)), told)
    expect(findLoopWarning(again, never)).toBeUndefined()
    expect(findLoopWarning(withCall(again, call("b")), never)).toBe("cycle")
  })

  it("counts the calls in a row on beyond it", () => {
    expect(timesInARow(warned(after("a", "a")), call("a"))).toBe(3)
  })

  it("passes over tools that may be repeated", () => {
    expect(findLoopWarning(after("a", "poll", "a", "poll"), (name) => name === "poll")).toBeUndefined()
    expect(findLoopWarning(after("a", "poll", "b", "a", "b"), (name) => name === "poll")).toBe("cycle")
  })
})

/** A letter is a call of that tool; each is asked for in a message of its own. */
interface Played {
  /** What became of each call, in order. */
  readonly outcomes: ReadonlyArray<"made" | "refused">
  readonly warnings: ReadonlyArray<string>
  readonly isFailed: boolean
}

/** Plays calls through the decider; before each decision the worker dies if `dies` says so. */
const play = (
  names: ReadonlyArray<string>,
  dies: (events: number) => boolean,
  mayRepeat: (tool: string) => boolean = never
): Played => {
  let log = logOf(asks("Go"), turnStarts(1))
  let turn = 1
  const warnings: Array<string> = []
  const outcomes: Array<"made" | "refused"> = []
  const waiting = names.map((name, index) => ({ id: `c${index}`, name, arguments: { same: true } }))
  for (let round = 0; round < 200; round++) {
    if (dies(log.length)) {
      log = append(log, turnBreaks(turn, "crash"), turnStarts(turn + 1))
      turn += 1
    }
    const decision: Decision = decide({
      context: fold(log),
      runId: runA,
      ownTurnNumber: turn,
      maxSteps: null,
      mayRepeat
    })
    switch (decision.type) {
      case "requestModel": {
        const next = waiting.shift()
        if (!next) return { outcomes, warnings, isFailed: false }
        log = append(log, asking(next))
        break
      }
      case "callTool":
        outcomes.push("made")
        log = append(log, started(decision.call), completed(decision.call))
        break
      case "refuseTool":
        outcomes.push("refused")
        log = append(log, refusedEvent(decision.call))
        break
      case "warn":
        warnings.push(decision.reason)
        log = append(log, { type: "LoopWarningEvent", reason: decision.reason, content: "Look." })
        break
      case "fail":
        return { outcomes, warnings, isFailed: true }
      default:
        return expect.unreachable(decision.type)
    }
  }
  return expect.unreachable("It did not end")
}

interface Call {
  readonly id: string
  readonly name: string
  readonly arguments: Schema.Json
}
const asking = (...calls: ReadonlyArray<Call>): NewEvent => ({
  type: "AssistantMessageEvent",
  content: "",
  toolCalls: calls,
  runId: runA,
  model: "m",
  usage: { inputTokens: 0, outputTokens: 0 }
})
const started = ({ id, name, arguments: args }: Call): NewEvent => ({
  type: "ToolCallStartedEvent",
  callId: id,
  tool: name,
  arguments: args
})
const completed = ({ id, name }: Call): NewEvent => ({
  type: "ToolCallCompletedEvent",
  callId: id,
  tool: name,
  result: {}
})
const refusedEvent = ({ id, name }: Call): NewEvent => ({
  type: "ToolCallFailedEvent",
  callId: id,
  tool: name,
  error: { error: "Again?", reason: "doomLoop" }
})

const alive = () => false
const letters = (text: string) => text.split("")

describe("a doom loop", () => {
  it.each([
    ["aa", ["made", "made"], false],
    ["aaa", ["made", "made", "refused"], false],
    ["aaaa", ["made", "made", "refused", "refused"], false],
    ["aaaaa", ["made", "made", "refused", "refused"], true],
    ["aaabaa", ["made", "made", "refused", "made", "made", "made"], false],
    ["aaaabaaaa", ["made", "made", "refused", "refused", "made", "made", "made", "refused", "refused"], false]
  ])("S002-R33 S002-R35 S002-R38 %s", (names, outcomes, isFailed) => {
    expect(play(letters(names), alive)).toMatchObject({ outcomes, isFailed })
  })

  it("is judged in the order in which one message asks", () => {
    const calls = ["a", "a", "b", "a", "a", "a"].map((name, index) => ({
      id: `p${index}`,
      name,
      arguments: {}
    }))
    let log = logOf(asks("Go"), turnStarts(1))
    log = append(log, asking(...calls))
    const decisions: Array<string> = []
    for (const each of calls) {
      const decision = decide({ context: fold(log), runId: runA, ownTurnNumber: 1, maxSteps: null })
      decisions.push(decision.type)
      log = append(
        log,
        ...(decision.type === "callTool" ? [started(each), completed(each)] : [refusedEvent(each)])
      )
    }
    expect(decisions).toEqual(["callTool", "callTool", "callTool", "callTool", "callTool", "refuseTool"])
  })

  it("is none of a tool that may be repeated", () => {
    expect(play(letters("aaaaaaaaaa"), alive, (tool) => tool === "a")).toEqual({
      outcomes: Array.from({ length: 10 }, () => "made"),
      warnings: [],
      isFailed: false
    })
  })

  it("begins anew where somebody asks for a turn, and not where a worker died", () => {
    const twice = append(
      logOf(asks("Go"), turnStarts(1)),
      ...["c1", "c2"].flatMap((id) => {
        const each = { id, name: "a", arguments: {} }
        return [asking(each), started(each), completed(each)]
      })
    )
    expect(fold(append(twice, turnBreaks(1, "crash"), turnStarts(2))).repetition.count).toBe(2)
    expect(fold(append(twice, asks("Again"), turnBreaks(1, "message"), turnStarts(2))).repetition.count).toBe(
      0
    )
  })

  const anyLetter = Arbitrary.schema(Schema.Literals(["a", "b"]))
  const anyNames = Arbitrary.array(anyLetter, { maxLength: 14 })
  it.prop("never makes three of the same in a row, and fails at the fifth", [anyNames], ([names]) => {
    const { isFailed, outcomes } = play(names, alive)
    const runs = names.map((name, index) => {
      let length = 1
      while (names[index - length] === name) length++
      return length
    })
    expect(isFailed).toBe(runs.some((length) => length >= 5))
    expect(outcomes).toEqual(
      runs.slice(0, outcomes.length).map((length) => (length < 3 ? "made" : "refused"))
    )
  })
  it.prop(
    "S002-R33 comes to the same wherever a worker dies",
    [anyNames],
    ([names]) => {
      const whole = play(names, alive)
      const last = 4 * names.length + 4
      for (let at = 2; at < last; at++) {
        let isDead = false
        const once = (events: number) => !isDead && events >= at && (isDead = true)
        expect(play(names, once)).toEqual(whole)
      }
    },
    { arbitrary: { runs: 30 } }
  )
})
