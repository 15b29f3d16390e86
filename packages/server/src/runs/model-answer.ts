/**
 * Makes one model request and collects its answer.
 *
 * Text is streamed as it arrives and stored only when the answer is complete (S004-R26). No transaction is open here, and nothing is
 * written.
 */
import type { AnswerPart } from "@tropism/domain/answer-part"
import type { ReducedContext } from "@tropism/domain/context"
import { contextEventId, eventNumber } from "@tropism/domain/context-event"
import { foldGrown } from "@tropism/domain/grown"
import { findFault } from "@tropism/domain/json"
import { growthNote, keptChars } from "@tropism/domain/kept-size"
import type { Message, ToolCall } from "@tropism/domain/message"
import type { LeftOut } from "@tropism/domain/prompt-fit"
import { type Usage, noUsage } from "@tropism/domain/run"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Clock, Effect, Option, Stream, type Schema, Semaphore } from "effect"
import { TextDeltas } from "../contexts/text-deltas.ts"
import { toolLimits } from "../limits.ts"
import type {
  FinishedPart,
  ModelFailure,
  ModelFinish,
  ModelPart,
  ModelTry,
  OfferedTool,
  ResolvedModel,
  ModelToolCall
} from "../models/model-request.ts"
import { safeCallId } from "../models/storable-parts.ts"
import type { ClaimedRun } from "./run-types.ts"

export interface Answer {
  readonly text: string
  readonly toolCalls: ReadonlyArray<ToolCall>
  readonly usage: Usage
  /** In millionths of a dollar; null when the price is unknown. */
  readonly costMicros: number | null
  /** The model that answered, as `provider:name`. */
  readonly model: string
  /** Why the answer ended. */
  readonly finishReason: ModelFinish["reason"]
  /** The messages that did not fit into the request. */
  readonly leftOut?: LeftOut
  /** All parts in order, for models that need their reasoning or metadata back. */
  readonly parts?: ReadonlyArray<AnswerPart>
}

/** Receives the progress of a request. */
export interface Listener {
  /** Called with the whole text so far when it has grown and may be shown. */
  readonly heard: (text: string) => void
  /** Decides when a piece of text may be shown. */
  readonly showing: Showing
  /** Called with each try when it has ended. */
  readonly tried: (each: ModelTry) => void
}

/** The content of a request, and whether the model may call the tools. */
export interface Offer {
  /** The messages of the context, with the bytes of their files. */
  readonly messages: ReadonlyArray<Message>
  readonly tools: ReadonlyArray<OfferedTool>
  readonly mayCall: boolean
}

/** Makes one model request with the messages of a context. */
export const askModel = Effect.fn("askModel")(function* (
  model: ResolvedModel,
  { contextName: name, id: runId, projectId }: Pick<ClaimedRun, "id" | "projectId" | "contextName">,
  context: ReducedContext,
  { mayCall, messages, tools }: Offer,
  { heard, showing, tried }: Listener
): Effect.fn.Return<Answer, ModelFailure, TextDeltas> {
  const words = yield* TextDeltas
  const timeoutMs = Option.getOrUndefined(context.config.timeoutMs)
  const after = Option.match(context.lastEventId, { onNone: () => 0, onSome: eventNumber })
  let pieces = 0
  let text = ""
  const showDelta = Effect.fnUntraced(function* (delta: string) {
    pieces += 1
    text += delta
    heard(text)
    const timestamp = new Date(yield* Clock.currentTimeMillis).toISOString()
    yield* words.show(projectId, {
      type: "TextDeltaEvent",
      id: `${contextEventId(name, after)}.d${pieces}`,
      timestamp,
      agentName: name,
      parentEventId: Option.getOrNull(context.agentTurnStartedAtEventId),
      triggersAgentTurn: false,
      delta
    })
  })
  const parts = model.request({
    messages,
    tools,
    toolChoice: mayCall ? "auto" : "none",
    tried,
    step: context.run.id === runId ? context.run.steps : 0,
    spoken: context.spoken,
    ...(timeoutMs === undefined ? {} : { timeoutMs })
  })
  const start: Answer = {
    text: "",
    toolCalls: [],
    usage: noUsage,
    costMicros: null,
    finishReason: "unknown",
    model: `${model.provider}:${model.name}`
  }
  return yield* parts.pipe(
    Stream.tap((part) => (part.type === "text" ? showing(showDelta(part.delta)) : Effect.void)),
    Stream.runFold(
      () => start,
      (answer, part) => gather(answer, part, context)
    )
  )
})

const gather = (answer: Answer, part: ModelPart, context: ReducedContext): Answer => {
  switch (part.type) {
    case "text":
      return { ...answer, text: answer.text + part.delta }
    case "toolCall": {
      const id = freshId(part.id, context, answer.toolCalls)
      return {
        ...answer,
        toolCalls: [...answer.toolCalls, requestedCall(id, part)]
      }
    }
    case "finish":
      return {
        ...answer,
        text: answer.text.slice(part.thoughtChars ?? 0),
        usage: part.usage,
        costMicros: part.costMicros,
        finishReason: part.reason,
        model: `${part.provider}:${part.name}`,
        ...(part.leftOut === undefined ? {} : { leftOut: part.leftOut }),
        ...(part.parts === undefined ? {} : { parts: part.parts.flatMap(named(answer.toolCalls)) })
      }
  }
}

/** Replaces a part's call id with the id of the call in the log. */
const named =
  (toolCalls: ReadonlyArray<ToolCall>) =>
  (part: FinishedPart): ReadonlyArray<AnswerPart> => {
    if (part.type !== "toolCall") return [part]
    const { call, ...rest } = part
    const id = toolCalls[call]?.id
    return id === undefined ? [] : [{ ...rest, id }]
  }

/**
 * Some providers number their calls from the start in each answer; within a context an id must identify one call.
 *
 * **Details** An id that is taken, or may have been before the window, is replaced by one made from it and the answer's event number, which
 * is unique.
 */
const freshId = (id: string, context: ReducedContext, siblings: ReadonlyArray<ToolCall>): string => {
  const taken = callIdsIn(context.messages)
  const isTaken = (candidate: string) =>
    siblings.some((call) => call.id === candidate) || taken.has(candidate)
  if (id !== "" && context.droppedMessages === 0 && !isTaken(id)) return id
  for (let n = siblings.length; ; n++) {
    const made = safeCallId(`${context.nextEventNumber} ${n} ${id}`)
    if (!isTaken(made)) return made
  }
}

/** Returns the ids of the calls in the window. */
const callIdsIn = foldGrown<Message, Set<string>>(
  () => new Set(),
  (ids, message) => {
    if (message.role === "assistant")
      for (const part of message.content) if (part.type === "tool-call") ids.add(part.id)
    return ids
  }
)

// Converts a model's call to its stored form, within the size limits.
//
// Content that cannot be stored, or is too long, becomes text with a reason. The call is then refused with that reason, and the model can
// repeat it.

/** Returns a model's call under its id in the log. */
const requestedCall = (id: string, { arguments: args, fault, name }: ModelToolCall): ToolCall => {
  const call = { id, name: keepable(name, toolLimits.nameMaxChars), arguments: args }
  const reason = fault ?? faultOf(args)
  if (reason === undefined) return call
  const text = typeof args === "string" ? args : JSON.stringify(args)
  return { ...call, arguments: keepable(text, toolLimits.faultyArgumentsMaxChars), fault: reason }
}

const faultOf = (args: Schema.Json): string | undefined => {
  const size = keptChars(args)
  if (size > toolLimits.argumentsMaxChars)
    return `The arguments are ${size} characters long; at most ${toolLimits.argumentsMaxChars} can be taken${growthNote(args)}`
  const fault = typeof args === "string" ? undefined : findFault(args)
  return fault && `${fault.pointer}: ${fault.message}`
}

/** Returns the beginning of a text without characters that the database cannot store. */
const keepable = (text: string, maxChars: number): string =>
  beginningOf(text, maxChars).replaceAll("\u0000", "\uFFFD").toWellFormed()

// Holds back a model's text until it may be shown.
//
// Pieces are shown in the order of arrival, held ones first; a piece that arrives during the release waits for its turn.

/** Shows a piece of text now, or once it may be shown. */
export type Showing = (show: Effect.Effect<void>) => Effect.Effect<void>

/** Shows text at once. */
export const aloud: Showing = (show) => show

export const makeOutputGate = Effect.gen(function* () {
  const held: Array<Effect.Effect<void>> = []
  let isOpen = false
  const turns = yield* Semaphore.make(1)
  const showHeld = turns.withPermits(1)(
    Effect.gen(function* () {
      for (let show = held.shift(); show !== undefined; show = held.shift()) yield* show
    })
  )
  const showing: Showing = (show) =>
    Effect.suspend(() => {
      held.push(show)
      return isOpen ? showHeld : Effect.void
    })
  return {
    showing,
    /** Shows the held text, and from now on every piece at once. */
    open: Effect.suspend(() => {
      isOpen = true
      return showHeld
    })
  }
})

/** Returns the run's step count. A conversation's context may count the steps of another run; those do not count here. */
export const stepsOf = ({ id }: Pick<ClaimedRun, "id">, { run }: ReducedContext): number =>
  run.id === id ? run.steps : 0
