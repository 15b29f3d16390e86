/**
 * Chat: one request, one answer, nothing kept in between but the log (S003).
 *
 * A conversation belongs to the person who began it. To everybody else it is
 * not there; only an admin may read it.
 */
import {
  ChatAnswer,
  Conversation,
  conversationBounds,
  ConversationMessage,
  ConversationTitle
} from "@tropism/domain/conversation"
import { AgentId, ConversationId, ProjectId } from "@tropism/domain/ids"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { alsoUnchanged } from "./also-unchanged.ts"
import { alsoStreamed } from "./also-streamed.ts"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { ifMatch } from "./expected-version.ts"
import { Page, PageQuery, told } from "./page.ts"
import {
  Conflict,
  Forbidden,
  InvalidInput,
  NotFound,
  PreconditionFailed,
  TooManyRequests
} from "./problems.ts"

const project = { projectId: ProjectId }
const conversation = { projectId: ProjectId, conversationId: ConversationId }

/** An agent by its id; what is no id names no agent, and is 404 as one that is not there (S003-R53). */
const NamedAgent = Schema.String.check(Schema.isMaxLength(200))

export const ChatInput = Schema.Struct({
  /** A new conversation where it is absent. */
  conversationId: Schema.optional(Schema.NullOr(ConversationId)),
  /** `conversationId` in the words of the specification; one of the two is enough. */
  conversation_id: Schema.optional(Schema.NullOr(ConversationId)),
  /** With whom a new conversation is; TodoAssistant where it is absent. */
  agentId: Schema.optional(Schema.NullOr(NamedAgent)),
  message: Schema.String.check(Schema.isBetweenLength(1, conversationBounds.messageMaxChars))
}).annotate({ identifier: "ChatInput" })
export type ChatInput = typeof ChatInput.Type

export const ConversationInput = Schema.Struct({
  agentId: NamedAgent,
  /** `Conversation with` the agent's name where it is absent. */
  title: Schema.optional(Schema.NullOr(ConversationTitle))
}).annotate({ identifier: "ConversationInput" })

export const ConversationPatch = Schema.Struct({ title: ConversationTitle })

/** A conversation with all that was said in it. */
export const ExportedConversation = Schema.Struct({
  ...Conversation.fields,
  messages: Schema.Array(ConversationMessage)
}).annotate({ identifier: "ExportedConversation" })

export class ChatApi extends HttpApiGroup.make("chat")
  .add(
    /**
     * Says something and waits for the answer; one that is not there at the bound of time, or not waited for, is 202.
     *
     * **Details** With `Accept: text/event-stream` the answer comes as it is made: `begun`, `words`, `toolCall` and at
     * last `done` with the whole. The same message sent again under the same Idempotency-Key is said once, and its
     * answer is told again. To a question of the agent the next message is the answer.
     */
    HttpApiEndpoint.post("send", "/chat", {
      params: project,
      query: {
        wait: told(
          Schema.Literals(["true", "false"]),
          "Whether the answer is waited for, up to a bound; true by itself"
        )
      },
      payload: ChatInput,
      success: [
        ChatAnswer,
        ChatAnswer.annotate({ identifier: "UnfinishedChatAnswer" }).pipe(HttpApiSchema.status(202))
      ],
      error: [NotFound, Forbidden, Conflict, InvalidInput, TooManyRequests]
    }).annotateMerge(alsoStreamed)
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}

export class ConversationsApi extends HttpApiGroup.make("conversations")
  .add(
    /** One's own, the one that was spoken in last first. */
    HttpApiEndpoint.get("list", "/conversations", {
      params: project,
      query: { ...PageQuery, agentId: told(AgentId, "With this agent") },
      success: Page(Conversation),
      error: [NotFound, InvalidInput]
    }),
    /** Begins one in which nothing is said yet; `POST /chat` begins one with its first message. */
    HttpApiEndpoint.post("begin", "/conversations", {
      params: project,
      payload: ConversationInput,
      success: Conversation.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/conversations/:conversationId", {
      params: conversation,
      success: Conversation,
      error: NotFound
    }).annotateMerge(alsoUnchanged),
    HttpApiEndpoint.patch("rename", "/conversations/:conversationId", {
      params: conversation,
      headers: ifMatch,
      payload: ConversationPatch,
      success: Conversation,
      error: [NotFound, Forbidden, InvalidInput, PreconditionFailed]
    }),
    /** It is listed no more and nobody can go on with it; what its agent did stays on record. */
    HttpApiEndpoint.delete("delete", "/conversations/:conversationId", {
      params: conversation,
      headers: ifMatch,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, PreconditionFailed]
    }),
    /** What was said, the oldest first. */
    HttpApiEndpoint.get("messages", "/conversations/:conversationId/messages", {
      params: conversation,
      query: PageQuery,
      success: Page(ConversationMessage),
      error: [NotFound, InvalidInput]
    }),
    /** All of it in one document; one that breaks off, since its reader may have no more of it or takes nothing, is no JSON, and its last line says why. */
    HttpApiEndpoint.get("export", "/conversations/:conversationId/export", {
      params: conversation,
      success: ExportedConversation,
      error: NotFound
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
