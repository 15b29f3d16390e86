/**
 * The messages of a context as effect's `Prompt`, which every model takes.
 *
 * Flow: graph → outbox → dispatch → run → **model** → tool → task
 *
 * A message never changes and each request of a run sends all that went before
 * again, so each is translated once, and the prompt of a request is that of the
 * one before with what is new.
 */
import { mapGrown } from "@tropism/domain/grown"
import type { AssistantPart, Message, UserPart } from "@tropism/domain/message"
import { Effect } from "effect"
import { AiError, Prompt } from "effect/ai"

/** The prompt of a request, equal to what effect makes of the messages in their JSON form. */
export const toPrompt = (messages: ReadonlyArray<Message>): Effect.Effect<Prompt.Prompt, AiError.AiError> =>
  Effect.try({
    try: () => Prompt.fromMessages(translatedOf(messages)),
    catch: () =>
      AiError.make({
        module: "model",
        method: "attempt",
        reason: new AiError.InvalidRequestError({
          description: "The context does not fold to messages a model can be sent"
        })
      })
  })

const translate = (message: Message): Prompt.Message => {
  switch (message.role) {
    case "system":
      return Prompt.makeMessage("system", { content: message.content })
    case "user":
      return Prompt.makeMessage("user", {
        content:
          typeof message.content === "string"
            ? [Prompt.makePart("text", { text: message.content })]
            : message.content.map(toUserPart),
        ...(message.options === undefined ? {} : { options: message.options })
      })
    case "assistant":
      return Prompt.makeMessage("assistant", {
        content: message.content.map(toAssistantPart),
        ...(message.options === undefined ? {} : { options: message.options })
      })
    case "tool":
      return Prompt.makeMessage("tool", {
        content: message.content.map((part) =>
          Prompt.makePart("tool-result", { ...part, providerExecuted: false })
        )
      })
    default:
      message satisfies never
      throw new Error("A log gave a message of nobody")
  }
}

const toUserPart = (part: UserPart): Prompt.UserMessagePart =>
  part.type === "text" ? Prompt.makePart("text", part) : Prompt.makePart("file", part)

const toAssistantPart = (part: AssistantPart): Prompt.AssistantMessagePart =>
  part.type === "text"
    ? Prompt.makePart("text", part)
    : Prompt.makePart("tool-call", { ...part, providerExecuted: false })

const translatedOf = mapGrown(translate)
