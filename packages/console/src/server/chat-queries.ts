/**
 * Reads of conversations and what was said in them.
 */
import type { Page } from "@tropism/api/page"
import type { Conversation, ConversationMessage } from "@tropism/domain/conversation"
import { queryOptions } from "@tanstack/react-query"
import { Effect } from "effect"
import { limits } from "../limits.ts"
import { reading } from "./reading.ts"
import { call, inProject, queryText } from "./request.ts"

export const conversationsQuery = (projectId: string) =>
  reading<Page<Conversation>>({
    projectId,
    key: ["conversations"],
    path: "conversations",
    parameters: { limit: limits.rowsPerPage }
  })

export const conversationQuery = (projectId: string, conversationId: string) =>
  reading<Conversation>({
    projectId,
    key: ["conversations", conversationId],
    path: `conversations/${encodeURIComponent(conversationId)}`
  })

/** What was said, the oldest first; `isWhole` is false where more was said than is shown. */
export interface Messages {
  readonly messages: ReadonlyArray<ConversationMessage>
  readonly isWhole: boolean
}

/** Read again by itself: soon while an answer is missing, else now and then, for what is said elsewhere. */
export const messagesQuery = (projectId: string, conversationId: string) =>
  queryOptions({
    queryKey: [projectId, "conversations", conversationId, "messages"],
    queryFn: ({ signal }) => Effect.runPromise(readMessages(projectId, conversationId), { signal }),
    refetchInterval: (query) =>
      query.state.data?.messages.at(-1)?.role === "user"
        ? limits.wokenRefreshMs
        : limits.longListRefreshIntervalMs
  })

const readMessages = Effect.fnUntraced(function* (projectId: string, conversationId: string) {
  const messages: Array<ConversationMessage> = []
  let cursor: string | undefined
  for (let page = 0; page < limits.maxMessagePages; page++) {
    const read = yield* call<Page<ConversationMessage>>(
      inProject(
        projectId,
        `conversations/${encodeURIComponent(conversationId)}/messages${queryText({ limit: limits.rowsPerPage, cursor })}`
      )
    )
    messages.push(...read.items)
    if (read.nextCursor === null) return { messages, isWhole: true } satisfies Messages
    cursor = read.nextCursor
  }
  return { messages, isWhole: false } satisfies Messages
})
