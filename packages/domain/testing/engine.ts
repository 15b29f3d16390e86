/**
 * A small engine on a log in memory: it does what the decider says, and dice say what comes from outside.
 *
 * It writes what the server's actor writes, as the server writes it; people
 * speak, models answer, tools fail, workers die and clocks run out as the dice
 * fall.
 */
import { Arbitrary, Option, Schema } from "effect"
import { contextEventId, decodeEvent, type NewEvent } from "../src/context-event.ts"
import { fold } from "../src/context.ts"
import { type Decision, decide } from "../src/decide.ts"
import { answers, asks, contextName, mentions, noonMs, runA } from "./log.ts"
import { emptyContext, type ReducedContext } from "../src/reduced-context.ts"
import type { KeptEvent } from "../src/replay.ts"

const maxSteps = 4

/** Anything that somebody outside does, before the actor acts on what it knew. */
const outside = (die: number, context: ReducedContext): ReadonlyArray<NewEvent> => {
  switch (die) {
    case 0:
      return [asks("question")]
    case 1:
      return [mentions("remark")]
    case 2:
      return [{ type: "SetTimeoutEvent", timeoutMs: 1_000 }]
    case 3:
      return Option.isSome(context.agentTurnStartedAtEventId)
        ? [{ type: "InterruptRequestedEvent", by: "admin" }]
        : [asks("another")]
    default:
      return []
  }
}

/** How the actor does what was decided, as a die falls. */
const acted = (decision: Decision, context: ReducedContext, die: number): ReadonlyArray<NewEvent> => {
  const turnNumber = context.currentTurnNumber
  switch (decision.type) {
    case "startTurn":
      return [{ type: "AgentTurnStartedEvent", turnNumber: decision.turnNumber }]
    case "interruptTurn":
      return [
        { type: "AgentTurnInterruptedEvent", turnNumber, reason: decision.reason, partialText: "so f" },
        ...(decision.reason === "crash"
          ? [
              { type: "SessionEndedEvent", reason: "crash" } as const,
              { type: "SessionStartedEvent" } as const
            ]
          : [])
      ]
    case "requestModel":
      return die === 0
        ? closed(context, { type: "AgentTurnFailedEvent", turnNumber, error: "away" })
        : [answers("word", decision.withTools ? callIds(context, die % 3) : [])]
    case "callTool": {
      const { arguments: args, id: callId, name: tool } = decision.call
      const started = { type: "ToolCallStartedEvent", callId, tool, arguments: args } as const
      if (die === 0) return [{ ...started, waitsFor: "run" }]
      return [
        started,
        die % 2 === 0
          ? { type: "ToolCallFailedEvent", callId, tool, error: "no" }
          : { type: "ToolCallCompletedEvent", callId, tool, result: { of: callId } }
      ]
    }
    case "refuseTool":
      return [
        { type: "ToolCallFailedEvent", callId: decision.call.id, tool: decision.call.name, error: "refused" }
      ]
    case "wait": {
      const [call] = context.pendingCalls
      return call
        ? [{ type: "ToolCallCompletedEvent", callId: call.id, tool: call.name, result: "done" }]
        : []
    }
    case "softStop":
      return [{ type: "SoftStopEvent", reason: decision.reason, runId: runA, content: "Stop." }]
    case "warn":
      return [{ type: "LoopWarningEvent", reason: decision.reason, content: "Circles." }]
    case "goOn":
      return [{ type: "ContinuationRequestedEvent", content: "Go on." }]
    case "pause":
      return closed(context, { type: "AgentTurnInterruptedEvent", turnNumber, reason: decision.reason })
    case "fail":
      return closed(context, { type: "AgentTurnFailedEvent", turnNumber, error: "doom" })
    case "completeTurn":
      return [{ type: "AgentTurnCompletedEvent", turnNumber, durationMs: die }]
    case "finish":
      return closed(context, { type: "AgentTurnCompletedEvent", turnNumber, durationMs: die })
    case "startStep":
    case "summarize":
    case "takeNotes":
    case "debounce":
      return []
  }
}

/** The end of all that is open. */
const closed = (context: ReducedContext, turnEnd: NewEvent): ReadonlyArray<NewEvent> => [
  ...context.pendingCalls.map(({ id, name }): NewEvent => ({
    type: "ToolCallFailedEvent",
    callId: id,
    tool: name,
    error: "ended"
  })),
  ...(Option.isSome(context.agentTurnStartedAtEventId) ? [turnEnd] : []),
  { type: "SessionEndedEvent" }
]

const callIds = (context: ReducedContext, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `c${context.nextEventNumber}-${index}`)

/** The log that comes of a fall of dice. */
export const engineLog = (
  dice: ReadonlyArray<readonly [number, number, boolean]>
): ReadonlyArray<KeptEvent> => {
  const log: Array<KeptEvent> = []
  let context = emptyContext
  const write = (events: ReadonlyArray<NewEvent>) => {
    for (const { triggersAgentTurn = false, parentEventId: _parent, ...payload } of events) {
      const parent = Option.orElse(context.agentTurnStartedAtEventId, () => context.lastEventId)
      const kept: KeptEvent = {
        ...payload,
        id: contextEventId(contextName, log.length + 1),
        timestamp: new Date(noonMs + log.length * 1_000).toISOString(),
        agentName: contextName,
        parentEventId: Option.getOrNull(parent),
        triggersAgentTurn
      }
      log.push(kept)
      context = fold([decodeEvent(kept)], context)
    }
  }
  write([asks("first")])
  let own: number | undefined
  for (const [out, die, isCrash] of dice) {
    if (!context.isSessionOpen) {
      if (!context.isTurnDue) write([asks("more")])
      write([{ type: "SessionStartedEvent" }])
    }
    const seen = context
    const decision = decide({
      context: seen,
      runId: runA,
      ownTurnNumber: isCrash ? undefined : own,
      maxSteps,
      isTimeUp: die === 9 && out === 9,
      isGraceOver: die === 8
    })
    if (decision.type === "startTurn") own = decision.turnNumber
    const events = acted(decision, seen, die)
    // Whoever ends its run looks at the log once more; all else may come behind what was said meanwhile.
    if (!events.some(({ type }) => type === "SessionEndedEvent")) write(outside(out, seen))
    write(events)
  }
  return log
}

const die = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 9 }))

/** Any log that the engine writes. */
export const anyEngineLog = Arbitrary.array(Arbitrary.schema(Schema.Tuple([die, die, Schema.Boolean])), {
  maxLength: 80
}).pipe(
  Arbitrary.map((dice) =>
    // A worker dies seldom, else no turn comes to its end.
    engineLog(dice.map(([out, act, isCrash], index) => [out, act, isCrash && index % 7 === 0] as const))
  )
)
