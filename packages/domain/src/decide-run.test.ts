/**
 * Whole runs by the decider, interrupted by people and by crashes.
 *
 * The driver does what `server/run` does, without a database: it asks `decide`,
 * performs, appends. A crash is a prefix of the log given to a new attempt that
 * has opened no turn.
 */
import { describe, expect, it } from "@effect/vitest"
import { Arbitrary, Option, Schema } from "effect"
import type { LoggedEvent, NewEvent } from "./context-event.ts"
import { fold } from "./context.ts"
import { decide, type Decision } from "./decide.ts"
import {
  answers,
  append,
  asks,
  findUnpaired,
  logOf,
  mentions,
  runA,
  softStops,
  toolCompletes,
  toolFails,
  toolStarts,
  turnBreaks,
  turnCompletes,
  turnStarts
} from "../testing/log.ts"

/** What somebody says, how many events after the attempt began, and whether it triggers a turn. */
interface Remark {
  readonly after: number
  readonly triggers: boolean
}

interface Story {
  /** How many tools the n-th answer asks for; answers beyond the list ask for none. */
  readonly calls: ReadonlyArray<number>
  readonly maxSteps: number
  readonly remarks: ReadonlyArray<Remark>
  /** Whether a trigger aborts the model request that is under way, or its answer comes first. */
  readonly interrupts: boolean
}

const maxEvents = 400

/** Goes on with a log until the run ends; answers its log and its last decision. */
const drive = (
  story: Story,
  start: ReadonlyArray<LoggedEvent>
): { readonly log: ReadonlyArray<LoggedEvent>; readonly end: "pause" | "finish" } => {
  let log = start
  let ownTurnNumber: number | undefined
  const waiting = [...story.remarks]
  /** What others append before the attempt's own next event is appended. */
  const listen = (): boolean => {
    let isTriggered = false
    while ((waiting[0]?.after ?? Infinity) <= log.length - start.length) {
      const remark = waiting.shift()
      isTriggered ||= remark?.triggers ?? false
      log = append(log, remark?.triggers ? asks(`remark ${log.length}`) : mentions(`remark ${log.length}`))
    }
    return isTriggered
  }
  while (log.length < start.length + maxEvents) {
    const context = fold(log)
    const decision = decide({ context, runId: runA, ownTurnNumber, maxSteps: story.maxSteps })
    switch (decision.type) {
      case "pause":
        if (ownTurnNumber === undefined) return { log, end: "pause" }
        return { log: append(log, turnBreaks(ownTurnNumber, "stepLimit")), end: "pause" }
      case "finish":
        return { log, end: "finish" }
      case "requestModel": {
        expect(findUnpaired(context.messages)).toBeUndefined()
        expect(context.heldMessages.filter((message) => message.role === "system")).toEqual([])
        const isInterrupted = listen() && story.interrupts
        const answer = answers(`answer ${context.run.steps + 1}`, callIds(story, context.run.steps))
        log = append(log, isInterrupted ? turnBreaks(context.currentTurnNumber, "message") : answer)
        break
      }
      case "startStep":
      case "takeNotes":
      case "summarize":
      case "debounce":
      case "wait":
      case "warn":
      case "goOn":
      case "fail":
        return expect.unreachable(`A single flow of different calls does not ${decision.type}`)
      default:
        listen()
        log = append(log, ...perform(decision, context.currentTurnNumber))
        if (decision.type === "startTurn") ownTurnNumber = decision.turnNumber
    }
  }
  return expect.unreachable(
    `The run did not end: ${log
      .slice(-6)
      .map((event) => event.type)
      .join(", ")}`
  )
}

const callIds = (story: Story, step: number) =>
  Array.from({ length: story.calls[step] ?? 0 }, (_, index) => `c${step + 1}.${index + 1}`)

const perform = (
  decision: Exclude<
    Decision,
    {
      type:
        | "pause"
        | "finish"
        | "requestModel"
        | "summarize"
        | "takeNotes"
        | "startStep"
        | "debounce"
        | "wait"
        | "warn"
        | "goOn"
        | "fail"
    }
  >,
  turnNumber: number
): ReadonlyArray<NewEvent> => {
  switch (decision.type) {
    case "startTurn":
      return [turnStarts(decision.turnNumber)]
    case "interruptTurn":
      return [turnBreaks(decision.turnNumber, decision.reason)]
    case "callTool":
      return [toolStarts(decision.call.id), toolCompletes(decision.call.id)]
    case "refuseTool":
      return [toolFails(decision.call.id, decision.reason)]
    case "softStop":
      return [softStops]
    case "completeTurn":
      return [turnCompletes(turnNumber)]
  }
}

const small = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))

const anyStory: Arbitrary.Arbitrary<Story> = Arbitrary.all({
  calls: Arbitrary.array(small(0, 3), { maxLength: 5 }),
  maxSteps: small(1, 4),
  remarks: Arbitrary.array(
    Arbitrary.all({ after: small(0, 20), triggers: Arbitrary.schema(Schema.Boolean) }),
    { maxLength: 4 }
  ).pipe(Arbitrary.map((remarks) => remarks.toSorted((a, b) => a.after - b.after))),
  interrupts: Arbitrary.schema(Schema.Boolean)
})

const start = logOf(
  { type: "SessionStartedEvent" },
  { type: "SystemPromptEvent", content: "Be brief." },
  asks("Look")
)

/** What a log tells of its run; when it was asked to stop depends on how long it took. */
const toldOf = (log: ReadonlyArray<LoggedEvent>) => {
  const { run } = fold(log)
  return { ...run, softStop: Option.map(run.softStop, ({ reason, steps }) => ({ reason, steps })) }
}

const ofType = (log: ReadonlyArray<LoggedEvent>, type: LoggedEvent["type"]) =>
  log.filter((event) => event.type === type)

describe("a whole run", () => {
  it.prop(
    "ends, within its steps, with every call paired and every question answered",
    [anyStory],
    ([story]) => {
      const { log, end } = drive(story, start)
      const context = fold(log)
      expect(ofType(log, "AssistantMessageEvent").length).toBeLessThanOrEqual(story.maxSteps + 1)
      expect(context.pendingCalls).toEqual([])
      expect(findUnpaired(context.messages)).toBeUndefined()
      const lastQuestion = log.findLastIndex((event) => event.triggersAgentTurn)
      if (end === "finish") {
        expect(context.heldMessages).toEqual([])
        expect(ofType(log.slice(lastQuestion), "AgentTurnStartedEvent")).not.toEqual([])
        expect(log.findLastIndex((event) => event.type === "AssistantMessageEvent")).toBeGreaterThan(
          lastQuestion
        )
      }
    },
    { arbitrary: { runs: 200 } }
  )

  it.prop("numbers its turns 1, 2, 3 … and opens none while one is open", [anyStory], ([story]) => {
    const turns = drive(story, start).log.filter((event) => event.type.startsWith("AgentTurn"))
    const starts = turns.filter((_, index) => index % 2 === 0)
    expect(
      starts.map((event) =>
        event.type === "AgentTurnStartedEvent" && "turnNumber" in event ? event.turnNumber : event.type
      )
    ).toEqual(starts.map((_, index) => index + 1))
    expect(ofType(turns, "AgentTurnStartedEvent")).toHaveLength(starts.length)
  })

  it.prop(
    "that crashes after any event ends as the run that did not crash, saying the same",
    [anyStory],
    ([story]) => {
      const quiet = { ...story, remarks: [] }
      const whole = drive(quiet, start)
      for (let length = start.length; length <= whole.log.length; length++) {
        const taken = drive(quiet, whole.log.slice(0, length))
        expect(taken.end).toBe(whole.end)
        expect(fold(taken.log).messages).toStrictEqual(fold(whole.log).messages)
        expect(toldOf(taken.log)).toStrictEqual(toldOf(whole.log))
      }
    }
  )

  it.prop(
    "that crashes after any event of any story ends, and no recorded outcome is sought again",
    [anyStory, anyStory],
    ([story, later]) => {
      const { log } = drive(story, start)
      for (let length = start.length; length <= log.length; length++) {
        const taken = drive(
          { ...later, calls: story.calls, maxSteps: story.maxSteps },
          log.slice(0, length)
        ).log
        const outcomes = taken.filter(
          (event) => event.type === "ToolCallCompletedEvent" || event.type === "ToolCallFailedEvent"
        )
        const calls = outcomes.map((event) => ("callId" in event ? event.callId : ""))
        expect(new Set(calls).size).toBe(calls.length)
        expect(findUnpaired(fold(taken).messages)).toBeUndefined()
      }
    },
    { arbitrary: { runs: 60 } }
  )
})
