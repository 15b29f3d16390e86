/**
 * The conversations of the small server: listed, read, renamed, deleted and exported from memory.
 */
import type { Conversation, ConversationMessage } from "@tropism/domain/conversation"
import { ContextEventId, ContextName } from "@tropism/domain/context-event"
import { ConversationId } from "@tropism/domain/ids"
import { at, id } from "./records.ts"

export interface FakeConversation extends Conversation {
  readonly messages: ReadonlyArray<ConversationMessage>
}

export const conversation = (
  number: number,
  title: string,
  messages: ReadonlyArray<Pick<ConversationMessage, "role" | "content"> & Partial<ConversationMessage>> = []
): FakeConversation => ({
  id: ConversationId.make(`00000000-0000-7000-8009-${String(number).padStart(12, "0")}`),
  agentId: id("agent", 1),
  contextName: ContextName.make(`chat-${number}`),
  title,
  createdAt: at(0),
  updatedAt: at(number),
  messages: messages.map((message, index) => ({
    id: ContextEventId.make(`chat-${number}:${index + 1}`),
    toolCalls: [],
    createdAt: at(index),
    ...message
  }))
})

/** Answers what is asked of conversations; nothing where it is about something else. */
export const answerOfConversations = (
  state: { conversations: Array<FakeConversation> },
  line: string,
  query: URLSearchParams,
  body: string
): Response | undefined => {
  const {
    method,
    key,
    verb = ""
  } = /^(?<method>\w+) \/conversations(?:\/(?<key>[^/]+))?(?:\/(?<verb>\w+))?$/.exec(line)?.groups ?? {}
  if (method === undefined) return undefined
  if (key === undefined) {
    const wanted = state.conversations.filter(({ agentId }) => (query.get("agentId") ?? agentId) === agentId)
    return pageOf(wanted.map(head))
  }
  const found = state.conversations.find((one) => one.id === key)
  if (!found) return missing()
  const others = state.conversations.filter((one) => one !== found)
  switch (`${method} ${verb}`) {
    case "GET messages":
      return pageOf(found.messages)
    case "GET export":
      return Response.json(found)
    case "PATCH ": {
      const renamed = { ...found, ...JSON.parse(body) }
      state.conversations = [renamed, ...others]
      return Response.json(head(renamed))
    }
    case "DELETE ":
      state.conversations = others
      return new Response(null, { status: 204 })
    default:
      return Response.json(head(found))
  }
}

const head = ({ messages: _messages, ...conversation }: FakeConversation): Conversation => conversation

const pageOf = (items: ReadonlyArray<unknown>): Response => Response.json({ items, nextCursor: null })

const missing = (): Response =>
  Response.json(
    { type: "/problems/not-found", status: 404, title: "Not found", detail: "There is no such conversation" },
    { status: 404, headers: { "content-type": "application/problem+json" } }
  )
