/**
 * What the log says of a conversation's workflow: what begins it, what it is told, and what ends it.
 */
import { describe, expect, it } from "@effect/vitest"
import { Option } from "effect"
import { askedText } from "./context-flow.ts"
import type { ReducedContext } from "./context.ts"
import type { NewEvent } from "./context-event.ts"
import { decide, type Decision } from "./decide.ts"
import { flowBounds } from "./flow.ts"
import {
  answers,
  asks,
  contextOf,
  mentions,
  noonMs,
  runA,
  stepStarts,
  turnBreaks,
  turnCompletes,
  turnStarts,
  workflow
} from "../testing/log.ts"

const resumes: NewEvent = { type: "RunResumedEvent", by: "ada", content: "Go on.", triggersAgentTurn: true }

/** Long after everything was said. */
const debounce = { nowMs: noonMs + 3_600_000, quietMs: 100, maxWaitMs: 1_000 }

const next = (context: ReducedContext, ownTurnNumber?: number): Decision =>
  decide({ context, runId: runA, ownTurnNumber, maxSteps: null, debounce })

const firstStep = { type: "startStep", place: { step: "a", index: 0, iteration: 1 } }
const secondStep = { type: "startStep", place: { step: "b", index: 1, iteration: 1 } }

/** The first step's turn is through. */
const halfway = [
  workflow("a", "b"),
  asks("One"),
  stepStarts("a", 0),
  turnStarts(1),
  answers("A"),
  turnCompletes(1)
]
const through = [...halfway, stepStarts("b", 1), turnStarts(2), answers("B"), turnCompletes(2)]

describe("S004-F03 the workflow of a conversation", () => {
  it("begins with what somebody asks, and its steps' turns wait for nobody", () => {
    expect(next(contextOf(workflow("a", "b")))).toMatchObject({ type: "finish" })
    expect(next(contextOf(workflow("a", "b"), mentions("By the way")))).toMatchObject({ type: "finish" })
    const asked = contextOf(workflow("a", "b"), mentions("By the way"), asks("One"))
    expect(next(asked)).toEqual(firstStep)
    expect(askedText(asked)).toBe("By the way\n\nOne")
    const [soon, begun] = [{ ...debounce, nowMs: noonMs + 2_050 }, [workflow("a", "b"), asks("One")]]
    const input = { runId: runA, ownTurnNumber: undefined, maxSteps: null, debounce: soon }
    expect(decide({ ...input, context: contextOf(...begun) }).type).toBe("debounce")
    const atStep = { ...soon, nowMs: noonMs + 3_050 }
    const started = contextOf(...begun, stepStarts("a", 0))
    expect(decide({ ...input, debounce: atStep, context: started }).type).toBe("startTurn")
  })

  it("goes on step by step, with what was said before, and ends with the last", () => {
    const half = contextOf(...halfway)
    expect(next(half)).toEqual(secondStep)
    expect(Option.getOrThrow(half.flow).outputs).toEqual({ a: "A" })
    const done = contextOf(...through)
    expect(next(done)).toEqual({ type: "finish", text: "B" })
    expect([done.flow, done.workflow, done.asked]).toEqual([Option.none(), Option.none(), []])
  })

  it("begins anew for whoever speaks before it is through, and is told all of it", () => {
    const broken = contextOf(
      ...halfway,
      stepStarts("b", 1),
      turnStarts(2),
      asks("Two"),
      turnBreaks(2, "message")
    )
    expect(next(broken)).toEqual(firstStep)
    expect(askedText(broken)).toBe("One\n\nTwo")
    const between = contextOf(...halfway, asks("Two"))
    expect(next(between)).toEqual(firstStep)
    const again = contextOf(...halfway, asks("Two"), stepStarts("a", 0))
    expect(Option.getOrThrow(again.flow).outputs).toEqual({})
  })

  it("is told only what came since, when the last step was through as somebody spoke", () => {
    const late = contextOf(
      ...halfway,
      stepStarts("b", 1),
      turnStarts(2),
      answers("B"),
      asks("Two"),
      turnCompletes(2)
    )
    expect(next(late)).toEqual(firstStep)
    expect(askedText(late)).toBe("Two")
  })

  it("who speaks between a step and its turn breaks into that turn", () => {
    const spoken = contextOf(workflow("a", "b"), asks("One"), stepStarts("a", 0), asks("Two"), turnStarts(1))
    expect(next(spoken, 1)).toEqual({ type: "interruptTurn", turnNumber: 1, reason: "message" })
  })

  it("goes on at its step after a crash and after a limit, and not after a person's end", () => {
    const inStep = [...halfway, stepStarts("b", 1), turnStarts(2)]
    expect(next(contextOf(...inStep, turnBreaks(2, "crash"))).type).toBe("startTurn")
    expect(next(contextOf(...halfway, stepStarts("b", 1))).type).toBe("startTurn")
    const resumed = contextOf(...inStep, turnBreaks(2, "stepLimit"), resumes)
    expect(next(resumed).type).toBe("startTurn")
    expect(Option.getOrThrow(resumed.flow).step).toBe("b")
    const ended = contextOf(...halfway.slice(0, 4), turnBreaks(1, "user"))
    expect(next(ended).type).toBe("finish")
    expect(askedText(ended)).toBe("")
  })

  it("at work, it goes on as it began; the next message has the workflow that was set since", () => {
    const set = [...halfway, workflow("x")]
    expect(next(contextOf(...set))).toEqual(secondStep)
    expect(next(contextOf(...set, asks("Two")))).toMatchObject({ place: { step: "x" } })
    expect(next(contextOf(...halfway, workflow(), asks("Two"))).type).toBe("startTurn")
    const turn = contextOf(
      ...halfway,
      workflow(),
      asks("Two"),
      turnStarts(2),
      answers("Two"),
      turnCompletes(2)
    )
    expect(next(turn).type).toBe("finish")
  })

  it("is told the newest of very much", () => {
    const many = contextOf(
      ...Array.from({ length: flowBounds.maxInputMessages + 5 }, (_, n) => asks(`m${n}`))
    )
    expect(many.asked).toHaveLength(flowBounds.maxInputMessages)
    expect(askedText(many)).toMatch(/^m5\n\n/)
    const long = contextOf(asks("a".repeat(100_000)), asks("b".repeat(100_000)), asks("c".repeat(100_000)))
    expect(long.asked.map(({ content }) => content[0])).toEqual(["b", "c"])
  })
})
