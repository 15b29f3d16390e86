/**
 * What was said in a conversation, a page at a time.
 *
 * Flow: http → **chat** → dispatch → run → tool → task
 *
 * Read out of the log from the place of the page on, so a page costs what is on
 * it and not what the conversation has grown to.
 */
import { type ContextName, decodeEvent } from "@tropism/domain/context-event"
import type { ConversationMessage } from "@tropism/domain/conversation"
import { type PlacedMessage, readEvent, readingAfter, unsaid } from "@tropism/domain/conversation-reading"
import { Context, Effect, Layer } from "effect"
import { Contexts } from "../agent/contexts.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { conversationLimits } from "../limits.ts"

/** A message in the list, and where the list goes on behind it. */
export interface ListedMessage {
  readonly item: ConversationMessage
  readonly place: string
}

/** What a place looks like: after which event, past how many messages. */
export const messagePlaces = /^\d{1,9}\.\d{1,6}$/

export class Messages extends Context.Service<
  Messages,
  {
    /** Messages behind a place, the oldest first; what an agent has done and said nothing of yet comes last. */
    readonly list: (
      name: ContextName,
      after: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<ListedMessage>, never, ProjectTransaction>
  }
>()("@tropism/server/chat/Messages") {
  static readonly layer = Layer.effect(
    Messages,
    Effect.gen(function* () {
      const contexts = yield* Contexts

      const list = Effect.fn("Messages.list")(function* (
        name: ContextName,
        after: string | undefined,
        limit: number
      ) {
        const [from = 0, past = 0] = (after ?? "").split(".").map(Number)
        const messages: Array<PlacedMessage> = []
        let reading = readingAfter(from)
        let next = from
        while (messages.length < past + limit) {
          const page = yield* contexts.read(name, next, conversationLimits.logPageEvents)
          for (const json of page) {
            const step = readEvent(reading, decodeEvent(json))
            if (step.told) messages.push(step.told)
            reading = step.reading
          }
          next += page.length
          if (page.length === conversationLimits.logPageEvents) continue
          messages.push(...[unsaid(reading)].flatMap((told) => told ?? []))
          break
        }
        return messages.slice(past, past + limit).map(toListed)
      })

      return Messages.of({ list })
    })
  )
}

const toListed = ({ after, message, past }: PlacedMessage): ListedMessage => ({
  item: message,
  place: `${after}.${past}`
})
