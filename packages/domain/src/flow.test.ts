/**
 * Plans of flows, and how far a log says that one has come.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Option, Schema } from "effect"
import type { NewEvent } from "./context-event.ts"
import { decide, type Decision } from "./decide.ts"
import { fold } from "./context.ts"
import {
  defineFlowStep,
  flowBounds,
  type FlowPlace,
  type FlowPlan,
  type FlowProgress,
  FlowStepInput,
  nextPlace,
  planOf,
  promptStep
} from "./flow.ts"
import {
  answers,
  append,
  logOf,
  mentions,
  runA,
  toolCompletes,
  turnBreaks,
  turnCompletes,
  turnStarts
} from "../testing/log.ts"

const steps = (...names: ReadonlyArray<string>) =>
  names.map((name) => defineFlowStep({ name, prompt: `Do ${name}.` }))

describe("the plan of a definition", () => {
  it.each([
    ["a single flow", "single", steps(), null, undefined],
    ["a sequence", "sequential", steps("a", "b"), null, { steps: ["a", "b"], maxIterations: 1 }],
    ["a loop", "loop", steps("a"), 3, { steps: ["a"], maxIterations: 3 }],
    ["a loop of the prompt", "loop", steps(), 2, { steps: [promptStep], maxIterations: 2 }],
    [
      "a loop that says nothing of iterations",
      "loop",
      steps("a"),
      null,
      { steps: ["a"], maxIterations: flowBounds.defaultIterations }
    ],
    [
      "a sequence of an earlier version",
      "sequential",
      steps(),
      null,
      { steps: [promptStep], maxIterations: 1 }
    ]
  ] as const)("of %s", (_, flowType, kept, maxIterations, plan) => {
    expect(planOf({ flowType, steps: kept, maxIterations })).toEqual(plan)
  })
})

describe("a step as somebody sends it", () => {
  it.each(["review", "R2_d2", "a".repeat(50)])("may be named %s", (name) => {
    expect(Schema.is(FlowStepInput)({ name, prompt: "Go." })).toBe(true)
  })
  it.each(["", "2nd", "re-view", "a b", "a.b", "é", "a".repeat(51)])("may not be named %j", (name) => {
    expect(Schema.is(FlowStepInput)({ name, prompt: "Go." })).toBe(false)
  })
  it("needs a prompt, and takes null for what it leaves to the agent", () => {
    expect(Schema.is(FlowStepInput)({ name: "a", prompt: "" })).toBe(false)
    expect(Schema.is(FlowStepInput)({ name: "a", prompt: "Go.", tools: null, model: null })).toBe(true)
    expect(defineFlowStep({ name: "a", prompt: "Go." })).toEqual({
      name: "a",
      prompt: "Go.",
      tools: null,
      model: null
    })
  })
})

const at = (place: FlowPlace, isExited = false): Option.Option<FlowProgress> =>
  Option.some({ ...place, outputs: {}, text: "", isExited })

/** All places of a plan in the order in which they come. */
const walk = (plan: FlowPlan): ReadonlyArray<FlowPlace> => {
  const places: Array<FlowPlace> = []
  let next = nextPlace(plan, Option.none())
  while (next !== undefined && places.length <= 200) {
    places.push(next)
    next = nextPlace(plan, at(next))
  }
  return places
}

const small = (maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum })))
const anyPlan: Arbitrary.Arbitrary<FlowPlan> = Arbitrary.all({
  count: small(6),
  maxIterations: small(6)
}).pipe(
  Arbitrary.map(({ count, maxIterations }) => ({
    steps: Array.from({ length: count }, (_, index) => `s${index}`),
    maxIterations
  }))
)

describe("the next place", () => {
  it.prop("visits each step of each iteration once, in order", [anyPlan], ([plan]) => {
    const expected = Array.from({ length: plan.maxIterations }, (_, round) =>
      plan.steps.map((step, index) => ({ step, index, iteration: round + 1 }))
    )
    expect(walk(plan)).toEqual(expected.flat())
  })
  it("S002-R07 is none once the agent has ended its loop, wherever it stands", () => {
    const plan = { steps: ["a", "b"], maxIterations: 5 }
    expect(nextPlace(plan, at({ step: "a", index: 0, iteration: 2 }, true))).toBeUndefined()
    expect(nextPlace(plan, at({ step: "b", index: 1, iteration: 2 }, true))).toBeUndefined()
  })
})

describe("how far a flow has come", () => {
  const begins = (step: string, index: number, iteration: number): NewEvent => ({
    type: "FlowStepStartedEvent",
    step,
    index,
    iteration,
    content: `Do ${step}.`,
    triggersAgentTurn: true
  })
  const exits = (callId: string, result: Schema.Json): NewEvent => ({
    type: "ToolCallCompletedEvent",
    callId,
    tool: "exit_loop",
    result
  })
  const flow: FlowPlan = { steps: ["a", "b"], maxIterations: 3 }
  const first = logOf(mentions("The task."), begins("a", 0, 1), turnStarts(1))
  const second = append(first, answers("A said."), turnCompletes(1), begins("b", 1, 1), turnStarts(2))
  const next = (log: typeof first, turn: number): Decision =>
    decide({ context: fold(log), runId: runA, ownTurnNumber: turn, maxSteps: null, flow })
  const progressOf = (log: typeof first) => Option.getOrThrow(fold(log).flow)

  it("S002-R06 the output of a step is what it said last, and the next step follows its turn", () => {
    const answered = append(first, answers("Thinking.", ["c1"]), toolCompletes("c1"), answers("A said."))
    expect(next(answered, 1)).toEqual({ type: "completeTurn", text: "A said." })
    const through = append(answered, turnCompletes(1))
    expect(progressOf(through).outputs).toEqual({ a: "A said." })
    expect(next(through, 1)).toEqual({ type: "startStep", place: { step: "b", index: 1, iteration: 1 } })
    expect(next(append(through, begins("b", 1, 1)), 1)).toEqual({ type: "startTurn", turnNumber: 2 })
  })

  it("a step that says nothing has no output of an earlier one", () => {
    const through = append(second, answers(""), turnCompletes(2))
    expect(progressOf(through).outputs).toEqual({ a: "A said.", b: "" })
  })

  it("an iteration replaces the outputs of the one before, and keeps those of steps still to come", () => {
    const again = append(second, answers("B said."), turnCompletes(2), begins("a", 0, 2), turnStarts(3))
    expect(progressOf(again).outputs).toEqual({ a: "A said.", b: "B said." })
    expect(progressOf(append(again, answers("A anew."), turnCompletes(3))).outputs).toEqual({
      a: "A anew.",
      b: "B said."
    })
  })

  it("the model reads the step's prompt where the step begins", () => {
    expect(fold(second).messages.map(({ role }) => role)).toEqual(["user", "user", "assistant", "user"])
    expect(fold(second).messages.at(-1)).toEqual({ role: "user", content: "Do b." })
  })

  it("a turn that a crash broke off goes on in the same step", () => {
    const broken = append(second, turnBreaks(2, "crash"), turnStarts(3))
    expect(next(broken, 3)).toEqual({ type: "requestModel", withTools: true })
    expect(progressOf(broken)).toMatchObject({ step: "b", outputs: { a: "A said." } })
    const through = append(broken, answers("B said."), turnCompletes(3))
    expect(next(through, 3)).toEqual({ type: "startStep", place: { step: "a", index: 0, iteration: 2 } })
  })

  it("a crash between two steps leads to the next one, once", () => {
    const between = append(first, answers("A said."), turnCompletes(1))
    const place = { step: "b", index: 1, iteration: 1 }
    expect(
      decide({ context: fold(between), runId: runA, ownTurnNumber: undefined, maxSteps: null, flow })
    ).toEqual({
      type: "startStep",
      place
    })
    expect(
      decide({
        context: fold(append(between, begins("b", 1, 1))),
        runId: runA,
        ownTurnNumber: undefined,
        maxSteps: null,
        flow
      })
    ).toEqual({ type: "startTurn", turnNumber: 2 })
  })

  it("S002-R07 exit_loop ends the turn and the loop, and its output is the step's and the run's", () => {
    const exited = append(first, answers("Enough.", ["c1"]), exits("c1", { status: "ended", output: "42" }))
    expect(next(exited, 1)).toEqual({ type: "completeTurn", text: "42" })
    const through = append(exited, turnCompletes(1))
    expect(progressOf(through)).toMatchObject({ outputs: { a: "42" }, isExited: true })
    expect(next(through, 1)).toEqual({ type: "finish", text: "42" })
  })

  it("exit_loop without an output leaves what the step said last", () => {
    const exited = append(
      first,
      answers("Enough.", ["c1"]),
      exits("c1", { status: "ended" }),
      turnCompletes(1)
    )
    expect(progressOf(exited)).toMatchObject({ outputs: { a: "Enough." }, isExited: true })
    expect(next(exited, 1)).toEqual({ type: "finish", text: "Enough." })
  })

  it("calls beside exit_loop in one message are made before the turn ends", () => {
    const log = append(first, answers("", ["c1", "c2"]), exits("c1", { status: "ended", output: "42" }))
    expect(next(log, 1)).toMatchObject({ type: "callTool", call: { id: "c2" } })
  })

  it("a crash after exit_loop does not ask the model again", () => {
    const exited = append(
      first,
      answers("", ["c1"]),
      exits("c1", { status: "ended", output: "42" }),
      turnBreaks(1, "crash"),
      turnStarts(2)
    )
    expect(next(exited, 2)).toEqual({ type: "completeTurn", text: "42" })
  })

  it("an exit_loop that was refused ends nothing", () => {
    const log = append(first, answers("", ["c1"]), {
      type: "ToolCallFailedEvent",
      callId: "c1",
      tool: "exit_loop",
      error: { error: "no" }
    })
    expect(next(log, 1)).toEqual({ type: "requestModel", withTools: true })
  })

  it("the last step of the last iteration ends the run with what it said", () => {
    const end = append(logOf(begins("b", 1, 3), turnStarts(1)), answers("Done."), turnCompletes(1))
    expect(next(end, 1)).toEqual({ type: "finish", text: "Done." })
  })

  it("S002-R45 a run that is resumed goes on in the step in which it was paused", () => {
    const paused = append(second, answers("So far."), turnBreaks(2, "stepLimit"))
    expect(next(paused, 2)).toEqual({ type: "pause", reason: "stepLimit" })
    const resumed = append(
      paused,
      { type: "RunResumedEvent", by: "somebody", content: "Go on.", triggersAgentTurn: true },
      turnStarts(3)
    )
    expect(next(resumed, 3)).toEqual({ type: "requestModel", withTools: true })
    const through = append(resumed, answers("B said."), turnCompletes(3))
    expect(progressOf(through).outputs).toEqual({ a: "A said.", b: "B said." })
    expect(next(through, 3)).toMatchObject({ type: "startStep", place: { step: "a", iteration: 2 } })
  })
})
