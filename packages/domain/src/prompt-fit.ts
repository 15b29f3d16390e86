/**
 * Makes a prompt fit a number of tokens: the oldest units are left out, then long texts of what remains are shortened.
 *
 * Instructions and the tools stay whole. The same prompt and the same number give the same result,
 * so a record needs the number alone to say what a model was shown.
 */
import { Schema } from "effect"
import { findFit } from "./context-window.ts"
import { foldGrown } from "./grown.ts"
import type { Message, ToolResultPart, UserPart } from "./message.ts"
import { listTokens, messageTokens, sizeBounds } from "./message-size.ts"

/** What a model was not shown of its prompt, because its window is too small. */
export const LeftOut = Schema.Struct({
  /** The oldest messages, left out whole. */
  messages: Schema.Int,
  /** Texts that were cut. */
  texts: Schema.Int,
  /** The estimated tokens of both. */
  tokens: Schema.Int,
  /** What the prompt and the tools had to fit, in estimated tokens. */
  maxTokens: Schema.Int
}).annotate({ identifier: "LeftOut" })
export type LeftOut = typeof LeftOut.Type

/** Bounds of a prompt that is made to fit. */
export const fitBounds = {
  /** A text is not cut shorter than this, so the question stays readable. */
  textMinChars: 400
} as const

export interface Fitted {
  readonly messages: ReadonlyArray<Message>
  /** Estimated, with the tools. */
  readonly tokens: number
  /** Null where the prompt fits as it is. */
  readonly leftOut: LeftOut | null
}

/** The estimated tokens of a prompt; one that grew from an earlier prompt costs what is new. */
export const promptSize = foldGrown<Message, number>(
  () => 0,
  (sum, message) => sum + messageTokens(message)
)

/** Makes messages fit, beside tools of so many tokens; `tokens` says whether they do. */
export const fitPrompt = (
  messages: ReadonlyArray<Message>,
  toolTokens: number,
  maxTokens: number
): Fitted => {
  const all = promptSize(messages) + toolTokens
  if (all <= maxTokens) return { messages, tokens: all, leftOut: null }
  const begin = messages.findIndex(({ role }) => role !== "system")
  const instructions = begin < 0 ? messages : messages.slice(0, begin)
  const said = begin < 0 ? [] : messages.slice(begin)
  const most = maxTokens - toolTokens - listTokens(instructions)
  const cut = findFit(said, Math.max(1, most))
  const kept = cut === undefined ? said : [...cut.carried, ...said.slice(cut.index)]
  const shortened = shorten(kept, most)
  const fitted = [...instructions, ...shortened.messages]
  const tokens = listTokens(fitted) + toolTokens
  const leftOut: LeftOut = {
    messages: said.length - kept.length,
    texts: shortened.texts,
    tokens: all - tokens,
    maxTokens
  }
  return { messages: fitted, tokens, leftOut: tokens < all ? leftOut : null }
}

/** Cuts the longest texts to one length, so that the messages fit. */
const shorten = (
  messages: ReadonlyArray<Message>,
  maxTokens: number
): { readonly messages: ReadonlyArray<Message>; readonly texts: number } => {
  const excess = (listTokens(messages) - maxTokens) * sizeBounds.charsPerToken
  if (excess <= 0) return { messages, texts: 0 }
  const most = lengthThatFits(messages.flatMap(textsOf), excess)
  let texts = 0
  const clip = (text: string): string => {
    if (text.length <= most) return text
    texts += 1
    return `${text.slice(0, most)} … [${text.length - most} more characters are left out: the model's window is too small]`
  }
  return { messages: messages.map((message) => clipped(message, clip)), texts }
}

/** To which length texts are cut, so that together they lose so many characters. */
const lengthThatFits = (texts: ReadonlyArray<string>, excess: number): number => {
  const lengths = texts.map((text) => text.length).toSorted((one, other) => other - one)
  let lost = 0
  for (const [index, length] of lengths.entries()) {
    const next = Math.max(lengths[index + 1] ?? 0, fitBounds.textMinChars)
    const more = (index + 1) * Math.max(0, length - next)
    if (lost + more >= excess) return Math.floor(length - (excess - lost) / (index + 1)) - noteChars
    lost += more
  }
  return fitBounds.textMinChars
}

/** About what the sentence takes that says what is missing. */
const noteChars = 90

const jsonText = (value: Schema.Json): string => (typeof value === "string" ? value : JSON.stringify(value))

/** The texts of a message that may be cut: what users said and what tools answered. */
const textsOf = (message: Message): ReadonlyArray<string> => {
  if (message.role === "user")
    return typeof message.content === "string"
      ? [message.content]
      : message.content.flatMap((part) => (part.type === "text" ? [part.text] : []))
  return message.role === "tool" ? message.content.map(({ result }) => jsonText(result)) : []
}

const clipped = (message: Message, clip: (text: string) => string): Message => {
  if (message.role === "user")
    return {
      ...message,
      content:
        typeof message.content === "string"
          ? clip(message.content)
          : message.content.map((part): UserPart =>
              part.type === "text" ? { ...part, text: clip(part.text) } : part
            )
    }
  if (message.role !== "tool") return message
  return {
    ...message,
    content: message.content.map((part): ToolResultPart => {
      const text = jsonText(part.result)
      const short = clip(text)
      return short === text ? part : { ...part, result: short }
    })
  }
}
