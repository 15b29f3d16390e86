/**
 * The window: which of its messages a context still holds, and where it lets go of the oldest.
 *
 * A cut is decided after each event from what was folded so far, so a log gives
 * the same window however it is read: at once, in pages, or event by event. It
 * falls only between units, where a unit is a message, or an answer with the
 * results of all its calls; the newest unit stays, however large. A window that
 * begins in the middle of a turn begins with what that turn was asked, because
 * an agent that forgets its task is no use, and some providers refuse a
 * conversation that does not begin with the user.
 */
import { Option } from "effect"
import type { ContextConfig } from "./context-config.ts"
import { grow } from "./grown.ts"
import { isSaidByUser, type Message } from "./message.ts"
import { listTokens, messageTokens, textTokens } from "./message-size.ts"
import { defaultReducer, type ReducerConfig, type SummarizingReducer, windowBounds } from "./prompt-window.ts"

/** What a context knows of its window beside the messages in it. */
export interface WindowState {
  /** What the agent was told to be; the newest system prompt stands. */
  readonly systemPrompt: Option.Option<string>
  /** What stands for messages that the model is shown no more, where a model has summed them up. */
  readonly summary: Option.Option<string>
  /** How many messages of the context are not in its window any more. */
  readonly droppedMessages: number
  /** The estimated tokens of the messages in the window. */
  readonly windowTokens: number
  readonly spoken: Spoken
}

/** How much was said in a context, whatever its window still holds of it. */
export interface Spoken {
  /** Messages of users. */
  readonly turns: number
  /** Answers since the last of them. */
  readonly answers: number
}

/** Counts what was said. */
export const count = (spoken: Spoken, said: ReadonlyArray<Message>): Spoken =>
  said.reduce(
    (sum, message) =>
      isSaidByUser(message)
        ? { turns: sum.turns + 1, answers: 0 }
        : message.role === "assistant"
          ? { ...sum, answers: sum.answers + 1 }
          : sum,
    spoken
  )

/** A place where a window can be cut, and what it would be then. */
export interface Cut {
  /** The first message that stays. */
  readonly index: number
  /** What the first turn of the rest was asked with, where it would be cut off. */
  readonly carried: ReadonlyArray<Message>
  /** Of the messages that are left. */
  readonly tokens: number
}

/** The messages of a context while a part of its log is folded. */
export interface Window {
  readonly length: () => number
  readonly at: (index: number) => Message | undefined
  readonly add: (said: ReadonlyArray<Message>) => void
  readonly cut: (cut: Cut) => void
  /** The messages as they are at the end. */
  readonly close: () => ReadonlyArray<Message>
}

/** Opens the messages of a context for a fold; they themselves are never changed. */
export const openWindow = (messages: ReadonlyArray<Message>): Window => {
  let first = messages
  let said: Array<Message> = []
  const at = (index: number) => (index < first.length ? first[index] : said[index - first.length])
  return {
    at,
    length: () => first.length + said.length,
    add: (more) => {
      for (const message of more) said.push(message)
    },
    cut: ({ carried, index }) => {
      first = [...carried, ...first.slice(index), ...said.slice(Math.max(0, index - first.length))]
      said = []
    },
    close: () => grow(first, said)
  }
}

export const reducerOf = ({ agentReducer, reducer }: ContextConfig): ReducerConfig =>
  Option.isSome(reducer) ? reducer.value : Option.getOrElse(agentReducer, () => defaultReducer)

/** The estimated tokens of a prompt: everything but the tools. */
export const promptTokens = (state: WindowState): number => state.windowTokens + instructionTokens(state)

const instructionTokens = ({
  summary,
  systemPrompt
}: Pick<WindowState, "summary" | "systemPrompt">): number =>
  (Option.isSome(systemPrompt) ? textTokens(systemPrompt.value) : 0) +
  (Option.isSome(summary) ? textTokens(summary.value) : 0)

/** Where a window that is too large is cut, if its reducer cuts by itself. */
export const findOverflow = (reducer: ReducerConfig, state: WindowState, window: Window): Cut | undefined => {
  if (reducer.type !== "truncating") return undefined
  const maxMessages = reducer.maxMessages ?? Number.POSITIVE_INFINITY
  const maxTokens = reducer.maxTokens ?? Number.POSITIVE_INFINITY
  const count = window.length()
  if (count <= maxMessages && promptTokens(state) <= maxTokens) return undefined
  const most = Math.max(1, Math.floor(maxMessages * windowBounds.cutTo))
  const mostTokens = maxTokens * windowBounds.cutTo - instructionTokens(state)
  return findCut(
    window,
    state.windowTokens,
    reducer,
    ({ carried, index, tokens }) => carried.length + count - index <= most && tokens <= mostTokens
  )
}

/** Where messages are cut so that at most so many tokens are left, or else as far as they can be; nothing where none can go. */
export const findFit = (messages: ReadonlyArray<Message>, maxTokens: number): Cut | undefined =>
  findCut(
    openWindow(messages),
    listTokens(messages),
    { type: "truncating", maxMessages: null, maxTokens },
    ({ tokens }) => tokens <= maxTokens
  )

/** Where a window is cut of which the messages before an index are told by a summary. */
export const cutBefore = (index: number, reducer: ReducerConfig, state: WindowState, window: Window) =>
  findCut(window, state.windowTokens, reducer, () => false, index)

/** Where the window of a context is cut once a model has summed up what lies before; nothing while none has to. */
export const findSummaryDue = (
  context: WindowState & {
    readonly config: ContextConfig
    readonly messages: ReadonlyArray<Message>
    readonly judgedMessages: number
  }
): Cut | undefined => {
  const { config, droppedMessages, judgedMessages, messages } = context
  const reducer = reducerOf(config)
  // Where there is a guard, nothing reaches a model by way of a summary that it has not judged.
  const until = Option.isSome(config.guard) ? judgedMessages - droppedMessages : messages.length
  return reducer.type === "summarizing" ? findSummed(reducer, context, messages, until) : undefined
}

/** Nothing, too, while so little would be let go that it is not worth a request. */
const findSummed = (
  reducer: SummarizingReducer,
  state: WindowState,
  messages: ReadonlyArray<Message>,
  until: number
): Cut | undefined => {
  const { keepTokens, maxTokens } = reducer
  if (promptTokens(state) <= maxTokens) return undefined
  const before = state.windowTokens
  const cut = findCut(
    openWindow(messages),
    before,
    reducer,
    // What one request sums up is no more than what one may show.
    ({ tokens }) => tokens <= keepTokens || before - tokens >= maxTokens,
    until
  )
  return cut && before - cut.tokens >= maxTokens * windowBounds.summedShare ? cut : undefined
}

/** The first place at which a window is cut enough, or else the last at which it can be cut, no later than `until`. */
const findCut = (
  window: Window,
  tokens: number,
  reducer: ReducerConfig,
  isEnough: (cut: Cut) => boolean,
  until = Number.POSITIVE_INFINITY
): Cut | undefined => {
  const last = Math.min(until, window.length() - 1)
  const asked = makeAsked(reducer)
  let found: Cut | undefined
  let left = tokens
  let openCalls = 0
  for (let index = 0; index <= last; index++) {
    const message = window.at(index)
    if (message === undefined) break
    if (openCalls === 0 && index > 0) {
      const words = asked.before(message)
      found = { index, carried: words.messages, tokens: left + words.tokens }
      if (isEnough(found)) break
    }
    asked.pass(message)
    openCalls += callsOf(message)
    left -= messageTokens(message)
  }
  // What is cut off and carried along is not cut off.
  return found && found.carried.length < found.index ? found : undefined
}

/** How many results are still to come after a message; a result takes one away. */
const callsOf = (message: Message): number => {
  if (message.role === "tool") return -message.content.length
  if (message.role !== "assistant") return 0
  return message.content.filter(({ type }) => type === "tool-call").length
}

interface Asked {
  readonly messages: ReadonlyArray<Message>
  readonly tokens: number
}

const nothing: Asked = { messages: [], tokens: 0 }

/** Follows who was asked what: the words of the user that were last answered. */
const makeAsked = (reducer: ReducerConfig) => {
  let words: Array<Message> = []
  let isAnswered = false
  let carried: Asked | undefined = nothing
  return {
    pass: (message: Message): void => {
      if (message.role === "assistant") isAnswered = true
      if (!isSaidByUser(message)) return
      if (isAnswered) words = []
      isAnswered = false
      words.push(message)
      carried = undefined
    },
    /** What has to stand before a message that would be the first. */
    before: (message: Message): Asked =>
      isSaidByUser(message) ? nothing : (carried ??= newestOf(words, reducer))
  }
}

/** The newest of the words that fit their share of the window, at least one. */
const newestOf = (words: ReadonlyArray<Message>, reducer: ReducerConfig): Asked => {
  const { askedShare } = windowBounds
  const maxTokens = reducer.type === "whole" ? null : reducer.maxTokens
  const maxMessages = reducer.type === "truncating" ? reducer.maxMessages : null
  const most = Math.max(1, Math.floor((maxMessages ?? Number.POSITIVE_INFINITY) * askedShare))
  const mostTokens = (maxTokens ?? Number.POSITIVE_INFINITY) * askedShare
  let tokens = 0
  let first = words.length
  while (first > 0) {
    const size = listTokens(words.slice(first - 1, first))
    const isFirst = first === words.length
    if (!isFirst && (tokens + size > mostTokens || words.length - first >= most)) break
    tokens += size
    first -= 1
  }
  return { messages: words.slice(first), tokens }
}
