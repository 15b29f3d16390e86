/**
 * Reads what a model thinks aloud as reasoning: text in `<think>` tags at the beginning of an answer.
 *
 * Local servers send it so where they have no parser for the model (llama.cpp, Ollama, vLLM without a reasoning parser). Some
 * chat templates hold the opening tag themselves, so an answer has the closing one alone. The first such answer of a model
 * has gone on as text before that is clear: `spokenThinking` marks where its thinking ended. Later ones are held back. A tag that
 * neither begins nor ends a line, or is in a block of code, is spoken of and ends nothing.
 */
import type { Response } from "effect/ai"
import { modelLimits } from "../limits.ts"

const open = "<think>"
const close = "</think>"
const id = "think"

/** The id of a `reasoning-end` after which all text so far counts as reasoning. */
export const spokenThinking = "think-spoken"

/** What is known of a model's thinking before it answers. */
export interface ThinkTagHabits {
  /** Whether a closing tag without an opening one ends its thinking; hosted models speak of tags without thinking in them. */
  readonly mayCloseAlone: boolean
  /** Whether its answers are known to begin inside the thinking. */
  readonly opensSilently: boolean
  /** Called at the first closing tag without an opening one. */
  readonly closedAlone: () => void
}

/** Makes a reader for one answer; a part that is no text ends what is held back. */
export const makeThinkTagReader = ({ closedAlone, mayCloseAlone, opensSilently }: ThinkTagHabits) => {
  let state: "start" | "silent" | "thinking" | "speaking" | "closed" | "after" = "start"
  let held = ""
  let textId = ""
  /** What has gone on as text so far. */
  let soFar = ""
  const text = (delta: string): ReadonlyArray<Response.StreamPartEncoded> =>
    delta === "" ? [] : [{ type: "text-delta", id: textId, delta }]
  const thought = (delta: string): ReadonlyArray<Response.StreamPartEncoded> =>
    delta === "" ? [] : [{ type: "reasoning-delta", id, delta }]

  const start = (): ReadonlyArray<Response.StreamPartEncoded> => {
    const said = held.trimStart()
    if (said.startsWith(open)) {
      state = "thinking"
      held = said.slice(open.length)
      return [{ type: "reasoning-start", id }, ...think()]
    }
    if (open.startsWith(said)) return []
    if (!mayCloseAlone) {
      state = "after"
      return text(held)
    }
    state = opensSilently ? "silent" : "speaking"
    return opensSilently ? silent() : speak()
  }

  /** Holds the answer back until its thinking ends; an answer that never ends it is text. */
  const silent = (): ReadonlyArray<Response.StreamPartEncoded> => {
    const end = held.indexOf(close)
    if (end >= 0) {
      const before = held.slice(0, end)
      return [
        { type: "reasoning-start", id },
        ...thought(before),
        { type: "reasoning-end", id },
        ...closeAt(end)
      ]
    }
    if (held.length <= modelLimits.answerPartsMaxChars) return [{ type: "reasoning-delta", id, delta: "" }]
    state = "after"
    return text(held)
  }

  const speak = (): ReadonlyArray<Response.StreamPartEncoded> => {
    const end = held.indexOf(close)
    if (end < 0) {
      const sure = held.length - openEnd(held)
      const delta = held.slice(0, sure)
      // An answer that opens the tag itself, in its midst, speaks of tags.
      if (delta.includes(open)) {
        state = "after"
        return text(held)
      }
      held = held.slice(sure)
      soFar += delta
      return text(delta)
    }
    const before = held.slice(0, end)
    const after = held.slice(end + close.length)
    const isAtLineStart = /(?:^|\n)[ \t]*$/.test(soFar + before)
    if (!isAtLineStart && /^[ \t]*$/.test(after)) {
      held = held.slice(end)
      soFar += before
      return text(before)
    }
    const isOnLine = isAtLineStart || /^[ \t]*\r?\n/.test(after)
    if (!isOnLine || isFenced(soFar + before) || before.includes(open)) {
      state = "after"
      return text(held)
    }
    closedAlone()
    return [...text(before), { type: "reasoning-end", id: spokenThinking }, ...closeAt(end)]
  }

  const think = (): ReadonlyArray<Response.StreamPartEncoded> => {
    const end = held.indexOf(close)
    if (end < 0) {
      // The end of a piece may be the beginning of the closing tag.
      const sure = Math.max(0, held.length - close.length + 1)
      const delta = held.slice(0, sure)
      held = held.slice(sure)
      return thought(delta)
    }
    return [...thought(held.slice(0, end)), { type: "reasoning-end", id }, ...closeAt(end)]
  }

  const closeAt = (end: number): ReadonlyArray<Response.StreamPartEncoded> => {
    state = "closed"
    held = held.slice(end + close.length)
    return closed()
  }

  /** The line breaks before the answer belong to the tag, in whatever pieces they come. */
  const closed = (): ReadonlyArray<Response.StreamPartEncoded> => {
    held = held.trimStart()
    if (held === "") return []
    state = "after"
    return text(held)
  }

  const flush = (): ReadonlyArray<Response.StreamPartEncoded> => {
    const rest = held
    const before = state
    held = ""
    state = "after"
    if (before === "after") return []
    return before === "thinking" ? [...thought(rest), { type: "reasoning-end", id }] : text(rest)
  }

  const take = { start, silent, speaking: speak, thinking: think, closed }

  return (part: Response.StreamPartEncoded): ReadonlyArray<Response.StreamPartEncoded> => {
    if (state === "after") return [part]
    if (part.type === "text-delta") {
      textId = part.id
      held += part.delta
      return take[state]()
    }
    return part.type === "tool-call" || part.type === "finish" ? [...flush(), part] : [part]
  }
}

/** Whether a text ends inside a block of code. */
const isFenced = (text: string): boolean => (text.split("```").length - 1) % 2 === 1

/** How many characters at the end of a piece may be the beginning of the closing tag, or of an opening one. */
const openEnd = (piece: string): number => {
  for (let length = Math.min(close.length - 1, piece.length); length > 0; length--) {
    const end = piece.slice(-length)
    if (close.startsWith(end) || open.startsWith(end)) return length
  }
  return 0
}
