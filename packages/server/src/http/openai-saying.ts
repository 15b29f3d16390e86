/**
 * Says what a request for a completion or a response says, once for each Idempotency-Key.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * What was said under the key is answered before anything is looked for that may
 * be gone by now: the agent, its model, a file's address. Files are kept before; the
 * context, what is said in it and the key are one transaction.
 */
import { createHash } from "node:crypto"
import { completionBounds } from "@tropism/api/openai-completions"
import type { Agent } from "@tropism/domain/agent"
import type { LlmConfig } from "@tropism/domain/context-config"
import type { GivenMessage } from "@tropism/domain/given-history"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { Completions, type SaidFile, type SaidIn, type Saying } from "../chat/completions.ts"
import { isDatabaseAway } from "../database/database-away.ts"
import { Models } from "../model/models.ts"
import { InvalidInput } from "@tropism/api/problems"
import { PromptFailed } from "../agent/template.ts"
import { TriggerRefused } from "../run/admission.ts"
import { AnswerRefused } from "../run/questions.ts"
import { inProject, looking, unlessRecalled } from "./access.ts"
import { keptUnknown, openAiFault } from "./openai-faults.ts"
import { keepFiles } from "./openai-files.ts"
import { knownAgent } from "./openai-models.ts"
import type { WantedCompletion } from "./openai-request.ts"
import { filesOf, sourceKey, type WantedMessage, type WantedTurn } from "./openai-turn.ts"
import { unfitBody } from "./input-faults.ts"
import { triggerProblem } from "./refusals.ts"
import { judgeBodyUpTo, judgeEncoding } from "./request-judgement.ts"
import { CurrentKey, readKey, saidKey } from "./request-keys.ts"

/** The header that names the conversation in which a request goes on, and of each answer the one to go on in. */
export const conversationHeader = "x-tropism-conversation"

/** Reads the body of a request; `fields` says what it must have. */
export const readBody = Effect.fnUntraced(function* <
  S extends Schema.Top & { readonly DecodingServices: never }
>(schema: S, fields: string) {
  yield* judgeEncoding
  yield* judgeBodyUpTo(completionBounds.bodyMaxBytes)
  const { text } = yield* HttpServerRequest.HttpServerRequest
  const body = yield* Effect.orDie(text)
  if (body === "") return yield* openAiFault(`Send the request as JSON, with ${fields}`)
  return yield* Effect.mapError(
    Schema.decodeUnknownEffect(schema, { errors: "all" })(JSON.parse(body)),
    ({ issue }) => unfitBody(issue)
  )
})

/** What a request is to its Idempotency-Key, and which field has what is said. */
interface SayingTerms {
  readonly route: string
  /** Of all that is asked for; how the answer is delivered is not part of it. */
  readonly asked: string
  readonly field: string
}

/** Does what keeps a request, once under its key, and refuses in OpenAI's words. */
export const sayingOnce = Effect.fnUntraced(function* <A, E, R>(
  projectId: ProjectId,
  { asked, field, route }: SayingTerms,
  work: Effect.Effect<A, E, R>
) {
  const key = yield* openAiKey
  const said = key === undefined ? undefined : yield* saidKey({ key, route, asked })
  const once = Effect.provideService(unlessRecalled<A, E, R>(projectId, "editor", work), CurrentKey, said)
  return yield* Effect.catch(once, (error) => refused(error, field))
})

/** Why something was not said, in OpenAI's words. */
const refused = (
  error: unknown,
  field: string
): Effect.Effect<never, unknown, HttpServerRequest.HttpServerRequest> => {
  if (error instanceof TriggerRefused) return triggerProblem(error)
  if (error instanceof PromptFailed) return Effect.fail(openAiFault(error.detail, { param: "model" }))
  if (error instanceof AnswerRefused)
    return Effect.fail(openAiFault(error.detail, { param: field, code: "answer_refused" }))
  if (error instanceof InvalidInput)
    return Effect.fail(
      openAiFault(error.detail ?? "Choose a new Idempotency-Key", {
        param: "idempotency-key",
        code: "idempotency_key_reused"
      })
    )
  return Effect.fail(error)
}

/** Keeps what a chat completion says, and the run that will answer it. */
export const sayIn = (projectId: ProjectId, wanted: WantedCompletion) =>
  sayingOnce(
    projectId,
    { route: "POST /v1/chat/completions", asked: askedIn(wanted), field: "messages" },
    // What goes on has all that was said before in its log.
    sayTurn(
      projectId,
      { ...wanted, history: wanted.conversation === null ? wanted.history : [] },
      (agent, messages, saying, by) => say(agent, wanted, messages, saying, by)
    )
  )

/** Keeps the files of a turn, and then what is said in it, in one transaction. */
export const sayTurn = Effect.fnUntraced(function* <A extends SaidIn, E, R>(
  projectId: ProjectId,
  wanted: WantedTurn,
  sayWith: (
    agent: Agent,
    messages: ReadonlyArray<GivenMessage>,
    saying: Saying,
    by: UserId
  ) => Effect.Effect<A, E, R>
) {
  const agent = yield* looking(projectId, "editor", () => knownAgent(wanted.model))
  const kept = yield* keepFiles(projectId, filesOf(wanted))
  const saying: Saying = {
    content: wanted.said.content,
    files: filesIn(wanted.said, kept),
    isHelper: wanted.isHelper,
    settings: yield* settingsOf(agent, wanted)
  }
  const messages = wanted.history.map((message) => givenOf(message, kept))
  const said = inProject(projectId, "editor", ({ userId }) => sayWith(agent, messages, saying, userId))
  // Clients send again by themselves what is told with 503: without a key it would be said twice, had it been kept.
  if ((yield* CurrentKey) !== undefined) return yield* said
  return yield* Effect.catchDefect(said, (defect) =>
    isDatabaseAway(defect) ? Effect.fail(keptUnknown) : Effect.die(defect)
  )
})

/** Begins a context, or goes on in the one that is named. */
const say = Effect.fnUntraced(function* (
  agent: Agent,
  { conversation, instructions }: WantedCompletion,
  messages: ReadonlyArray<GivenMessage>,
  saying: Saying,
  by: UserId
) {
  const completions = yield* Completions
  if (conversation === null) return yield* completions.begin(agent, { instructions, messages }, saying, by)
  const context = yield* completions.find(conversation, by)
  if (!context) return yield* noConversation(conversationHeader)
  if (context.agentId !== agent.id)
    return yield* openAiFault(`This conversation is with another agent than ${agent.name}`, {
      param: "model"
    })
  return yield* completions.goOn(context, saying, by)
})

/** What is missing and what is somebody else's, alike. */
export const noConversation = (param: string) =>
  openAiFault("There is no such conversation", { status: 404, param, code: "conversation_not_found" })

const openAiKey = Effect.mapError(readKey, ({ detail }) =>
  openAiFault(detail ?? "This is no key", { param: "idempotency-key" })
)

const askedIn = ({
  isStreamed: _isStreamed,
  isUsageWanted: _isUsageWanted,
  ...asked
}: WantedCompletion): string => digestOf(asked)

/** Of all that a request asks for, in its own words. */
export const digestOf = (asked: unknown): string =>
  createHash("sha256").update(JSON.stringify(asked)).digest("hex")

/** Which model answers, where the request says how. */
const settingsOf = Effect.fnUntraced(function* (
  { model, name: agentName }: Agent,
  { isToolless, maxOutputTokens, temperature }: WantedTurn
) {
  if (maxOutputTokens === null && temperature === null && !isToolless) return null
  const models = yield* Models
  const { name, provider } =
    model ??
    (yield* Effect.mapError(models.resolve({ agentName, model }), ({ message }) =>
      openAiFault(message, { param: "model", code: "model_unavailable" })
    ))
  const settings: LlmConfig = {
    provider,
    name,
    ...(temperature === null ? {} : { temperature }),
    ...(maxOutputTokens === null ? {} : { maxOutputTokens }),
    ...(isToolless ? { toolChoice: "none" } : {})
  }
  return settings
})

type Kept = ReadonlyMap<string, SaidFile>

const filesIn = (
  message: Extract<WantedMessage, { readonly role: "user" }>,
  kept: Kept
): ReadonlyArray<SaidFile> =>
  message.files.flatMap((file) => {
    const found = kept.get(sourceKey(file))
    return found ? [{ ...found, fileName: file.fileName ?? found.fileName }] : []
  })

const givenOf = (message: WantedMessage, kept: Kept): GivenMessage => {
  if (message.role !== "user") return message
  const files = filesIn(message, kept).map(({ digest, fileName, mimeType, untrusted }) => ({
    digest,
    mimeType,
    fileName,
    ...(untrusted ? { untrusted } : {})
  }))
  return { role: "user", content: message.content, ...(files.length === 0 ? {} : { files }) }
}
