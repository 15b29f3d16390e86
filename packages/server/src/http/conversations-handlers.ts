/**
 * Conversations: begun, and one's own listed, renamed, deleted, read and exported.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * To whoever may not read one it is not there; an admin may read any, and only
 * the person whose it is may change it. What works in one that is deleted is stopped
 * with it.
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal, type Principal } from "@tropism/api/authorization"
import { Forbidden, NotFound } from "@tropism/api/problems"
import type { Conversation } from "@tropism/domain/conversation"
import type { ContextName } from "@tropism/domain/context-event"
import { AgentId, type ConversationId, type ProjectId } from "@tropism/domain/ids"
import { Effect, Option, Schema, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agent/agents.ts"
import { conversationPlaces, Conversations } from "../chat/conversations.ts"
import { messagePlaces, Messages } from "../chat/messages.ts"
import { Database } from "../database/database.ts"
import { slowlyRead } from "../database/slow-readers.ts"
import { conversationLimits, transferLimits } from "../limits.ts"
import { Descendants } from "../run/descendants.ts"
import { inProject, reading } from "./access.ts"
import { onTag, taggedByDigest } from "./conditions.ts"
import { cancelWorkIn } from "./cancelling.ts"
import { pageByPlace } from "./paging.ts"
import { currentLoss } from "./permits.ts"
import { invalid, keepable, orNotFound } from "./refusals.ts"

const known = orNotFound("conversation")
const isAgentId = Schema.is(AgentId)

/** A conversation that the principal may read. */
const readable = (id: ConversationId) =>
  Effect.gen(function* () {
    const conversations = yield* Conversations
    const { role, userId } = yield* CurrentPrincipal
    const found = yield* conversations.look(id)
    return found && (found.owner === userId || role === "admin") ? found : undefined
  }).pipe(known)

/** Changes a conversation of the principal's own, as they know it; whoever may only read it is told so. */
const changing = <A, R>(
  id: ConversationId,
  { userId }: Principal,
  headers: { readonly "if-match"?: string | undefined },
  change: Effect.Effect<A | undefined, never, R>
) =>
  Effect.gen(function* () {
    const conversations = yield* Conversations
    const { owner } = yield* readable(id)
    if (owner !== userId)
      return yield* new Forbidden({ detail: `This conversation is ${owner}'s: only they may change it` })
    return yield* onTag(headers, known(conversations.find(id, userId)), known(change))
  })

export const conversationsHandlers = HttpApiBuilder.group(Api, "conversations", (handlers) =>
  handlers
    .handleAll({
      list: Effect.fn("http.conversations.list")(function* ({ params, query }) {
        const conversations = yield* Conversations
        const { userId } = yield* CurrentPrincipal
        return yield* reading(
          params.projectId,
          pageByPlace(query, conversationPlaces, (after, limit) =>
            conversations.list(userId, query.agentId, after, limit)
          )
        )
      }),
      begin: Effect.fn("http.conversations.begin")(function* ({ params, payload: { agentId, title } }) {
        yield* keepable({ title })
        const agents = yield* Agents
        const conversations = yield* Conversations
        return yield* inProject(params.projectId, "editor", ({ userId }) =>
          Effect.gen(function* () {
            const agent = isAgentId(agentId) ? yield* agents.get(agentId) : undefined
            if (!agent) return yield* new NotFound({ detail: `There is no agent ${agentId}` })
            const called = title ?? `Conversation with ${agent.name}`
            return yield* Effect.mapError(conversations.begin(agent, called, userId), ({ detail }) =>
              invalid("/agentId", detail)
            )
          })
        )
      }),
      get: Effect.fn("http.conversations.get")(function* ({ params }) {
        const { conversation } = yield* reading(params.projectId, readable(params.conversationId))
        return yield* taggedByDigest(conversation)
      }),
      rename: Effect.fn("http.conversations.rename")(function* ({ params, headers, payload }) {
        yield* keepable(payload)
        const conversations = yield* Conversations
        const { conversationId: id, projectId } = params
        const renamed = inProject(projectId, "editor", (principal) =>
          changing(id, principal, headers, conversations.rename(id, principal.userId, payload.title))
        )
        return yield* Effect.flatMap(renamed, taggedByDigest)
      }),
      delete: Effect.fn("http.conversations.delete")(function* ({ params, headers }) {
        const conversations = yield* Conversations
        const descendants = yield* Descendants
        const { conversationId: id, projectId } = params
        const stopped = yield* inProject(projectId, "editor", (principal) =>
          // The conversation is held since it is deleted, so nothing that is said in it begins behind this.
          Effect.flatMap(
            changing(id, principal, headers, conversations.remove(id, principal.userId)),
            ({ contextName }) =>
              cancelWorkIn(contextName, { by: principal.userId, because: "Its conversation was deleted" })
          )
        )
        if (stopped) yield* descendants.cancelBelow(projectId, stopped)
      }),
      messages: Effect.fn("http.conversations.messages")(function* ({ params, query }) {
        const messages = yield* Messages
        return yield* reading(
          params.projectId,
          Effect.flatMap(readable(params.conversationId), ({ conversation }) =>
            pageByPlace(query, messagePlaces, (after, limit) =>
              messages.list(conversation.contextName, after, limit)
            )
          )
        )
      })
    })
    .handleRaw(
      "export",
      Effect.fn("http.conversations.export")(function* ({ params: { conversationId, projectId } }) {
        const { conversation } = yield* reading(projectId, readable(conversationId))
        const document = exported(conversation, yield* allMessages(projectId, conversation.contextName))
        const lost = yield* currentLoss(projectId)
        const lines = slowlyRead({
          name: "export",
          advice: "Read it faster.",
          maxMs: transferLimits.exportMaxMs,
          lost,
          // One that is not whole is no JSON as a whole that anybody takes for all of it.
          failedLine: (error, reason) => `\n${JSON.stringify({ error, reason })}\n`,
          write: (offer) => Stream.runForEach(document, offer)
        })
        return HttpServerResponse.stream(lines, {
          contentType: "application/json",
          headers: { "content-disposition": `attachment; filename="conversation-${conversationId}.json"` }
        })
      })
    )
)

/** Every message as JSON, read a page at a time while it is sent. */
const allMessages = Effect.fnUntraced(function* (projectId: ProjectId, name: ContextName) {
  const database = yield* Database
  const messages = yield* Messages
  const { exportPageMessages } = conversationLimits
  return Stream.paginate(undefined, (after: string | undefined) =>
    Effect.map(database.inProject(projectId, messages.list(name, after, exportPageMessages)), (page) => [
      page.map(({ item }) => JSON.stringify(item)),
      page.length < exportPageMessages ? Option.none() : Option.fromNullishOr(page.at(-1)?.place)
    ])
  )
})

/** The document of a conversation. */
const exported = (conversation: Conversation, messages: Stream.Stream<string>): Stream.Stream<string> => {
  const head = JSON.stringify(conversation).slice(0, -1)
  return Stream.make(`${head},"messages":[`).pipe(
    Stream.concat(Stream.intersperse(messages, ",")),
    Stream.concat(Stream.make("]}"))
  )
}
