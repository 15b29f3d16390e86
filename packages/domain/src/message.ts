/**
 * One message of a prompt, in the JSON form that effect's `Prompt` decodes.
 *
 * The reducer makes these and the model stage decodes them; they are plain
 * JSON here because this package imports only effect's root modules. A tool
 * call and its result are one unit: no prompt has one without the other.
 */
import type { Schema } from "effect"
import type { AnswerPart } from "./answer-part.ts"
import type { Coerced } from "./coerced.ts"

export interface ToolCall {
  readonly id: string
  readonly name: string
  /** What the model sent, decoded; text that was no JSON stays text and is refused by the tool. */
  readonly arguments: Schema.Json
  /** Why what the model sent is not what a tool can be given, in a sentence for the model. */
  readonly fault?: string
  /** Where the name is one that the context defines: what a call of it is a call of. */
  readonly standsFor?: StandsFor
}

/** A call with the text of the answer that asked for it. */
export interface SpokenCall extends ToolCall {
  readonly words?: string
  /** What was put right in its arguments; absent where they are as the model sent them. */
  readonly coerced?: Coerced
}

/** What a call of a defined tool is a call of. */
export interface StandsFor {
  readonly tool: string
  /** The model's arguments with the given ones, which win. */
  readonly arguments: Schema.Json
  /** The names of those that were given. */
  readonly given: ReadonlyArray<string>
}

export type Message =
  | { readonly role: "system"; readonly content: string }
  | {
      readonly role: "user"
      readonly content: string | ReadonlyArray<UserPart>
      /** There where nobody says the words here: they are quoted from elsewhere. */
      readonly options?: typeof quoted
    }
  | {
      readonly role: "assistant"
      readonly content: ReadonlyArray<AssistantPart>
      /** Present if the message is quoted from elsewhere, or if its model needs parts of it in later requests. */
      readonly options?: typeof quoted | Answered
    }
  | { readonly role: "tool"; readonly content: ReadonlyArray<ToolResultPart> }

/** Marks a message whose words are quoted; no provider is sent it. */
export const quoted = { tropism: { isQuoted: true } } as const

/** The model that produced an answer, and its parts for later requests to that model. */
export type Answered = {
  readonly tropism: { readonly model: string; readonly parts?: ReadonlyArray<AnswerPart> }
}

/** Whether the words of a message were said elsewhere. */
export const isQuoted = (message: Message): boolean =>
  "options" in message && message.options !== undefined && "isQuoted" in message.options.tropism

/** The reasoning that a message carries for its model. */
export const reasoningIn = (message: Message): ReadonlyArray<string> =>
  message.role === "assistant" && message.options !== undefined && "model" in message.options.tropism
    ? (message.options.tropism.parts ?? []).flatMap((part) => (part.type === "reasoning" ? [part.text] : []))
    : []

/** Whether a user says a message, here and now. */
export const isSaidByUser = (message: Message): boolean => message.role === "user" && !isQuoted(message)

export type UserPart = { readonly type: "text"; readonly text: string } | FilePart

/** A file; `data` names it by its digest until a model is shown its bytes. */
export type FilePart = {
  readonly type: "file"
  readonly mediaType: string
  readonly fileName?: string
  readonly data: string
}

export type AssistantPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "tool-call"; readonly id: string; readonly name: string; readonly params: Schema.Json }

/** The text of the answer that asked for a call; empty where it had none. */
export const wordsBeside = (messages: ReadonlyArray<Message>, callId: string): string => {
  const answer = messages.findLast(
    (message): message is Extract<Message, { readonly role: "assistant" }> =>
      message.role === "assistant" &&
      message.content.some((part) => part.type === "tool-call" && part.id === callId)
  )
  return (answer?.content ?? []).flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
}

export interface ToolResultPart {
  readonly type: "tool-result"
  readonly id: string
  readonly name: string
  readonly isFailure: boolean
  readonly result: Schema.Json
  /** Present if the tool answered pictures, which the result names. */
  readonly options?: Pictured
}

/** The pictures of a tool's result; each provider has its own place for them. */
export type Pictured = { readonly tropism: { readonly pictures: ReadonlyArray<FilePart> } }

/** The pictures of a result. */
export const picturesIn = ({ options }: ToolResultPart): ReadonlyArray<FilePart> =>
  options?.tropism.pictures ?? []
