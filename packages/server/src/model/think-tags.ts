/**
 * Reads what a model thinks aloud as reasoning: text in `<think>` tags at the beginning of an answer.
 *
 * Local servers send it so where they have no parser for the model (llama.cpp, Ollama, vLLM without a reasoning parser).
 */
import type { Response } from "effect/ai"

const open = "<think>"
const close = "</think>"
const id = "think"

/** Makes a reader for one answer; a part that is no text ends what is held back. */
export const makeThinkTagReader = () => {
  let state: "start" | "thinking" | "after" = "start"
  let held = ""
  let textId = ""
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
    state = "after"
    return text(held)
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
    const rest = held.slice(end + close.length).trimStart()
    const parts = [...thought(held.slice(0, end)), { type: "reasoning-end" as const, id }]
    state = "after"
    return [...parts, ...text(rest)]
  }

  const flush = (): ReadonlyArray<Response.StreamPartEncoded> => {
    const rest = held
    const before = state
    held = ""
    if (before === "after") return []
    state = "after"
    return before === "start" ? text(rest) : [...thought(rest), { type: "reasoning-end", id }]
  }

  return (part: Response.StreamPartEncoded): ReadonlyArray<Response.StreamPartEncoded> => {
    if (state === "after") return [part]
    if (part.type === "text-delta") {
      textId = part.id
      held += part.delta
      return state === "start" ? start() : think()
    }
    return part.type === "tool-call" || part.type === "finish" ? [...flush(), part] : [part]
  }
}
