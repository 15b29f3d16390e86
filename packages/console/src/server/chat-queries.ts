/**
 * Reads of conversations and what was said in them.
 */
import type { Page } from "@tropism/api/page"
import type { Conversation, ConversationMessage } from "@tropism/domain/conversation"
import { limits } from "../limits.ts"
import { reading } from "./reading.ts"

export const conversationsQuery = (projectId: string) =>
  reading<Page<Conversation>>({
    projectId,
    key: ["conversations"],
    path: "conversations",
    parameters: { limit: limits.rowsPerPage }
  })

export const messagesQuery = (projectId: string, conversationId: string) =>
  reading<Page<ConversationMessage>>({
    projectId,
    key: ["conversations", conversationId, "messages"],
    path: `conversations/${encodeURIComponent(conversationId)}/messages`,
    parameters: { limit: limits.rowsPerPage }
  })
