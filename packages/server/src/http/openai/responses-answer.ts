/**
 * Builds the items and events of the Responses API from an agent's turn.
 *
 * Pure. **Invariant**: an item has the same id and index whether it was streamed, waited for, or read later, so indexes depend on the log
 * alone. A message that its provider cut off and that continues is one item. An agent's tool call is an `mcp_call`, which clients show and
 * never run. Text before a call ends with a blank line, because clients join the text of all items.
 */
import type { AgentResponse, ResponseOutputItem, ResponseStatus } from "@tropism/api/openai-responses"
import type { AssistantMessageEvent, LoggedEvent } from "@tropism/domain/context-event"
import { Effect, type Schema } from "effect"
import type { PlacedResponse } from "../../chat/completions.ts"
import type { TurnPart } from "../../chat/turns.ts"
import { beginHearing, cutReason, hear, type HeardAnswer, isFailed, type AnswerForm } from "./answers.ts"
import { failedTurn } from "./faults.ts"

/** An event of a stream, without its number. */
export type ResponseEvent = Readonly<Record<string, unknown>> & { readonly type: string }

type CallItem = Extract<ResponseOutputItem, { readonly type: "mcp_call" }>

/** A response as far as its events have arrived. */
export interface HeardResponse {
  readonly heard: HeardAnswer
  readonly output: ReadonlyArray<ResponseOutputItem>
  /** The index of the unfinished message. */
  readonly open: number | undefined
  /** Leading whitespace of an answer; an answer of whitespace alone is empty. */
  readonly blanks: string
  /** The indexes of unfinished calls, by the model's call ids. */
  readonly calls: Readonly<Record<string, number>>
}

/** The public id of a response; its items' ids derive from it. */
export const responseId = (id: string): string => `resp_${hexOf(id)}`

const hexOf = (id: string): string => id.replaceAll("-", "")

const itemId = (kind: "msg" | "mcp", { id }: PlacedResponse, place: number): string =>
  `${kind}_${hexOf(id)}_${place}`

/** The response and the index that an item's id encodes. */
export const placeOfItem = (id: string): { readonly id: string; readonly place: number } | undefined => {
  const [, hex = "", place = ""] = /^(?:msg|mcp)_([0-9a-f]{32})_(\d{1,6})$/.exec(id) ?? []
  return hex === "" ? undefined : { id: uuidOf(hex), place: Number(place) }
}

/** The database id that a response's id encodes. */
export const keyOfResponse = (id: string): string | undefined => {
  const [, hex] = /^resp_([0-9a-f]{32})$/.exec(id) ?? []
  return hex === undefined ? undefined : uuidOf(hex)
}

const uuidOf = (hex: string): string =>
  [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-")

/** A response, whole or as events. */
export const responseForm = (
  response: PlacedResponse,
  isRead = false
): AnswerForm<HeardResponse, ResponseEvent> => {
  const begun: HeardResponse = {
    heard: beginHearing(response.number),
    output: [],
    open: undefined,
    blanks: "",
    calls: {}
  }
  const first = responseOf(response, begun, "in_progress")
  return {
    start: begun,
    first: [
      { type: "response.created", response: first },
      { type: "response.in_progress", response: first }
    ],
    hear: (before, part) => heardPart(response, before, part, isRead),
    fault: ({ error: { code, message, param } }) => ({ type: "error", code, message, param }),
    encode: (event, number) =>
      `event: ${event.type}\ndata: ${JSON.stringify({ ...event, sequence_number: number })}\n\n`,
    whole: (state) =>
      !isRead && isFailed(state.heard)
        ? failedTurn(state.heard.failure)
        : Effect.succeed(responseOf(response, state, statusOf(state, isRead)))
  }
}

type Told = readonly [HeardResponse, ReadonlyArray<ResponseEvent>]

const heardPart = (
  response: PlacedResponse,
  before: HeardResponse,
  part: TurnPart,
  isRead: boolean
): Told => {
  const { answer: heard, words } = hear(before.heard, part)
  const state = { ...before, heard }
  switch (part.type) {
    case "words":
      return withWords(response, state, part.text)
    case "event":
      return part.event.type === "AgentTurnCompletedEvent" && words.trim() !== ""
        ? wholeMessage(response, state, words.trim())
        : afterBegun(response, before, withEvent(response, state, part.event, before), part.event)
    case "rest":
      return isRead && statusOf(state, isRead) === "in_progress"
        ? [state, []]
        : ended(response, state, words.trim())
  }
}

/** Applies several steps to a response in order. */
const inTurn = (begun: HeardResponse, ...steps: ReadonlyArray<(state: HeardResponse) => Told>): Told => {
  const events: Array<ResponseEvent> = []
  let state = begun
  for (const step of steps) {
    const [next, told] = step(state)
    state = next
    events.push(...told)
  }
  return [state, events]
}

const textPart = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] }) as const

const messageItem = (id: string, status: "in_progress" | "completed" | "incomplete", text?: string) => ({
  type: "message" as const,
  id,
  role: "assistant" as const,
  status,
  content: text === undefined ? [] : [textPart(text)]
})

const withItem = (state: HeardResponse, place: number, item: ResponseOutputItem): HeardResponse => ({
  ...state,
  output: state.output.toSpliced(place, 1, item)
})

/** The text of the message at an index. */
const textAt = ({ output }: HeardResponse, place: number): string => {
  const item = output[place]
  return item?.type === "message" ? item.content.map(({ text }) => text).join("") : ""
}

/** The separator between the text before a message and its own. */
const gapBefore = ({ output }: HeardResponse): string => {
  const place = output.findLastIndex((item) => item.type === "message")
  const before = output[place]
  const text = before?.type === "message" ? before.content.map((part) => part.text).join("") : ""
  return text === "" || text.endsWith("\n\n") ? "" : "\n\n"
}

const opened = (response: PlacedResponse, state: HeardResponse): Told => {
  const place = state.output.length
  const id = itemId("msg", response, place)
  const gap = gapBefore(state)
  const at = { item_id: id, output_index: place, content_index: 0 }
  const item = messageItem(id, "in_progress", gap)
  return [
    { ...state, output: [...state.output, item], open: place },
    [
      { type: "response.output_item.added", output_index: place, item: messageItem(id, "in_progress") },
      { type: "response.content_part.added", ...at, part: textPart("") },
      ...(gap === "" ? [] : [{ type: "response.output_text.delta", ...at, delta: gap, logprobs: [] }])
    ]
  ]
}

const withWords = (response: PlacedResponse, state: HeardResponse, text: string): Told => {
  if (state.open === undefined) {
    const begun = state.blanks + text
    if (begun.trim() === "") return [{ ...state, blanks: begun }, []]
    return inTurn(
      { ...state, blanks: "" },
      (now) => opened(response, now),
      (now) => withWords(response, now, begun)
    )
  }
  const place = state.open
  const id = itemId("msg", response, place)
  return [
    withItem(state, place, messageItem(id, "in_progress", textAt(state, place) + text)),
    [
      {
        type: "response.output_text.delta",
        item_id: id,
        output_index: place,
        content_index: 0,
        delta: text,
        logprobs: []
      }
    ]
  ]
}

/** Closes the unfinished message; `content` is its text in the log. */
const closed = (
  response: PlacedResponse,
  state: HeardResponse,
  status: "completed" | "incomplete",
  content?: string
): Told => {
  const { open: place } = state
  if (place === undefined) return [{ ...state, blanks: "" }, []]
  const id = itemId("msg", response, place)
  const before = { ...state, output: state.output.slice(0, place) }
  const text = content === undefined ? textAt(state, place) : gapBefore(before) + content
  const item = messageItem(id, status, text)
  const at = { item_id: id, output_index: place, content_index: 0 }
  return [
    { ...withItem(state, place, item), open: undefined, blanks: "" },
    [
      { type: "response.output_text.done", ...at, text, logprobs: [] },
      { type: "response.content_part.done", ...at, part: textPart(text) },
      { type: "response.output_item.done", output_index: place, item }
    ]
  ]
}

const wholeMessage = (response: PlacedResponse, state: HeardResponse, text: string): Told =>
  inTurn(
    state,
    (now) => withWords(response, now, text),
    (now) => closed(response, now, "completed")
  )

const beginningOf = ({ heard }: HeardResponse): string | undefined => heard.reading.begun?.content

/** Closes a message that should have continued and did not, as it is in the log. */
const afterBegun = (
  response: PlacedResponse,
  before: HeardResponse,
  [state, events]: Told,
  event: LoggedEvent
): Told => {
  const isDropped =
    event.type !== "AssistantMessageEvent" &&
    beginningOf(before) !== undefined &&
    beginningOf(state) === undefined
  if (!isDropped) return [state, events]
  const [next, told] = closed(response, state, "incomplete")
  return [next, [...events, ...told]]
}

const withEvent = (
  response: PlacedResponse,
  state: HeardResponse,
  event: LoggedEvent,
  before: HeardResponse
): Told => {
  if ("isUnknown" in event) return [state, []]
  switch (event.type) {
    case "AssistantMessageEvent": {
      // An answer that its provider cut off continues in the same item.
      const begun = beginningOf(state)
      if (begun !== undefined) return [withBeginning(response, state, begun), []]
      const gap = event.toolCalls.length > 0 && state.open !== undefined ? "\n\n" : ""
      return inTurn(
        state,
        (now) => (gap === "" ? [now, []] : withWords(response, now, gap)),
        (now) => closed(response, now, "completed", wholeText(before, event) + gap),
        ...event.toolCalls.map(
          (call) => (now: HeardResponse) => begunCall(response, now, call.id, call.name, call.arguments)
        )
      )
    }
    case "ToolCallCompletedEvent":
      return endedCall(response, state, event.callId, {
        status: "completed",
        output: typeof event.result === "string" ? event.result : JSON.stringify(event.result)
      })
    case "ToolCallFailedEvent":
      return endedCall(response, state, event.callId, {
        status: "failed",
        error: { type: "mcp_tool_execution_error", content: [{ type: "text", text: textOf(event.error) }] }
      })
    case "SoftStopEvent":
      return event.partialText ? closed(response, state, "incomplete") : [state, []]
    case "AgentTurnInterruptedEvent":
      // After a crash the answer starts again, in the same item.
      return event.reason === "crash" ? [state, []] : closed(response, state, "incomplete")
    default:
      return [state, []]
  }
}

/** Replaces the received text of a message that may continue by its text in the log. */
const withBeginning = (response: PlacedResponse, state: HeardResponse, begun: string): HeardResponse => {
  const { open: place } = state
  if (place === undefined) return state
  const text = gapBefore({ ...state, output: state.output.slice(0, place) }) + begun
  return withItem(state, place, messageItem(itemId("msg", response, place), "in_progress", text))
}

/** A message together with the parts that it continues. */
const wholeText = (before: HeardResponse, { content, continues }: AssistantMessageEvent): string => {
  const begun = beginningOf(before)
  return begun === undefined ? content : `${begun}${continues === true ? "" : "\n\n"}${content}`
}

const textOf = (error: Schema.Json): string => (typeof error === "string" ? error : JSON.stringify(error))

const begunCall = (
  response: PlacedResponse,
  state: HeardResponse,
  callId: string,
  name: string,
  input: Schema.Json
): Told => {
  const place = state.output.length
  const id = itemId("mcp", response, place)
  const at = { item_id: id, output_index: place }
  const text = JSON.stringify(input)
  const item: CallItem = {
    type: "mcp_call",
    id,
    name,
    server_label: "tropism",
    arguments: text,
    output: null,
    error: null,
    approval_request_id: null,
    status: "in_progress"
  }
  return [
    { ...state, output: [...state.output, item], calls: { ...state.calls, [callId]: place } },
    [
      { type: "response.output_item.added", output_index: place, item: { ...item, arguments: "" } },
      { type: "response.mcp_call.in_progress", ...at },
      { type: "response.mcp_call_arguments.delta", ...at, delta: text },
      { type: "response.mcp_call_arguments.done", ...at, arguments: text }
    ]
  ]
}

const endedCall = (
  response: PlacedResponse,
  state: HeardResponse,
  callId: string,
  outcome: Pick<CallItem, "status"> & Partial<Pick<CallItem, "error" | "output">>
): Told => {
  const place = state.calls[callId]
  const before = place === undefined ? undefined : state.output[place]
  // The result of a call of an earlier response.
  if (place === undefined || before?.type !== "mcp_call") return [state, []]
  const item: CallItem = { ...before, ...outcome }
  const { [callId]: _ended, ...calls } = state.calls
  const at = { item_id: itemId("mcp", response, place), output_index: place }
  return [
    { ...withItem(state, place, item), calls },
    [
      ...(outcome.status === "incomplete" ? [] : [{ type: `response.mcp_call.${outcome.status}`, ...at }]),
      { type: "response.output_item.done", output_index: place, item }
    ]
  ]
}

/** The last events: close the open item, and add the agent's question as the last text. */
const ended = (response: PlacedResponse, state: HeardResponse, asked: string): Told =>
  inTurn(
    state,
    (now) => closed(response, now, "incomplete"),
    ...Object.keys(state.calls).map(
      (callId) => (now: HeardResponse) => endedCall(response, now, callId, { status: "incomplete" })
    ),
    (now) => (asked === "" ? [now, []] : wholeMessage(response, now, asked)),
    (now) => {
      const status = statusOf(now, false)
      const told = responseOf(response, now, status)
      return [now, [{ type: `response.${status === "cancelled" ? "incomplete" : status}`, response: told }]]
    }
  )

/** The status of a response; an unfinished one that is read later is in progress, not incomplete. */
export const statusOf = ({ heard }: HeardResponse, isRead: boolean): ResponseStatus => {
  switch (heard.rest?.ending) {
    case undefined:
      return "in_progress"
    case "answered":
    case "question":
      return cutReason(heard) === undefined ? "completed" : "incomplete"
    case "failed":
      return isFailed(heard) ? "failed" : "incomplete"
    case "cancelled":
      return "cancelled"
    case "bound":
    case "stopped":
      return isRead ? "in_progress" : "incomplete"
    default:
      return "incomplete"
  }
}

const responseOf = (
  { context, createdAt, id, terms }: PlacedResponse,
  { heard, output }: HeardResponse,
  status: ResponseStatus
): AgentResponse => {
  const {
    cachedInputTokens = 0,
    cacheWriteTokens = 0,
    inputTokens,
    outputTokens,
    reasoningTokens = 0
  } = heard.usage
  const cut = status === "incomplete" ? cutReason(heard) : undefined
  return {
    id: responseId(id),
    object: "response",
    created_at: Math.floor(createdAt.getTime() / 1_000),
    status,
    error: status === "failed" ? { code: "server_error", message: heard.failure } : null,
    incomplete_details: cut === undefined ? null : { reason: cut === "length" ? "max_output_tokens" : cut },
    background: terms.background,
    conversation: terms.conversation === null ? null : { id: terms.conversation },
    instructions: terms.instructions,
    max_output_tokens: terms.maxOutputTokens,
    metadata: terms.metadata,
    model: terms.model,
    output,
    parallel_tool_calls: true,
    previous_response_id: terms.previousId,
    store: terms.isStored,
    temperature: terms.temperature,
    text: { format: { type: "text" } },
    tool_choice: terms.toolChoice,
    tools: [],
    top_p: null,
    truncation: "disabled",
    usage: {
      input_tokens: inputTokens,
      input_tokens_details: { cached_tokens: cachedInputTokens, cache_write_tokens: cacheWriteTokens },
      output_tokens: outputTokens,
      output_tokens_details: { reasoning_tokens: reasoningTokens },
      total_tokens: inputTokens + outputTokens
    },
    x_tropism: {
      conversation: context,
      status: heard.rest?.status ?? "working",
      run_id: heard.rest?.runId ?? null
    }
  }
}
