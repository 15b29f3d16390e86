/**
 * Logs of a context, made for tests as the append transaction makes them.
 *
 * Numbers are contiguous and every event goes through its JSON form, as it
 * would through the database. Parents are simply the event before: the rule of
 * the open turn is the server's.
 */
import {
  ContextName,
  contextEventId,
  decodeEvent,
  type LoggedEvent,
  type NewEvent
} from "../src/context-event.ts"
import { fold, type ReducedContext } from "../src/context.ts"
import { RunId } from "../src/ids.ts"
import type { Message } from "../src/message.ts"

export const contextName = ContextName.make("tester")
export const runA = RunId.make("01990000-0000-7000-8000-00000000000a")
export const runB = RunId.make("01990000-0000-7000-8000-00000000000b")

export const noonMs = Date.UTC(2026, 10, 20, 12)

/** An event of a type that no version knows yet. */
export interface UnknownDraft {
  readonly type: `Unknown${string}`
  readonly triggersAgentTurn?: boolean
}

/** A log with further events at its end, one second apart. */
export const append = (
  log: ReadonlyArray<LoggedEvent>,
  ...drafts: ReadonlyArray<NewEvent | UnknownDraft>
): ReadonlyArray<LoggedEvent> => [
  ...log,
  ...drafts.map((draft, index) => {
    const number = log.length + index + 1
    return decodeEvent({
      ...draft,
      id: contextEventId(contextName, number),
      timestamp: new Date(noonMs + number * 1_000).toISOString(),
      agentName: contextName,
      parentEventId: number === 1 ? null : contextEventId(contextName, number - 1),
      triggersAgentTurn: draft.triggersAgentTurn ?? false
    })
  })
]

export const logOf = (...drafts: ReadonlyArray<NewEvent | UnknownDraft>): ReadonlyArray<LoggedEvent> =>
  append([], ...drafts)

export const contextOf = (...drafts: ReadonlyArray<NewEvent | UnknownDraft>): ReducedContext =>
  fold(logOf(...drafts))

export const asks = (content: string): NewEvent => ({
  type: "UserMessageEvent",
  content,
  triggersAgentTurn: true
})
export const mentions = (content: string): NewEvent => ({ type: "UserMessageEvent", content })
/** Steps one after another, each with its name as its prompt; without any, no workflow. */
export const workflow = (...names: ReadonlyArray<string>): NewEvent => ({
  type: "DefineWorkflowEvent",
  flowType: names.length === 0 ? "single" : "sequential",
  steps: names.map((name) => ({ name, prompt: name, tools: null, model: null })),
  maxIterations: null
})
export const stepStarts = (step: string, index: number): NewEvent => ({
  type: "FlowStepStartedEvent",
  step,
  index,
  iteration: 1,
  content: step,
  triggersAgentTurn: true
})
export const turnStarts = (turnNumber: number): NewEvent => ({ type: "AgentTurnStartedEvent", turnNumber })
export const turnCompletes = (turnNumber: number): NewEvent => ({
  type: "AgentTurnCompletedEvent",
  turnNumber,
  durationMs: 1
})
export const turnFails = (turnNumber: number): NewEvent => ({
  type: "AgentTurnFailedEvent",
  turnNumber,
  error: "The model is away"
})
export const turnBreaks = (
  turnNumber: number,
  reason: "crash" | "message" | "user" | "cancelled" | "stepLimit"
): NewEvent => ({
  type: "AgentTurnInterruptedEvent",
  turnNumber,
  reason
})

/** An answer that asks for one tool per call id. */
export const answers = (
  content: string,
  callIds: ReadonlyArray<string> = [],
  runId: RunId = runA
): NewEvent => ({
  type: "AssistantMessageEvent",
  content,
  toolCalls: callIds.map((id) => ({ id, name: "get_object", arguments: { id } })),
  runId,
  model: "scripted:tester",
  usage: { inputTokens: 3, outputTokens: 2 }
})

export const toolStarts = (callId: string): NewEvent => ({
  type: "ToolCallStartedEvent",
  callId,
  tool: "graph.get_object",
  arguments: { id: callId }
})
export const toolCompletes = (callId: string): NewEvent => ({
  type: "ToolCallCompletedEvent",
  callId,
  tool: "graph.get_object",
  result: { of: callId }
})
export const toolFails = (callId: string, error = "refused"): NewEvent => ({
  type: "ToolCallFailedEvent",
  callId,
  tool: "graph.get_object",
  error
})
export const softStops: NewEvent = {
  type: "SoftStopEvent",
  reason: "stepLimit",
  content: "Summarise and stop."
}

/** The first place in a prompt where a tool call and its result are not one unit, or undefined. */
export const findUnpaired = (messages: ReadonlyArray<Message>): string | undefined => {
  let open: ReadonlyArray<string> = []
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") {
      for (const part of message.content) {
        if (!open.includes(part.id)) return `Message ${index} is a result of ${part.id}, which is not open`
        open = open.toSpliced(open.indexOf(part.id), 1)
      }
    } else {
      if (open.length > 0)
        return `Message ${index} of ${message.role} stands before the results of ${open.join(", ")}`
      if (message.role === "assistant")
        open = message.content.flatMap((part) => (part.type === "tool-call" ? [part.id] : []))
    }
  }
  return open.length > 0 ? `The prompt ends without the results of ${open.join(", ")}` : undefined
}
