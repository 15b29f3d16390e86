/**
 * Whole runs of flows by the decider: limits, waits, loops and warnings, with a crash after any event.
 *
 * What the model answers, and when the time is up, follows from the steps that
 * the log tells, so a run that is taken over has to come to the same words. Runs
 * in which people speak are in `decide-run.test.ts`.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Option, Schema } from "effect"
import type { LoggedEvent, NewEvent } from "./context-event.ts"
import { fold, type ReducedContext } from "./context.ts"
import { decide, type Decision } from "./decide.ts"
import { exitLoopTool, type FlowPlan } from "./flow.ts"
import {
  append,
  findUnpaired,
  logOf,
  mentions,
  runA,
  turnBreaks,
  turnCompletes,
  turnStarts
} from "../testing/log.ts"
import type { ToolCall } from "./message.ts"

/** A call that works, one that is always the same, one that fails as the others do, and those whose outcome others bring. */
const kinds = ["work", "same", "fail", "person", "run", "exit"] as const
type Kind = (typeof kinds)[number]

interface Story {
  readonly flow: FlowPlan | undefined
  /** What the n-th answer asks for; answers beyond the list ask for nothing. */
  readonly calls: ReadonlyArray<ReadonlyArray<Kind>>
  readonly maxSteps: number | null
  /** Steps after which the time is up. */
  readonly timeUpAfter: number | null
  readonly isGraceOver: boolean
  /** Whether it makes the same call wherever it would make another that works or fails. */
  readonly isStubborn: boolean
}

type End = "pause" | "finish" | "fail"

const callsOf = ({ calls, flow, isStubborn }: Story, step: number): ReadonlyArray<ToolCall> =>
  (calls[step] ?? []).map((kind, index) => {
    const id = `c${step + 1}.${index + 1}`
    const known = kind === "exit" && flow === undefined ? "work" : kind
    const offered = isStubborn && (known === "work" || known === "fail") ? "same" : known
    return {
      id,
      name: offered === "exit" ? exitLoopTool : offered,
      arguments: offered === "same" ? {} : { id }
    }
  })

const answer = (story: Story, { run }: ReducedContext): NewEvent => ({
  type: "AssistantMessageEvent",
  content: run.steps % 2 === 0 ? `Answer ${run.steps + 1}.` : "",
  toolCalls: callsOf(story, run.steps),
  runId: runA,
  model: "m",
  usage: { inputTokens: 1, outputTokens: 1 }
})

const starts = ({ arguments: args, id, name }: ToolCall): NewEvent => ({
  type: "ToolCallStartedEvent",
  callId: id,
  tool: name,
  arguments: args,
  ...(name === "person" || name === "run" ? { waitsFor: name } : {})
})

const ends = ({ id, name }: ToolCall): NewEvent =>
  name === "fail"
    ? { type: "ToolCallFailedEvent", callId: id, tool: name, error: { error: "No." } }
    : { type: "ToolCallCompletedEvent", callId: id, tool: name, result: { output: `of ${id}` } }

const isWaiting = ({ name }: ToolCall): boolean => name === "person" || name === "run"

/** What the actor appends for a decision; nothing where the run has come to an end. */
const perform = (
  story: Story,
  context: ReducedContext,
  decision: Decision
): ReadonlyArray<NewEvent> | End => {
  switch (decision.type) {
    case "startTurn":
      return [turnStarts(decision.turnNumber)]
    case "interruptTurn":
      return [turnBreaks(decision.turnNumber, decision.reason)]
    case "debounce":
      return expect.unreachable("A run's own context gathers no triggers")
    case "startStep": {
      const outputs = Option.match(context.flow, { onNone: () => ({}), onSome: ({ outputs }) => outputs })
      const content = `${decision.place.step} ${decision.place.iteration} ${JSON.stringify(outputs)}`
      return [{ type: "FlowStepStartedEvent", ...decision.place, content, triggersAgentTurn: true }]
    }
    case "goOn":
      return expect.unreachable("Every answer here is whole")
    case "takeNotes":
    case "summarize":
      return expect.unreachable("A run's own context lets go of messages without a summary")
    case "requestModel":
      expect(findUnpaired(context.messages)).toBeUndefined()
      return [answer(story, context)]
    case "callTool":
      return isWaiting(decision.call) ? [starts(decision.call)] : [starts(decision.call), ends(decision.call)]
    case "refuseTool":
      return [
        {
          type: "ToolCallFailedEvent",
          callId: decision.call.id,
          tool: decision.call.name,
          error: { error: "Refused.", reason: decision.reason }
        }
      ]
    case "wait":
      // All whom the run waits for come back, the last asked first.
      expect(context.pendingCalls.map(({ name }) => name)).toContain(decision.for)
      return context.pendingCalls.toReversed().map(ends)
    case "softStop":
      return [{ type: "SoftStopEvent", reason: decision.reason, runId: runA, content: "Stop." }]
    case "warn":
      return [{ type: "LoopWarningEvent", reason: decision.reason, content: "Look." }]
    case "completeTurn":
      return [turnCompletes(context.currentTurnNumber)]
    case "pause":
    case "finish":
    case "fail":
      return decision.type
  }
}

const maxEvents = 600

const drive = (story: Story, start: ReadonlyArray<LoggedEvent>) => {
  let log = start
  let ownTurnNumber: number | undefined
  while (log.length < start.length + maxEvents) {
    const context = fold(log)
    const { steps } = context.run
    const decision = decide({
      context,
      runId: runA,
      ownTurnNumber,
      maxSteps: story.maxSteps,
      flow: story.flow,
      isTimeUp: story.timeUpAfter !== null && steps >= story.timeUpAfter,
      isGraceOver: story.isGraceOver,
      mayRepeat: (tool) => isWaiting({ id: "", name: tool, arguments: {} })
    })
    const done = perform(story, context, decision)
    if (typeof done === "string") return { log, end: done }
    log = append(log, ...done)
    if (decision.type === "startTurn") ownTurnNumber = decision.turnNumber
  }
  return expect.unreachable(
    `The run did not end: ${log
      .slice(-6)
      .map(({ type }) => type)
      .join(", ")}`
  )
}

const small = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))
const maybe = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum, maximum }))))

const anyStory: Arbitrary.Arbitrary<Story> = Arbitrary.all({
  steps: small(0, 3),
  maxIterations: small(1, 3),
  calls: Arbitrary.array(Arbitrary.array(Arbitrary.schema(Schema.Literals(kinds)), { maxLength: 3 }), {
    maxLength: 7
  }),
  maxSteps: maybe(1, 6),
  timeUpAfter: maybe(0, 6),
  isGraceOver: Arbitrary.schema(Schema.Boolean),
  isStubborn: Arbitrary.schema(Schema.Boolean)
}).pipe(
  Arbitrary.map(({ maxIterations, steps, ...story }) => ({
    ...story,
    flow:
      steps === 0
        ? undefined
        : { steps: Array.from({ length: steps }, (_, index) => `s${index + 1}`), maxIterations }
  }))
)

const startOf = ({ flow }: Story): ReadonlyArray<LoggedEvent> =>
  flow === undefined
    ? logOf({ type: "UserMessageEvent", content: "Work.", triggersAgentTurn: true })
    : logOf(mentions("Work."))

const ofType = <T extends LoggedEvent["type"]>(log: ReadonlyArray<LoggedEvent>, type: T) =>
  log.filter((event): event is Extract<LoggedEvent, { readonly type: T }> => event.type === type)

/** All that a log tells of its run, but for when it was asked to stop. */
const toldOf = (log: ReadonlyArray<LoggedEvent>) => {
  const { flow, lastText, messages, run } = fold(log)
  return {
    flow,
    lastText,
    messages,
    run: { ...run, softStop: Option.map(run.softStop, ({ reason, steps }) => ({ reason, steps })) }
  }
}

describe("a whole run of a flow", () => {
  it.prop(
    "ends within its limits, each step in its place, each call with one outcome",
    [anyStory],
    ([story]) => {
      const { end, log } = drive(story, startOf(story))
      const context = fold(log)
      const answers = ofType(log, "AssistantMessageEvent").length
      if (story.maxSteps !== null) expect(answers).toBeLessThanOrEqual(story.maxSteps + 1)
      if (story.timeUpAfter !== null) expect(answers).toBeLessThanOrEqual(story.timeUpAfter + 1)
      expect(ofType(log, "SoftStopEvent").length).toBe(end === "pause" ? 1 : 0)
      const outcomes = [...ofType(log, "ToolCallCompletedEvent"), ...ofType(log, "ToolCallFailedEvent")]
      expect(new Set(outcomes.map(({ callId }) => callId)).size).toBe(outcomes.length)
      const places = ofType(log, "FlowStepStartedEvent").map(({ iteration, step }) => `${step} ${iteration}`)
      const { maxIterations = 0, steps = [] } = story.flow ?? {}
      const all = Array.from({ length: maxIterations }, (_, round) =>
        steps.map((step) => `${step} ${round + 1}`)
      )
      expect(places).toEqual(all.flat().slice(0, places.length))
      if (end === "fail") return
      expect(context.pendingCalls).toEqual([])
      expect(findUnpaired(context.messages)).toBeUndefined()
      const isExited = Option.exists(context.flow, (flow) => flow.isExited)
      if (end === "finish" && !isExited) expect(places).toEqual(all.flat())
    }
  )

  it.prop(
    "never makes the same call three times in one turn, and fails only for five",
    [anyStory],
    ([story]) => {
      const { end, log } = drive(story, startOf(story))
      let made = 0
      let asked = 0
      let most = 0
      for (const event of log) {
        if (event.type === "AgentTurnStartedEvent") [made, asked] = [0, 0]
        const tool = "tool" in event ? event.tool : ""
        const isMade = event.type === "ToolCallStartedEvent"
        if (isMade && tool !== "same") [made, asked] = [0, 0]
        if (tool === "same" && event.type !== "ToolCallCompletedEvent") {
          if (isMade) made += 1
          asked += 1
          most = Math.max(most, asked)
        }
        expect(made).toBeLessThan(3)
      }
      if (end === "fail") expect(most).toBe(4)
    }
  )

  it.prop(
    "that crashes after any event ends as the run that did not crash, saying the same",
    [anyStory],
    ([story]) => {
      const start = startOf(story)
      const whole = drive(story, start)
      for (let length = start.length; length <= whole.log.length; length++) {
        const taken = drive(story, whole.log.slice(0, length))
        expect(taken.end).toBe(whole.end)
        expect(toldOf(taken.log)).toStrictEqual(toldOf(whole.log))
      }
    },
    { arbitrary: { runs: 60 } }
  )
})
