/**
 * Extracts reasoning that a model sends as text in its chat template's tags.
 *
 * Local servers without a parser for the model send it so (llama.cpp, Ollama, vLLM). Text after an opening tag is held back until the tag
 * closes; a tag that never closes, or that the answer only mentions, is text. Some chat templates contain the opening tag themselves, so
 * only `</think>` arrives. The first such answer has been delivered as text by then: `spokenThinking` marks where its reasoning ended.
 * Later answers of that model are held back. A tag that neither begins nor ends a line, or is in a code block, is a mention and ends
 * nothing.
 */
import type { Response as AnswerPart } from "effect/ai"
import { modelLimits } from "../limits.ts"

/** The tags of a model's reasoning. */
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

/** The tags of Qwen, DeepSeek and most others; of models trained on Claude or Gemini; of MiniMax, OpenThinker, Command A, Magistral, Kimi-VL, Seed-OSS and
 * gpt-oss. */
const marks: ReadonlyArray<Mark> = [
  think,
  { open: "<thinking>", close: "</thinking>" },
  { open: "<reasoning>", close: "</reasoning>" },
  { open: "<thought>", close: "</thought>" },
  { open: "<thoughts>", close: "</thoughts>" },
  { open: "<analysis>", close: "</analysis>" },
  { open: "<THINK>", close: "</THINK>" },
  { open: "<mm:think>", close: "</mm:think>" },
  { open: "<|begin_of_thought|>", close: "<|end_of_thought|>" },
  { open: "<|START_THINKING|>", close: "<|END_THINKING|>" },
  { open: "[THINK]", close: "[/THINK]" },
  { open: "◁think▷", close: "◁/think▷" },
  { open: "<seed:think>", close: "</seed:think>" },
  ...harmony
]

const id = "think"

/** The id of a `reasoning-end` that turns all text so far into reasoning. */
export const spokenThinking = "think-spoken"

/** What is known about a model's reasoning before it answers. */
export interface ThinkTagHabits {
  /** Whether a closing tag alone ends its reasoning; hosted models only mention such tags. */
  readonly mayCloseAlone: boolean
  /** Whether its answers are known to begin inside the reasoning. */
  readonly opensSilently: boolean
  /** Called at the first closing tag without an opening one. */
  readonly closedAlone: () => void
}

type AnswerParts = ReadonlyArray<AnswerPart.StreamPartEncoded>

/** Creates a reader for one answer; a part that is not text releases held text. */
export const makeThinkingReader = ({ closedAlone, mayCloseAlone, opensSilently }: ThinkTagHabits) => {
  let state: "start" | "silent" | "thinking" | "overflowing" | "speaking" | "closed" | "ending" | "after" =
    "start"
  let mark = think
  let held = ""
  /** Length of the held text that was already searched for the closing tag. */
  let searched = 0
  let textId = ""
  /** The text that was delivered so far. */
  let soFar = ""
  const text = (delta: string): AnswerParts =>
    delta === "" ? [] : [{ type: "text-delta", id: textId, delta }]
  const thought = (delta: string): AnswerParts =>
    delta === "" ? [] : [{ type: "reasoning-delta", id, delta }]
  const thoughtWhole = (words: string): AnswerParts => [
    { type: "reasoning-start", id },
    ...thought(harmony.includes(mark) ? words.replace(controlTokens, "\n").trim() : words),
    { type: "reasoning-end", id }
  ]
  /** Signals progress while reasoning is held back. */
  const alive: AnswerParts = [{ type: "reasoning-delta", id, delta: "" }]

  const start = (): AnswerParts => {
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

  /** Holds reasoning back; beyond the limit it is reasoning whether or not its tag closes. */
  const thinking = (): AnswerParts => {
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

  /** The answer only mentions the tag that it begins with. */
  const spoken = (): AnswerParts => {
    state = "after"
    return text(mark.open + held)
  }

  /** Holds the answer back until its reasoning ends; if it never does, the answer is text. */
  const silent = (): AnswerParts => {
    const end = held.indexOf(think.close)
    if (end >= 0) return [...thoughtWhole(held.slice(0, end)), ...closeAt(end, think.close)]
    if (held.length <= modelLimits.answerPartsMaxChars) return alive
    state = "after"
    return text(held)
  }

  const speak = (): AnswerParts => {
    const end = held.indexOf(think.close)
    if (end < 0) {
      const sure = held.length - openEnd(held)
      const delta = held.slice(0, sure)
      // An answer that contains the opening tag itself only mentions tags.
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

  const overflow = (): AnswerParts => {
    const end = held.indexOf(mark.close)
    if (end < 0) {
      // The end of a piece may be the start of the closing tag.
      const sure = Math.max(0, held.length - mark.close.length + 1)
      const delta = held.slice(0, sure)
      held = held.slice(sure)
      return thought(delta)
    }
    return [...thought(held.slice(0, end)), { type: "reasoning-end", id }, ...closeAt(end, mark.close)]
  }

  const closeAt = (end: number, close: string): AnswerParts => {
    state = "closed"
    held = held.slice(end + close.length)
    return closed()
  }

  /** Line breaks and a second closing tag before the answer belong to the tag, in whatever pieces they come. */
  const closed = (): AnswerParts => {
    held = held.trimStart()
    if (mark.close !== "" && held.startsWith(mark.close)) held = held.slice(mark.close.length).trimStart()
    if (held === "" || mark.close.startsWith(held)) return []
    if (harmony.includes(mark)) {
      state = "ending"
      return ending()
    }
    state = "after"
    return text(held)
  }

  /** Holds back what may be the answer's final token. */
  const ending = (): AnswerParts => {
    const token = held.lastIndexOf("<")
    const sure = token >= 0 && held.length - token < endTokenMaxChars ? token : held.length
    const delta = held.slice(0, sure)
    held = held.slice(sure)
    return text(delta)
  }

  /** Releases the rest at the end; a truncated answer was still reasoning. */
  const flush = (isCut: boolean): AnswerParts => {
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

  return (part: AnswerPart.StreamPartEncoded): AnswerParts => {
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

/** Whether two tags are only mentioned side by side. */
const isJoining = (words: string): boolean =>
  /^[ \t]*(?:and|or|to|und|oder|with|[,/|&…–-]|\.{3})[ \t]*$/i.test(words)

/** Whether a text ends inside a code block. */
const isFenced = (text: string): boolean => (text.split("```").length - 1) % 2 === 1

/** The number of characters at the end of a piece that may begin a tag. */
const openEnd = (piece: string): number => {
  for (let length = Math.min(think.close.length - 1, piece.length); length > 0; length--) {
    const end = piece.slice(-length)
    if (think.close.startsWith(end) || think.open.startsWith(end)) return length
  }
  return 0
}
