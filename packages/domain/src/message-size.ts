/**
 * How long messages are for a model, estimated.
 *
 * Every provider counts tokens in its own way and tells so afterwards; a window
 * must be cut before. Four characters are taken for a token, and a file for a
 * fixed number of them, whatever it holds. Only a guess, but always the same one.
 */
import type { Schema } from "effect"
import {
  type AssistantPart,
  type Message,
  picturesIn,
  reasoningIn,
  type ToolResultPart,
  type UserPart
} from "./message.ts"

export const sizeBounds = {
  charsPerToken: 4,
  /** What a provider adds to say who speaks. */
  messageTokens: 4,
  /** About what a picture of middling size, or a page of a document, takes. */
  fileTokens: 1_500
} as const

/** The tokens of a text. */
export const textTokens = (text: string): number => Math.ceil(text.length / sizeBounds.charsPerToken)

/** The tokens of one message. */
export const messageTokens = (message: Message): number =>
  sizeBounds.messageTokens +
  reasoningIn(message).reduce((sum, text) => sum + textTokens(text), 0) +
  (typeof message.content === "string"
    ? textTokens(message.content)
    : message.content.reduce(
        (sum, part: UserPart | AssistantPart | ToolResultPart) => sum + partTokens(part),
        0
      ))

/** The tokens of messages together. */
export const listTokens = (messages: ReadonlyArray<Message>): number =>
  messages.reduce((sum, message) => sum + messageTokens(message), 0)

const partTokens = (part: UserPart | AssistantPart | ToolResultPart): number => {
  switch (part.type) {
    case "text":
      return textTokens(part.text)
    case "file":
      return sizeBounds.fileTokens
    case "tool-call":
      return textTokens(part.id) + textTokens(part.name) + jsonTokens(part.params)
    case "tool-result":
      return (
        textTokens(part.id) +
        textTokens(part.name) +
        jsonTokens(part.result) +
        picturesIn(part).length * sizeBounds.fileTokens
      )
  }
}

const jsonTokens = (value: Schema.Json): number =>
  textTokens(typeof value === "string" ? value : JSON.stringify(value))
