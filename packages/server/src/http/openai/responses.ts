/**
 * Responses: a request continues a conversation at a response, which is a position in it.
 *
 * The messages, the position and the Idempotency-Key are one transaction. Continuing from a response that has a successor forks: each of
 * the two conversations contains the common history.
 */
import { CurrentPrincipal, type Role } from "@tropism/api/authorization"
import { type AgentResponse, responseBounds, ResponseInput } from "@tropism/api/openai-responses"
import type { Agent } from "@tropism/domain/agent"
import type { GivenMessage } from "@tropism/domain/given-history"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  Completions,
  type Saying,
  type PlacedResponse,
  Responses,
  type ResponseTerms
} from "../../chat/completions.ts"
import { type ContextHead, helperPrefix } from "../../contexts/contexts.ts"
import { Ids } from "../../ids.ts"
import { Descendants } from "../../runs/sub-runs.ts"
import { inProject, looking } from "../access.ts"
import { keepable } from "../problems.ts"
import { cancelWorkIn } from "../runs-routes.ts"
import { answering, answerSoFar } from "./answers.ts"
import { openAiFault } from "./faults.ts"
import { conversationHeader, digestOf, noConversation, readBody, sayingOnce, sayTurn } from "./messages.ts"
import { checkResponse, readResponse, referencesIn, type WantedResponse } from "./requests.ts"
import { type HeardResponse, keyOfResponse, placeOfItem, responseForm, statusOf } from "./responses-answer.ts"

/** The position that a request wants to continue from. */
interface WantedPlace {
  readonly previousId: string | null
  readonly conversation: string | null
  /** The field that names the conversation. */
  readonly param: string
}

export const respond = Effect.fn("http.openai.respond")(function* (projectId: ProjectId) {
  // Authorization comes before the body is read.
  yield* looking(projectId, "editor", Effect.succeed)
  const input = yield* readBody(ResponseInput, "model and input")
  yield* keepable(input)
  yield* Effect.fromResult(checkResponse(input))
  const place = yield* placeIn(input)
  const { background, stream, ...asked } = input
  const { createdAt, ...said } = yield* sayingOnce(
    projectId,
    { route: "POST /v1/responses", asked: digestOf([asked, place]), field: "input" },
    sayResponse(projectId, input, place)
  )
  const placed: PlacedResponse = { ...said, createdAt: new Date(createdAt) }
  const response =
    background === true && stream !== true
      ? yield* json(yield* readNow(projectId, placed))
      : yield* answering(projectId, placed, responseForm(placed), stream === true)
  // A chat client's own request continues nothing.
  return said.context.startsWith(helperPrefix)
    ? response
    : HttpServerResponse.setHeader(response, conversationHeader, place.conversation ?? placed.context)
})

const placeIn = Effect.fnUntraced(function* (input: ResponseInput) {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const named = typeof input.conversation === "object" ? input.conversation?.id : input.conversation
  const place: WantedPlace = {
    previousId: input.previous_response_id ?? null,
    conversation: input.previous_response_id ? null : (named ?? headers[conversationHeader] ?? null),
    param: named === undefined ? conversationHeader : "conversation"
  }
  return place
})

/** Stores the messages of a request and its response; returns plain JSON, because it is stored under an Idempotency-Key. */
const sayResponse = Effect.fnUntraced(function* (
  projectId: ProjectId,
  input: ResponseInput,
  place: WantedPlace
) {
  const wanted = yield* Effect.fromResult(readResponse(input, yield* readReferences(projectId, input)))
  const from = wanted.isHelper ? { ...place, previousId: null, conversation: null } : place
  return yield* sayTurn(projectId, wanted, (agent, messages, saying, by) =>
    sayAt(input, wanted, from, { agent, by, messages, saying })
  )
})

/** A message, its author and its agent. */
interface Said {
  readonly agent: Agent
  readonly by: UserId
  readonly messages: ReadonlyArray<GivenMessage>
  readonly saying: Saying
}

const sayAt = Effect.fnUntraced(function* (
  input: ResponseInput,
  wanted: WantedResponse,
  from: WantedPlace,
  { agent, by, messages, saying }: Said
) {
  const completions = yield* Completions
  const responses = yield* Responses
  const place = yield* findPlace(from, agent, by)
  const said =
    place === undefined
      ? yield* completions.begin(agent, { instructions: wanted.instructions, messages }, saying, by)
      : yield* completions.goOn(place.context, saying, by, {
          instructions: wanted.own,
          messages: [...leadingOf(wanted), ...messages],
          promptEnd: place.promptEnd
        })
  const terms: ResponseTerms = {
    model: wanted.model,
    background: input.background === true,
    conversation: from.conversation,
    instructions: input.instructions ?? null,
    maxOutputTokens: wanted.maxOutputTokens,
    metadata: input.metadata ?? {},
    previousId: from.previousId,
    isStored: input.store !== false,
    temperature: wanted.temperature,
    toolChoice: input.tool_choice === "none" ? "none" : "auto",
    // An answer to a question adds no instructions: the turn that asked continues with its own.
    promptEnd: said.isAnswer ? (place?.promptEnd ?? null) : wanted.own
  }
  const ids = yield* Ids
  const response = { ...said, id: yield* ids.next, beginsAfter: place?.context.eventCount ?? 0, terms }
  return { ...response, createdAt: (yield* responses.keep(response)).toISOString() }
})

/** In a continued conversation system messages are messages: the system prompt already exists. */
const leadingOf = ({ leading }: WantedResponse): ReadonlyArray<GivenMessage> =>
  leading === null ? [] : [{ role: "system", content: leading }]

/** The context to continue in, and the end of the previous response's part of the system prompt. */
interface FoundPlace {
  readonly context: ContextHead
  readonly promptEnd: string | null
}

const findPlace = Effect.fnUntraced(function* (
  { conversation, param, previousId }: WantedPlace,
  agent: Agent,
  by: UserId
) {
  if (previousId !== null) return yield* placeAfter(previousId, agent, by)
  if (conversation === null) return undefined
  const completions = yield* Completions
  const responses = yield* Responses
  const context = yield* completions.find(conversation, by)
  if (context === undefined) return yield* noConversation(param)
  if (context.agentId !== agent.id)
    return yield* openAiFault(`This conversation is with another agent than ${agent.name}`, {
      param: "model"
    })
  const place: FoundPlace = { context, promptEnd: yield* responses.lastPromptEnd(context.name) }
  return place
})

/** The end of a conversation if the response is its last one, otherwise a new fork of the conversation up to it. */
const placeAfter = Effect.fnUntraced(function* (previousId: string, agent: Agent, by: UserId) {
  const completions = yield* Completions
  const responses = yield* Responses
  const key = keyOfResponse(previousId)
  const previous = key === undefined ? undefined : yield* responses.find(key, by)
  // Locked: of two concurrent requests that continue here the second finds the first.
  const context = previous && (yield* completions.hold(previous.context, by))
  if (previous === undefined || context === undefined)
    return yield* openAiFault(`Previous response with id '${shown(previousId)}' not found.`, {
      param: "previous_response_id",
      code: "previous_response_not_found"
    })
  const next = yield* responses.next(previous)
  const isOther = context.agentId !== agent.id
  const { promptEnd } = previous.terms
  if (next === undefined && !isOther) return { context, promptEnd } satisfies FoundPlace
  const fork = yield* completions.branch(context, next?.beginsAfter ?? context.eventCount, agent)
  const place: FoundPlace = {
    context: fork,
    promptEnd: isOther && agent.systemPrompt !== null ? null : promptEnd
  }
  return place
})

/** Shortens an invented id for an error message. */
const shown = (id: string): string => (id.length > 100 ? `${id.slice(0, 100)}…` : id)

/** The text of the items that a request refers to; null where an item is no message. */
const readReferences = Effect.fnUntraced(function* (projectId: ProjectId, input: ResponseInput) {
  const texts = new Map<string, string | null>()
  const outputs = new Map<string, AgentResponse["output"]>()
  for (const { id, param } of referencesIn(input)) {
    const place = placeOfItem(id)
    if (place === undefined) return yield* noItem(id, param)
    if (!outputs.has(place.id)) {
      if (outputs.size === responseBounds.referencedResponses)
        return yield* openAiFault(
          `A request may refer to items of ${responseBounds.referencedResponses} responses: go on with previous_response_id`,
          { param }
        )
      const placed = yield* findResponse(projectId, "editor", place.id)
      if (placed === undefined) return yield* noItem(id, param)
      outputs.set(place.id, (yield* answerSoFar(projectId, placed, responseForm(placed, true))).output)
    }
    const item = outputs.get(place.id)?.[place.place]
    if (item?.id !== id) return yield* noItem(id, param)
    texts.set(id, item.type === "message" ? item.content.map(({ text }) => text).join("") : null)
  }
  return texts
})

const noItem = (id: string, param: string) =>
  openAiFault(
    `Item with id '${shown(id)}' not found. Items are not persisted when store is false: send the item itself`,
    { status: 404, param }
  )

/** A response of the caller, and its end if a question of it was answered. */
const findResponse = (projectId: ProjectId, role: Role, key: string) =>
  looking(projectId, role, ({ userId }) =>
    Effect.gen(function* () {
      const responses = yield* Responses
      const placed = yield* responses.find(key, userId)
      const next = placed && (yield* responses.next(placed))
      return placed && { ...placed, until: next?.isAnswer === true ? next.beginsAfter : undefined, next }
    })
  )

const knownResponse = Effect.fnUntraced(function* (projectId: ProjectId, role: Role, id: string) {
  const key = keyOfResponse(id)
  const found = key === undefined ? undefined : yield* findResponse(projectId, role, key)
  return found ?? (yield* noResponse(id))
})

const noResponse = (id: string) => openAiFault(`Response with id '${shown(id)}' not found.`, { status: 404 })

const json = (body: unknown) => Effect.orDie(HttpServerResponse.json(body))

/** A response as far as its log has it now. */
const readNow = Effect.fnUntraced(function* (projectId: ProjectId, placed: PlacedResponse) {
  const form = responseForm(placed, true)
  return yield* form.whole(yield* answerSoFar(projectId, placed, form))
})

export const readStoredResponse = Effect.fn("http.openai.response")(function* (
  projectId: ProjectId,
  id: string,
  query: { readonly stream?: string | undefined; readonly starting_after?: string | undefined }
) {
  if (query.starting_after !== undefined)
    return yield* openAiFault("A stream begins with its first event: leave starting_after out", {
      param: "starting_after",
      code: "unsupported_parameter"
    })
  const placed = yield* knownResponse(projectId, "viewer", id)
  return query.stream === "true"
    ? yield* answering(projectId, placed, responseForm(placed), true)
    : yield* json(yield* readNow(projectId, placed))
})

export const deleteResponse = Effect.fn("http.openai.deleteResponse")(function* (
  projectId: ProjectId,
  id: string
) {
  const key = keyOfResponse(id)
  const isDeleted = yield* looking(projectId, "editor", ({ userId }) =>
    Effect.flatMap(Responses, ({ remove }) =>
      key === undefined ? Effect.succeed(false) : remove(key, userId)
    )
  )
  if (!isDeleted) return yield* noResponse(id)
  return { id, object: "response", deleted: true } as const
})

/** Cancels the run that works on a response, or that waits for a person. */
export const cancelResponse = Effect.fn("http.openai.cancelResponse")(function* (
  projectId: ProjectId,
  id: string
) {
  const { next, ...placed } = yield* knownResponse(projectId, "editor", id)
  const form = responseForm(placed, true)
  const before = yield* answerSoFar(projectId, placed, form)
  if (isCancellable(before) && next === undefined) {
    const { userId: by } = yield* CurrentPrincipal
    const descendants = yield* Descendants
    const runId = yield* inProject(projectId, "editor", () => cancelWorkIn(placed.context, { by }))
    // When this answers, no run below writes any more.
    if (runId !== undefined) yield* descendants.cancelBelow(projectId, runId)
  } else if (statusOf(before, true) !== "cancelled")
    return yield* openAiFault(`Cannot cancel a response that is ${statusOf(before, true)}.`)
  return (yield* form.whole(yield* answerSoFar(projectId, placed, form))) as AgentResponse
})

const isCancellable = (state: HeardResponse): boolean =>
  statusOf(state, true) === "in_progress" || state.heard.rest?.ending === "question"
