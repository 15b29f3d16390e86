/**
 * Stores the messages of a completion or response request, once per Idempotency-Key.
 *
 * A repeat is answered before any look-up that may fail by now: the agent, its model, a file's address. Files are stored first; the
 * context, the messages and the key are one transaction.
 */
import { createHash } from "node:crypto"
import type { AgentModel } from "@tropism/api/openai-api"
import { completionBounds } from "@tropism/api/openai-completions"
import { InvalidInput } from "@tropism/api/problems"
import type { Agent } from "@tropism/domain/agent"
import { type Digest, FileName } from "@tropism/domain/attachment"
import type { LlmConfig } from "@tropism/domain/context-config"
import type { GivenMessage } from "@tropism/domain/given-history"
import { type ProjectId, type UserId, AgentId } from "@tropism/domain/ids"
import { Effect, Schema } from "effect"
import { HttpServerRequest } from "effect/http"
import { Agents } from "../../agents/agents.ts"
import { fetchFile } from "../../agents/outside-network.ts"
import { PromptFailed } from "../../agents/template.ts"
import { TodoAssistants } from "../../agents/todo-assistants.ts"
import { Completions, type SaidFile, type SaidIn, type Saying } from "../../chat/completions.ts"
import { Attachments } from "../../contexts/attachments.ts"
import { isDatabaseAway } from "../../database/connection-errors.ts"
import { Models } from "../../models/models.ts"
import { TriggerRefused } from "../../runs/admission.ts"
import { AnswerRefused } from "../../runs/questions.ts"
import { inProject, looking, unlessRecalled, readableFile, reading } from "../access.ts"
import { judged, readDataUrl } from "../chat-routes.ts"
import { CurrentKey, readKey, saidKey } from "../idempotency.ts"
import { invalidBody, triggerProblem } from "../problems.ts"
import { judgeBodyUpTo, judgeEncoding } from "../request-validation.ts"
import { keptUnknown, openAiFault, openAiLimits } from "./faults.ts"
import {
  type WantedCompletion,
  filesOf,
  sourceKey,
  type WantedMessage,
  type WantedTurn,
  type WantedFile
} from "./requests.ts"

/** The header that names the conversation to continue, in requests and answers. */
export const conversationHeader = "x-tropism-conversation"

/** Reads and validates a request's body; `fields` lists the required ones. */
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
    ({ issue }) => invalidBody(issue)
  )
})

/** The fingerprint of a request for its Idempotency-Key, and the field with its message. */
interface SayingTerms {
  readonly route: string
  /** A digest of everything in the request except how the answer is delivered. */
  readonly asked: string
  readonly field: string
}

/** Runs the work that stores a request, once under its key, with errors in OpenAI's format. */
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

/** Maps a refused message to OpenAI's format. */
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

/** Stores the message of a chat completion and the run that will answer it. */
export const sayIn = (projectId: ProjectId, wanted: WantedCompletion) =>
  sayingOnce(
    projectId,
    { route: "POST /v1/chat/completions", asked: askedIn(wanted), field: "messages" },
    // A continued conversation already has the earlier messages in its log.
    sayTurn(
      projectId,
      { ...wanted, history: wanted.conversation === null ? wanted.history : [] },
      (agent, messages, saying, by) => say(agent, wanted, messages, saying, by)
    )
  )

/** Stores the files of a turn, then its messages in one transaction. */
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
  // Clients retry a 503. Without a key that would store the message twice if the first commit succeeded.
  if ((yield* CurrentKey) !== undefined) return yield* said
  return yield* Effect.catchDefect(said, (defect) =>
    isDatabaseAway(defect) ? Effect.fail(keptUnknown) : Effect.die(defect)
  )
})

/** Starts a context, or continues the named one. */
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

/** The error for a missing conversation, and for another user's. */
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

/** A digest of everything in a request. */
export const digestOf = (asked: unknown): string =>
  createHash("sha256").update(JSON.stringify(asked)).digest("hex")

/** The model settings of a context, where the request has any. */
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

// Stores the files of a completion request before its messages.
//
// A client sends its pictures again with each request; they are stored once, by the digest of their bytes.

/** Stores the files; returns each file by its source. */
const keepFiles = Effect.fn("http.openai.keepFiles")(function* (
  projectId: ProjectId,
  wanted: ReadonlyArray<WantedFile>
) {
  const kept = new Map<string, SaidFile>()
  const excess = wanted[completionBounds.files]
  if (excess)
    return yield* openAiFault(`A request may bring ${completionBounds.files} files`, { param: excess.param })
  for (const file of wanted) kept.set(sourceKey(file), yield* keepFile(projectId, file))
  return kept
})

const keepFile = Effect.fnUntraced(function* (projectId: ProjectId, wanted: WantedFile) {
  const attachments = yield* Attachments
  const { param, source } = wanted
  const fileName = yield* nameOf(wanted)
  if (source.type === "kept") {
    const found = yield* looking(projectId, "editor", () =>
      readableFile(source.digest as Digest, attachments.find(source.digest as Digest))
    )
    if (!found)
      return yield* openAiFault(
        `There is no file ${source.digest}: send it to /attachments, or its bytes in file_data`,
        {
          param
        }
      )
    const file: SaidFile = { ...found, fileName, source: { type: "upload" } }
    return file
  }
  const bytesAndType =
    source.type === "bytes"
      ? yield* Effect.mapError(Effect.fromResult(readDataUrl(source.dataUrl)), (fault) =>
          openAiFault(fault, { param })
        )
      : yield* Effect.mapError(fetchFile(source.url), ({ detail }) => openAiFault(detail, { param }))
  const file = yield* Effect.mapError(judged({ ...bytesAndType, untrusted: false }, param), ({ detail }) =>
    openAiFault(detail ?? "This is no file that an agent can be shown", { param })
  )
  // Earlier marks on the same bytes stay: sending a history again does not make a file trusted.
  const untrusted = yield* looking(projectId, "editor", ({ userId }) =>
    attachments.keepAsKnown({ ...file, bytes: bytesAndType.bytes }, userId)
  )
  const said: SaidFile = {
    ...file,
    fileName,
    untrusted,
    source: source.type === "bytes" ? { type: "upload" } : { type: "url", url: source.url }
  }
  return said
})

const isFileName = Schema.is(FileName)

const nameOf = ({ fileName, param }: WantedFile) =>
  fileName === null || isFileName(fileName)
    ? Effect.succeed(fileName)
    : Effect.fail(
        openAiFault("A file name has 1 to 200 characters, no slash and no control character", {
          param: param.replace(/file_(?:data|id)$/, "filename")
        })
      )

// The agents of a project as models.

/** The agents that can answer messages, newest first. */
export const listModels = Effect.fn("http.openai.models")(function* (projectId: ProjectId) {
  const agents = yield* Agents
  const found: Array<Agent> = []
  const data = yield* reading(
    projectId,
    Effect.gen(function* () {
      yield* ensureAssistant
      while (found.length < openAiLimits.listedModels) {
        const page = yield* agents.list(found.at(-1)?.id, openAiLimits.pageModels)
        found.push(...page)
        if (page.length < openAiLimits.pageModels) break
      }
      return found.filter(({ enabled }) => enabled).map(modelOf)
    })
  )
  return { object: "list", data } as const
})

export const getModel = Effect.fn("http.openai.model")(function* (projectId: ProjectId, model: string) {
  return modelOf(yield* reading(projectId, knownAgent(model)))
})

/** An older project gets its TodoAssistant at the first request for models. */
const ensureAssistant = Effect.flatMap(TodoAssistants, ({ ensure }) => ensure)

const isAgentId = Schema.is(AgentId)

/** The agent with this name, otherwise with this id. */
const knownAgent = Effect.fnUntraced(function* (model: string) {
  const agents = yield* Agents
  yield* ensureAssistant
  const named = (yield* agents.named([model])).get(model)
  const agent = named ?? (isAgentId(model) ? yield* agents.get(model) : undefined)
  if (agent) return agent
  return yield* openAiFault(`There is no agent ${model} in this project`, {
    status: 404,
    param: "model",
    code: "model_not_found"
  })
})

const modelOf = ({ createdAt, name }: Agent): AgentModel => ({
  id: name,
  object: "model",
  created: secondsOf(createdAt),
  owned_by: "tropism"
})

/** An instant in OpenAI's format. */
export const secondsOf = (timestamp: string): number => Math.floor(new Date(timestamp).getTime() / 1_000)
