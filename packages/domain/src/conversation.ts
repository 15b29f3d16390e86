/**
 * A person's conversation with an agent, as a chat shows it (S003-R25…R35, P3-MCP-08).
 *
 * Its truth is the log of a context that belongs to that person; messages and
 * tool calls here are a reading of it and stand nowhere else.
 */
import { Schema } from "effect"
import { ContextEventId, ContextName } from "./event-base.ts"
import { AgentId, ConversationId, RunId, Timestamp } from "./ids.ts"

export const conversationBounds = {
  titleMaxChars: 200,
  ownTitleMaxChars: 80,
  messageMaxChars: 100_000
} as const

export const ConversationTitle = Schema.Trimmed.check(
  Schema.isBetweenLength(1, conversationBounds.titleMaxChars)
).annotate({ description: `1 to ${conversationBounds.titleMaxChars} characters` })

export const Conversation = Schema.Struct({
  id: ConversationId,
  agentId: AgentId,
  /** The context whose log it is. */
  contextName: ContextName,
  title: Schema.String,
  createdAt: Timestamp,
  /** When something was last said in it, or its title changed. */
  updatedAt: Timestamp
}).annotate({ identifier: "Conversation" })
export type Conversation = typeof Conversation.Type

/** A tool call as it is shown to whoever chats; whose it was is on record beside it and never in its arguments (S003-R48). */
export const ChatToolCall = Schema.Struct({
  tool: Schema.String,
  arguments: Schema.Json,
  /** What the tool answered, or `{error, …}`; null while nothing has. */
  result: Schema.NullOr(Schema.Json),
  timestamp: Timestamp
}).annotate({ identifier: "ChatToolCall" })
export type ChatToolCall = typeof ChatToolCall.Type

/** Why an answer is not whole: cut at a limit of output tokens, stopped by the provider's content filter, or paused by the provider. Absent where it is whole. */
export const CutReason = Schema.Literals(["length", "content-filter", "pause"])
export type CutReason = typeof CutReason.Type

export const isCutReason = Schema.is(CutReason)

export const ConversationMessage = Schema.Struct({
  id: ContextEventId,
  role: Schema.Literals(["user", "assistant"]),
  content: Schema.String,
  /** What the agent did for this answer, in order; of a user's message none. */
  toolCalls: Schema.Array(ChatToolCall),
  createdAt: Timestamp,
  finishReason: Schema.optionalKey(CutReason)
}).annotate({ identifier: "ConversationMessage" })
export type ConversationMessage = typeof ConversationMessage.Type

/**
 * How far the answer to a message is.
 *
 * **Details** `waiting`: the agent has asked a person or other agents and rests. `working`: it is not done within the
 * time that a request waits; the messages tell later. `failed` and `interrupted` have a sentence for the user as their
 * response, which no model is ever shown.
 */
export const ChatStatus = Schema.Literals(["completed", "waiting", "working", "interrupted", "failed"])
export type ChatStatus = typeof ChatStatus.Type

export const ChatAnswer = Schema.Struct({
  conversationId: ConversationId,
  status: ChatStatus,
  /** What the agent said last in answer to the message; empty while it has said nothing. */
  response: Schema.String,
  toolCalls: Schema.Array(ChatToolCall),
  finishReason: Schema.optionalKey(CutReason),
  runId: Schema.NullOr(RunId),
  /** `conversationId` in the words of the specification. */
  conversation_id: ConversationId,
  /** `toolCalls` in the words of the specification. */
  tool_calls: Schema.Array(ChatToolCall)
}).annotate({ identifier: "ChatAnswer" })
export type ChatAnswer = typeof ChatAnswer.Type
