/**
 * Chat endpoints: one request sends a message and returns the answer, whole or streamed.
 *
 * **Invariant**: the message is stored before anything is answered. A client that disconnects or does not wait cancels nothing, and a
 * repeat under the same key gets the same answer.
 */
import { createHash } from "node:crypto"
import { Api } from "@tropism/api/api"
import { attachmentMaxBytes } from "@tropism/api/attachments-api"
import { CurrentPrincipal, type Principal } from "@tropism/api/authorization"
import {
  Conflict,
  type InvalidInput,
  NotFound,
  ServerFault,
  type TooManyRequests,
  Unauthorized,
  Unavailable,
  Forbidden
} from "@tropism/api/problems"
import { mimeTypeOf, MimeType, type Digest, findFileFault, isTextual } from "@tropism/domain/attachment"
import { shownCall } from "@tropism/domain/chat-calls"
import type { ContextName } from "@tropism/domain/context-event"
import type { ChatAnswer, Conversation } from "@tropism/domain/conversation"
import { AgentId, type ConversationId, type ProjectId } from "@tropism/domain/ids"
import { textFault } from "@tropism/domain/json"
import { Cause, Effect, Option, Schema, Stream, Result } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { Agents } from "../agents/agents.ts"
import {
  type ChatPart,
  Chatting,
  type NotSaid,
  type Said,
  type SayingRefused,
  unheard,
  messagePlaces,
  Messages
} from "../chat/chat.ts"
import { conversationPlaces, Conversations } from "../chat/conversations.ts"
import { chatLimits } from "../chat/limits.ts"
import { Attachments } from "../contexts/attachments.ts"
import { CrashPoint } from "../crash-point.ts"
import { isBrokenByAway } from "../database/connection-errors.ts"
import { Database } from "../database/database.ts"
import { slowlyRead } from "../database/export-backpressure.ts"
import { conversationLimits, transferLimits, agentLimits } from "../limits.ts"
import { Descendants } from "../runs/sub-runs.ts"
import { inProject, currentLoss, reading, looking, readableFile } from "./access.ts"
import { CurrentKey, asking } from "./idempotency.ts"
import { Closing, stoppedResponse, stopsWith } from "./listener.ts"
import { onTag, taggedByDigest, pageByPlace, taggedFile } from "./paging.ts"
import { answerProblem, invalid, keepable, triggerProblem, orNotFound } from "./problems.ts"
import { saysBytes, tooLarge, readText } from "./request-validation.ts"
import { cancelWorkIn } from "./runs-routes.ts"
import { streamHeaders, wantsStream } from "./streams.ts"

const isAgentId = Schema.is(AgentId)

export const chatHandlers = HttpApiBuilder.group(Api, "chat", (handlers) =>
  handlers.handle(
    "send",
    Effect.fn("http.chat.send")(function* ({ params: { projectId }, payload, query }) {
      yield* keepable(payload)
      const { conversationId, conversation_id: sameId } = payload
      if (conversationId && sameId && conversationId !== sameId)
        return yield* invalid(
          "/conversation_id",
          "It names another conversation than conversationId: send one of them"
        )
      const { agentId } = payload
      const chatting = yield* Chatting
      const said = yield* inProject(projectId, "editor", ({ userId }) =>
        agentId !== undefined && agentId !== null && !isAgentId(agentId)
          ? Effect.fail(new NotFound({ detail: `There is no agent ${agentId}` }))
          : Effect.catch(
              chatting.say({
                by: userId,
                message: payload.message,
                conversationId: conversationId ?? sameId ?? undefined,
                agentId: agentId ?? undefined
              }),
              chatProblem
            )
      )
      yield* CrashPoint.hit("chat.afterCommit")
      const waits = query.wait !== "false"
      const lost = yield* currentLoss(projectId)
      const { lastCall } = yield* Closing
      if (yield* wantsStream) {
        const parts = chatting.answering(projectId, said, waits ? chatLimits.streamWaitMs : 0)
        return streamed(parts, said, lost, lastCall)
      }
      const answered = (whole: ChatAnswer) =>
        Effect.orDie(HttpServerResponse.json(whole, { status: whole.status === "working" ? 202 : 200 }))
      // After an error, a client without a key would send the message again.
      const isKeyed = (yield* CurrentKey) !== undefined
      return yield* Effect.raceAllFirst([
        Effect.flatMap(chatting.answer(projectId, said, waits ? chatLimits.waitMs : 0), answered),
        Effect.andThen(lost, Effect.fail(lostToken)),
        Effect.andThen(lastCall, isKeyed ? stoppedResponse(goesOn) : answered(unheard(said)))
      ])
    })
  )
)

/** Maps a refused message to a problem. */
const chatProblem = (
  refusal: NotSaid
): Effect.Effect<
  never,
  Conflict | InvalidInput | NotFound | TooManyRequests,
  HttpServerRequest.HttpServerRequest
> => {
  switch (refusal._tag) {
    case "TriggerRefused":
      return triggerProblem(refusal)
    case "SayingRefused":
      return Effect.fail(sayingProblem(refusal))
    case "AnswerRefused":
      return Effect.fail(
        refusal.reason === "noOption" || refusal.reason === "tooLong"
          ? invalid("/message", refusal.detail)
          : answerProblem(refusal)
      )
    case "PromptFailed":
      return Effect.fail(new Conflict({ reason: "state", detail: refusal.detail }))
  }
}

const sayingProblem = ({ detail, reason }: SayingRefused) => {
  switch (reason) {
    case "noConversation":
    case "noAgent":
      return new NotFound({ detail })
    case "blank":
      return invalid("/message", detail)
    default:
      return invalid("/agentId", detail)
  }
}

/** The answer to a waiting caller whose token may no longer read the answer. */
const lostToken = new Unauthorized({
  detail:
    "Your token is not good any more, or has another role by now: your message is kept and will be answered"
})

/** The answer to a waiting caller when the server stops first. */
const goesOn =
  "The server stops before the answer is there, and the agent goes on at another one: send the message again under the same Idempotency-Key if it had one, else read the conversation"

/**
 * The answer as server-sent events, with a heartbeat comment while it is quiet; a caller who loses authorization is cut off.
 *
 * A stopping server streams for as long as it can, then sends a last event that the answer does not end here.
 */
const streamed = (
  parts: Stream.Stream<ChatPart>,
  said: Said,
  lost: Effect.Effect<void>,
  lastCall: Effect.Effect<void>
) =>
  HttpServerResponse.stream(
    Stream.make(
      sent("begun", {
        conversationId: said.conversationId,
        conversation_id: said.conversationId
      })
    ).pipe(
      Stream.concat(
        Stream.map(Stream.interruptWhen(parts, lost), sentPart).pipe(
          Stream.merge(Stream.fromEffect(Effect.as(lastCall, sentLast(stopsWith(goesOn)))), {
            haltStrategy: "either"
          })
        )
      ),
      Stream.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Stream.failCause(cause) : Stream.fromEffect(faulty(cause))
      ),
      Stream.merge(heartbeats, { haltStrategy: "left" }),
      Stream.encodeText
    ),
    { contentType: "text/event-stream", headers: streamHeaders }
  )

const sentPart = (part: ChatPart): string => {
  switch (part.type) {
    case "words":
      return sent("words", { text: part.text })
    case "toolCall": {
      const { callId, status } = part.call
      return sent("toolCall", { callId, status, ...shownCall(part.call) })
    }
    case "done":
      return sent("done", part.answer)
  }
}

/** The last event of a stream that breaks. The message is stored, so a repeat under the same key returns the answer. */
const faulty = (cause: Cause.Cause<unknown>) =>
  isBrokenByAway(cause)
    ? Effect.succeed(sentLast(new Unavailable({ detail: `The database does not answer. ${isKept}` })))
    : Effect.as(
        Effect.logError("A chat's stream failed", cause),
        sentLast(new ServerFault({ detail: isKept }))
      )

const isKept =
  "Your message is kept and will be answered: send it again under the same Idempotency-Key, or read the conversation"

const sentLast = ({ detail, status, title, type }: ServerFault | Unavailable): string =>
  sent("error", { type, title, status, detail })

const sent = (name: string, json: unknown): string => `event: ${name}\ndata: ${JSON.stringify(json)}\n\n`

const heartbeats = Stream.paginate(undefined, () =>
  Effect.as(Effect.sleep(chatLimits.heartbeatIntervalMs), [
    [": heartbeat\n\n"],
    Option.some(undefined)
  ] as const)
)

// Conversations: start one; list, rename, delete, read and export one's own.
//
// A caller who may not read a conversation gets a 404. An admin may read any; only its owner may change it. Deleting one stops its runs.

const known = orNotFound("conversation")

/** A conversation that the principal may read. */
const readable = (id: ConversationId) =>
  Effect.gen(function* () {
    const conversations = yield* Conversations
    const { role, userId } = yield* CurrentPrincipal
    const found = yield* conversations.look(id)
    return found && (found.owner === userId || role === "admin") ? found : undefined
  }).pipe(known)

/** Changes a conversation of the principal, at the version it knows; a caller who may only read it gets a 403. */
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
          // The conversation stays locked after the delete, so no message can start work in it.
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
          // An error line makes a truncated export invalid JSON, so it cannot be mistaken for a complete one.
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

/** Every message as JSON, read page by page while it is sent. */
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

/** The export document of a conversation. */
const exported = (conversation: Conversation, messages: Stream.Stream<string>): Stream.Stream<string> => {
  const head = JSON.stringify(conversation).slice(0, -1)
  return Stream.make(`${head},"messages":[`).pipe(
    Stream.concat(Stream.intersperse(messages, ",")),
    Stream.concat(Stream.make("]}"))
  )
}

// Files for agents: upload and download. A download is an attachment and never opens in a page.

export const attachmentsHandlers = HttpApiBuilder.group(Api, "attachments", (handlers) =>
  handlers
    .handle(
      "attach",
      Effect.fn("http.attachments.attach")(function* ({ params, payload, query, request }) {
        // Authorization comes before the first byte is read.
        yield* looking(params.projectId, "editor", Effect.succeed)
        const mimeType = yield* saidType(request.headers["content-type"] ?? "", query.type)
        const bytes = yield* Effect.catch(collect(payload), () => tooLarge(attachmentMaxBytes))
        const file = yield* judged({ bytes, mimeType, untrusted: query.untrusted === "true" }, "type")
        const attachments = yield* Attachments
        // The digest of the bytes identifies a keyed upload.
        return yield* asking(
          [file.digest, mimeType, JSON.stringify(query)],
          inProject(params.projectId, "editor", ({ userId }) =>
            Effect.as(attachments.keep({ ...file, bytes }, userId), {
              ...file,
              fileName: query.fileName ?? null
            })
          )
        )
      })
    )
    .handleRaw(
      "download",
      Effect.fn("http.attachments.download")(function* ({ params }) {
        const attachments = yield* Attachments
        const file = yield* orNotFound("attachment")(
          reading(
            params.projectId,
            readableFile(
              params.digest,
              Effect.map(attachments.load([params.digest]), (files) => files.get(params.digest))
            )
          )
        )
        const answer = HttpServerResponse.uint8Array(file.bytes, {
          contentType: "application/octet-stream",
          headers: {
            "content-disposition": `attachment; filename="${params.digest}"`,
            "x-content-type-options": "nosniff",
            "content-security-policy": "default-src 'none'; sandbox",
            // The bytes of a digest never change, but the right to read them does, so every read is checked.
            "cache-control": "private, no-cache"
          }
        })
        return yield* taggedFile(params.digest, answer)
      })
    )
)

/** The content type of a file: from its header, or from `type` where the header says only bytes. Two different types are refused. */
const saidType = (header: string, type: string | undefined) => {
  const said = saysBytes(header) ? undefined : mimeTypeOf(header)
  const mimeType = said ?? mimeTypeOf(type ?? "")
  if (mimeType === undefined)
    return invalid(
      "type",
      `A file may be ${MimeType.literals.join(", ")}: say which in the header content-type, or as type`
    )
  return type === undefined || mimeTypeOf(type) === mimeType
    ? Effect.succeed(mimeType)
    : invalid(
        "type",
        `The header content-type says that the file is ${mimeType}: leave type out, or say the same`
      )
}

const collect = <E>(payload: Stream.Stream<Uint8Array, E>) =>
  Effect.map(Stream.runCollect(payload), (chunks) => new Uint8Array(Buffer.concat(chunks)))

// Checks that bytes match their declared type and decides the stored type.

/** An uploaded file, and whether its sender marks it as untrusted. */
interface SentFile {
  readonly bytes: Uint8Array
  readonly mimeType: MimeType
  readonly untrusted: boolean
}

/** The file as it is stored; fails at a place of the request if the bytes do not match the declared type. */
export const judged = Effect.fnUntraced(function* ({ bytes, mimeType, untrusted }: SentFile, place: string) {
  const fault = findFileFault(bytes, mimeType)
  if (fault !== undefined) return yield* invalid(place, fault)
  if (isTextual(mimeType)) {
    const text = yield* Effect.mapError(readText(bytes), () => invalid(place, "The file is no UTF-8 text"))
    const unkept = textFault(text)
    if (unkept !== undefined) return yield* invalid(place, unkept)
  }
  const digest = createHash("sha256").update(bytes).digest("hex") as Digest
  return { digest, mimeType, sizeBytes: bytes.length, untrusted }
})

/** Base64 as senders write it: with line breaks, in either alphabet, with or without padding. */
const base64Text = /^[A-Za-z0-9+/_\s-]*={0,2}\s*$/

const dataUrl = /^data:([^;,]*)(?:;[^;,]*)*?;base64,([\s\S]*)$/i

/** Decodes the file in a `data:` URL; a failure explains what is wrong with it. */
export const readDataUrl = (url: string): Result.Result<Pick<SentFile, "bytes" | "mimeType">, string> => {
  const [, said = "", base64 = ""] = dataUrl.exec(url) ?? []
  const mimeType = mimeTypeOf(said)
  if (mimeType === undefined)
    return Result.fail(
      "Send a data: URL in base64 of a picture (PNG, JPEG, GIF, WebP), a PDF, JSON or a text: data:image/png;base64,…"
    )
  if (!base64Text.test(base64))
    return Result.fail(
      "What follows base64, is not base64: it has A to Z, a to z, 0 to 9, + and / (or - and _), with = at its end alone"
    )
  const bytes = new Uint8Array(Buffer.from(base64, "base64"))
  return bytes.length > agentLimits.fileMaxBytes
    ? Result.fail(`A file may have ${agentLimits.fileMaxBytes} bytes`)
    : Result.succeed({ bytes, mimeType })
}
