/**
 * Reads what a model thinks aloud as reasoning: text in the marks of its chat template at the beginning of an answer.
 *
 * Local servers send it so where they have no parser for the model (llama.cpp, Ollama, vLLM without a reasoning parser). What
 * opens with a mark is held back until the mark closes; a mark that does not close, or that the answer speaks of, is text. Some
 * chat templates hold the opening tag themselves, so an answer has `</think>` alone. The first such answer of a model
 * has gone on as text before that is clear: `spokenThinking` marks where its thinking ended. Later ones are held back. A tag that
 * neither begins nor ends a line, or is in a block of code, is spoken of and ends nothing.
 */
import type { Response } from "effect/ai"
import { modelLimits } from "../limits.ts"

/** How a model's thinking is marked. */
interface Mark {
  readonly open: string
  readonly close: string
}

const think: Mark = { open: "<think>", close: "</think>" }

/** The control tokens of gpt-oss: its channels follow one another, and the final one is the answer. */
const harmony: ReadonlyArray<Mark> = ["", "<|start|>assistant"].flatMap((begin) =>
  ["analysis", "commentary", "final"].map((channel) => ({
    open: `${begin}<|channel|>${channel}<|message|>`,
    close: channel === "final" ? "" : "<|channel|>final<|message|>"
  }))
)
const controlTokens = /(?:<\|(?:end|start|channel|message)\|>(?:assistant|analysis|commentary|final)?)+/g
const endTokens = /<\|(?:return|end)\|>\s*$/
const endTokenMaxChars = "<|return|>\n".length

/** Of Qwen, DeepSeek and most others; of models that learned from Claude or Gemini; of Magistral, Kimi-VL, Seed-OSS and gpt-oss. */
const marks: ReadonlyArray<Mark> = [
  think,
  { open: "<thinking>", close: "</thinking>" },
  { open: "<reasoning>", close: "</reasoning>" },
  { open: "<thought>", close: "</thought>" },
  { open: "[THINK]", close: "[/THINK]" },
  { open: "◁think▷", close: "◁/think▷" },
  { open: "<seed:think>", close: "</seed:think>" },
  ...harmony
]

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

type Parts = ReadonlyArray<Response.StreamPartEncoded>

/** Makes a reader for one answer; a part that is no text ends what is held back. */
export const makeThinkTagReader = ({ closedAlone, mayCloseAlone, opensSilently }: ThinkTagHabits) => {
  let state: "start" | "silent" | "thinking" | "overflowing" | "speaking" | "closed" | "ending" | "after" =
    "start"
  let mark = think
  let held = ""
  /** How much of what is held has no closing mark. */
  let searched = 0
  let textId = ""
  /** What has gone on as text so far. */
  let soFar = ""
  const text = (delta: string): Parts => (delta === "" ? [] : [{ type: "text-delta", id: textId, delta }])
  const thought = (delta: string): Parts => (delta === "" ? [] : [{ type: "reasoning-delta", id, delta }])
  const thoughtWhole = (words: string): Parts => [
    { type: "reasoning-start", id },
    ...thought(harmony.includes(mark) ? words.replace(controlTokens, "\n").trim() : words),
    { type: "reasoning-end", id }
  ]
  /** Shows that the model is alive while its thinking is held back. */
  const alive: Parts = [{ type: "reasoning-delta", id, delta: "" }]

  const start = (): Parts => {
    const said = held.trimStart()
    const found = marks.find(({ open }) => said.startsWith(open))
    if (found !== undefined) {
      mark = found
      state = "thinking"
      held = said.slice(found.open.length)
      return thinking()
    }
    if (marks.some(({ open }) => open.startsWith(said))) return []
    if (!mayCloseAlone) {
      state = "after"
      return text(held)
    }
    state = opensSilently ? "silent" : "speaking"
    return opensSilently ? silent() : speak()
  }

  /** Holds back what is thought; beyond the bound it is reasoning, whether its mark closes or not. */
  const thinking = (): Parts => {
    const end = held.indexOf(mark.close, Math.max(0, searched - mark.close.length))
    if (end >= 0) {
      const words = held.slice(0, end)
      if (isJoining(words)) return spoken()
      const parts = words === "" && mark.close === "" ? [] : thoughtWhole(words)
      return [...parts, ...closeAt(end, mark.close)]
    }
    searched = held.length
    if (held.length <= modelLimits.answerPartsMaxChars) return alive
    state = "overflowing"
    return [{ type: "reasoning-start", id }, ...overflow()]
  }

  /** The answer speaks of the mark with which it begins. */
  const spoken = (): Parts => {
    state = "after"
    return text(mark.open + held)
  }

  /** Holds the answer back until its thinking ends; an answer that never ends it is text. */
  const silent = (): Parts => {
    const end = held.indexOf(think.close)
    if (end >= 0) return [...thoughtWhole(held.slice(0, end)), ...closeAt(end, think.close)]
    if (held.length <= modelLimits.answerPartsMaxChars) return alive
    state = "after"
    return text(held)
  }

  const speak = (): Parts => {
    const end = held.indexOf(think.close)
    if (end < 0) {
      const sure = held.length - openEnd(held)
      const delta = held.slice(0, sure)
      // An answer that opens the tag itself, in its midst, speaks of tags.
      if (delta.includes(think.open)) {
        state = "after"
        return text(held)
      }
      held = held.slice(sure)
      soFar += delta
      return text(delta)
    }
    const before = held.slice(0, end)
    const after = held.slice(end + think.close.length)
    const isAtLineStart = /(?:^|\n)[ \t]*$/.test(soFar + before)
    if (!isAtLineStart && /^[ \t]*$/.test(after)) {
      held = held.slice(end)
      soFar += before
      return text(before)
    }
    const isOnLine = isAtLineStart || /^[ \t]*\r?\n/.test(after)
    if (!isOnLine || isFenced(soFar + before) || before.includes(think.open)) {
      state = "after"
      return text(held)
    }
    closedAlone()
    return [...text(before), { type: "reasoning-end", id: spokenThinking }, ...closeAt(end, think.close)]
  }

  const overflow = (): Parts => {
    const end = held.indexOf(mark.close)
    if (end < 0) {
      // The end of a piece may be the beginning of the closing mark.
      const sure = Math.max(0, held.length - mark.close.length + 1)
      const delta = held.slice(0, sure)
      held = held.slice(sure)
      return thought(delta)
    }
    return [...thought(held.slice(0, end)), { type: "reasoning-end", id }, ...closeAt(end, mark.close)]
  }

  const closeAt = (end: number, close: string): Parts => {
    state = "closed"
    held = held.slice(end + close.length)
    return closed()
  }

  /** The line breaks before the answer belong to the mark, in whatever pieces they come. */
  const closed = (): Parts => {
    held = held.trimStart()
    if (held === "") return []
    if (harmony.includes(mark)) {
      state = "ending"
      return ending()
    }
    state = "after"
    return text(held)
  }

  /** Holds back what may be the token that ends the answer. */
  const ending = (): Parts => {
    const token = held.lastIndexOf("<")
    const sure = token >= 0 && held.length - token < endTokenMaxChars ? token : held.length
    const delta = held.slice(0, sure)
    held = held.slice(sure)
    return text(delta)
  }

  /** What is left when the answer ends; one that was cut was still thinking. */
  const flush = (isCut: boolean): Parts => {
    const rest = held
    const before = state
    held = ""
    state = "after"
    if (before === "after") return []
    if (before === "overflowing") return [...thought(rest), { type: "reasoning-end", id }]
    if (before === "ending") return text(rest.replace(endTokens, ""))
    if (before !== "thinking") return text(rest)
    const isThought = isCut || harmony.includes(mark) || /^[ \t]*\r?\n/.test(rest)
    return isThought ? thoughtWhole(rest) : text(mark.open + rest)
  }

  const take = { start, silent, speaking: speak, thinking, overflowing: overflow, closed, ending }

  return (part: Response.StreamPartEncoded): Parts => {
    if (state === "after") return [part]
    if (part.type === "text-delta") {
      textId = part.id
      held += part.delta
      return take[state]()
    }
    if (part.type === "tool-call") return [...flush(true), part]
    return part.type === "finish" ? [...flush(part.reason === "length"), part] : [part]
  }
}

/** Whether two marks are only named side by side. */
const isJoining = (words: string): boolean =>
  /^[ \t]*(?:and|or|to|und|oder|with|[,/|&…–-]|\.{3})[ \t]*$/i.test(words)

/** Whether a text ends inside a block of code. */
const isFenced = (text: string): boolean => (text.split("```").length - 1) % 2 === 1

/** How many characters at the end of a piece may be the beginning of the closing tag, or of an opening one. */
const openEnd = (piece: string): number => {
  for (let length = Math.min(think.close.length - 1, piece.length); length > 0; length--) {
    const end = piece.slice(-length)
    if (think.close.startsWith(end) || think.open.startsWith(end)) return length
  }
  return 0
}
