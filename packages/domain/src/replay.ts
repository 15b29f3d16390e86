/**
 * A replay: whether a log is what the decider would have written, event by event.
 *
 * What came from outside is taken as it is: what people said, what a model and a
 * tool answered, wordings, times, and that a clock, a crash or a person ended
 * something. All else follows from the events before: ids, parents, turns, the
 * calls that are made, and that an event stands where it does. Each event is
 * written anew from that and compared byte by byte, as canonical JSON. No model,
 * no tool, no clock; a log is read in parts of any size.
 */
import { Option, Schema } from "effect"
import { fold } from "./context.ts"
import {
  ContextEvent,
  ContextEventId,
  contextEventId,
  decodeEvent,
  eventNumber,
  type LoggedEvent,
  UnknownEvent
} from "./context-event.ts"
import { decide } from "./decide.ts"
import { canonicalJson } from "./json.ts"
import { emptyContext, type ReducedContext } from "./reduced-context.ts"
import { derive, type Standpoint } from "./replay-rules.ts"

/** One event of a log as it is kept. */
export interface KeptEvent {
  readonly id: ContextEventId
  readonly type: string
  readonly [field: string]: unknown
}

/** The first event that is not what it should be. */
export const ReplayDifference = Schema.Struct({
  eventId: Schema.String,
  /** What is wrong, in a sentence. */
  detail: Schema.String,
  /** The event as it would have been written; null where none would have been. */
  expected: Schema.NullOr(Schema.Json),
  found: Schema.Json
}).annotate({ identifier: "ReplayDifference" })
export type ReplayDifference = typeof ReplayDifference.Type

export const Replay = Schema.Struct({
  events: Schema.Int,
  /** Those of them that the engine wrote, and nobody sent. */
  engineEvents: Schema.Int,
  isEqual: Schema.Boolean,
  firstDifference: Schema.optionalKey(ReplayDifference)
}).annotate({ identifier: "Replay" })
export type Replay = typeof Replay.Type

/** How far a replay has come; it does not grow with the log. */
export interface Replaying {
  readonly context: ReducedContext
  /** The states in which what comes next may have been decided: since the actor wrote last. */
  readonly states: ReadonlyArray<ReducedContext>
  /** Set between a fork and the end of what was open there: the turn that was. */
  readonly forkedTurn: Option.Option<ContextEventId>
  readonly events: number
  readonly engineEvents: number
  readonly firstDifference: ReplayDifference | undefined
}

export const beginReplay: Replaying = {
  context: emptyContext,
  states: [emptyContext],
  forkedTurn: Option.none(),
  events: 0,
  engineEvents: 0,
  firstDifference: undefined
}

/** Goes on with the next events of a log. */
export const replay = (from: Replaying, log: Iterable<KeptEvent>): Replaying => {
  let replaying = from
  for (const kept of log) replaying = replayEvent(replaying, kept)
  return replaying
}

export const replayOf = ({ engineEvents, events, firstDifference }: Replaying): Replay => ({
  events,
  engineEvents,
  isEqual: firstDifference === undefined,
  ...(firstDifference ? { firstDifference } : {})
})

/** More states than this are not remembered: who was silent for so long decides on the newest. */
const maxStates = 16

/** Events that somebody sends. */
const sent: ReadonlySet<string> = new Set([
  "UserMessageEvent",
  "SystemPromptEvent",
  "FileAttachmentEvent",
  "SetLlmConfigEvent",
  "SetTimeoutEvent",
  "SetRetryConfigEvent",
  "SetRacingEvent",
  "SetGuardEvent",
  "SetMemoryConfigEvent",
  "SetReducerEvent",
  "DefineToolEvent",
  "DefineWorkflowEvent"
])

/** Events that others than the actor write: what it had decided before may still come. */
const byOthers: ReadonlySet<string> = new Set([
  ...sent,
  "ComparisonStartedEvent",
  "ContextForkedEvent",
  "HistoryGivenEvent",
  "MemoryRecalledEvent",
  "InterruptRequestedEvent",
  "RunResumedEvent"
])

const replayEvent = (from: Replaying, kept: KeptEvent): Replaying => {
  const event = decodeEvent(kept)
  const context = fold([event], from.context)
  const isEngines = !(event instanceof UnknownEvent) && !byOthers.has(event.type)
  // An outcome that a run or a person brings comes between what the actor decides and does; a verdict is the first half of an answer.
  const isBrought = "callId" in event && Object.hasOwn(from.context.waitingCalls, event.callId)
  const isOver = isEngines && !isBrought && event.type !== "GuardVerdictEvent"
  const forkedTurn =
    event.type === "ContextForkedEvent"
      ? from.context.agentTurnStartedAtEventId
      : event.type === "ToolCallFailedEvent" || event.type === "AgentTurnInterruptedEvent"
        ? from.forkedTurn
        : Option.none<ContextEventId>()
  return {
    context,
    states: isOver ? [context] : remembered(from.states, context),
    forkedTurn,
    events: from.events + 1,
    engineEvents: from.engineEvents + (isEngines ? 1 : 0),
    firstDifference: from.firstDifference ?? findDifference(from, kept, event)
  }
}

const remembered = (states: ReadonlyArray<ReducedContext>, newest: ReducedContext) =>
  states.length < maxStates
    ? [...states, newest]
    : [...states.slice(0, 1), ...states.slice(2 - maxStates), newest]

const findDifference = (
  from: Replaying,
  kept: KeptEvent,
  event: LoggedEvent
): ReplayDifference | undefined => {
  const differs = (detail: string, expected: unknown): ReplayDifference => ({
    eventId: kept.id,
    detail,
    expected: expected === null ? null : JSON.parse(canonicalJson(expected)),
    found: JSON.parse(canonicalJson(kept))
  })
  if (event instanceof UnknownEvent)
    return knownTypes.has(event.type)
      ? differs(`This is no ${event.type} that this version can read`, null)
      : compare(kept, { ...kept, ...baseOf(from, kept) }, differs)
  const standpoints = from.states.map((context): Standpoint => ({ context, now: from.context }))
  const candidates = derive(standpoints, event)
  if (candidates.length === 0) {
    const { type } = decideOn(from.context)
    return differs(`No ${event.type} could follow here: what is to be done next is ${type}`, null)
  }
  const written = { ...encode(event), ...baseOf(from, kept) }
  const found = candidates.map((derived) => compare(kept, { ...written, ...derived }, differs))
  return found.includes(undefined) ? undefined : found[0]
}

const compare = (
  kept: KeptEvent,
  expected: Readonly<Record<string, unknown>>,
  differs: (detail: string, expected: unknown) => ReplayDifference
): ReplayDifference | undefined => {
  if (canonicalJson(kept) === canonicalJson(expected)) return undefined
  const fields = [...new Set([...Object.keys(kept), ...Object.keys(expected)])].filter(
    (field) => canonicalJson(kept[field]) !== canonicalJson(expected[field])
  )
  return differs(`The event differs in ${fields.toSorted().join(", ")}`, expected)
}

/** Id, name and parent follow from the place in the log (S004-R14, R18…R20). */
const baseOf = ({ context, forkedTurn }: Replaying, { id, parentEventId, type }: KeptEvent) => {
  const { agentTurnStartedAtEventId, lastEventId, nextEventNumber } = context
  const turn = Option.orElse(agentTurnStartedAtEventId, () =>
    type === "SessionEndedEvent" ? forkedTurn : Option.none()
  )
  const parent = type === "ContextForkedEvent" ? lastEventId : Option.orElse(turn, () => lastEventId)
  // A fork's own log, and only that, begins in the middle.
  const isNamedAnew = type === "ContextForkedEvent" || Option.isNone(lastEventId)
  const name = nameOf(isNamedAnew ? id : Option.getOrElse(lastEventId, () => id))
  return {
    id: contextEventId(name, nextEventNumber),
    agentName: name,
    parentEventId: isGivenParent(type, parentEventId, nextEventNumber)
      ? parentEventId
      : Option.getOrNull(parent)
  }
}

/** Whoever sends an event may name any earlier event as its cause. */
const isGivenParent = (type: string, parent: unknown, next: number): boolean =>
  sent.has(type) && isEventId(parent) && eventNumber(parent) < next

const isEventId = Schema.is(ContextEventId)

const nameOf = (id: ContextEventId): string => id.slice(0, id.indexOf(":"))

const encode = Schema.encodeSync(ContextEvent)

/** A class has the name of its events' type. */
const knownTypes: ReadonlySet<string> = new Set(ContextEvent.members.map(({ identifier }) => identifier))

const decideOn = (context: ReducedContext) =>
  decide({
    context,
    runId: context.run.id,
    ownTurnNumber: context.currentTurnNumber,
    maxSteps: null
  })
