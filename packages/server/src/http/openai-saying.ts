/**
 * Says what a request for a completion says, once for each Idempotency-Key.
 *
 * Flow: **http** → chat → dispatch → run → tool → task
 *
 * What was said under the key is answered before anything is looked for that may
 * be gone by now: the agent, its model, a file's address. Files are kept before; the
 * context, what is said in it and the key are one transaction.
 */
import { createHash } from "node:crypto"
import type { Agent } from "@tropism/domain/agent"
import type { LlmConfig } from "@tropism/domain/context-config"
import type { GivenMessage } from "@tropism/domain/given-history"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Completions, type SaidFile, type Saying } from "../chat/completions.ts"
import { isDatabaseAway } from "../database/database-away.ts"
import { Models } from "../model/models.ts"
import { inProject, looking, unlessRecalled } from "./access.ts"
import { keptUnknown, openAiFault } from "./openai-faults.ts"
import { keepFiles } from "./openai-files.ts"
import { knownAgent } from "./openai-models.ts"
import { filesOf, sourceKey, type WantedCompletion, type WantedMessage } from "./openai-request.ts"
import { triggerProblem } from "./refusals.ts"
import { CurrentKey, readKey, saidKey } from "./request-keys.ts"

/** The header that names the conversation in which a request goes on, and of each answer the one to go on in. */
export const conversationHeader = "x-tropism-conversation"

/** Keeps what is said, and the run that will answer it. */
export const sayIn = Effect.fnUntraced(function* (projectId: ProjectId, wanted: WantedCompletion) {
  const key = yield* openAiKey
  const said =
    key === undefined
      ? undefined
      : yield* saidKey({ key, route: "POST /v1/chat/completions", asked: digestOf(wanted) })
  return yield* unlessRecalled(projectId, "editor", sayOnce(projectId, wanted)).pipe(
    Effect.provideService(CurrentKey, said),
    Effect.catchTags({
      TriggerRefused: triggerProblem,
      PromptFailed: ({ detail }) => Effect.fail(openAiFault(detail, { param: "model" })),
      AnswerRefused: ({ detail }) =>
        Effect.fail(openAiFault(detail, { param: "messages", code: "answer_refused" })),
      InvalidInput: ({ detail }) =>
        Effect.fail(
          openAiFault(detail ?? "Choose a new Idempotency-Key", {
            param: "idempotency-key",
            code: "idempotency_key_reused"
          })
        )
    })
  )
})

const sayOnce = Effect.fnUntraced(function* (projectId: ProjectId, wanted: WantedCompletion) {
  const agent = yield* looking(projectId, "editor", () => knownAgent(wanted.model))
  // What goes on has all that was said before in its log.
  const history = wanted.conversation === null ? wanted.history : []
  const kept = yield* keepFiles(projectId, filesOf({ history, said: wanted.said }))
  const saying: Saying = {
    content: wanted.said.content,
    files: filesIn(wanted.said, kept),
    settings: yield* settingsOf(agent, wanted)
  }
  const messages = history.map((message) => givenOf(message, kept))
  const said = inProject(projectId, "editor", ({ userId: by }) => say(agent, wanted, messages, saying, by))
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
  if (!context)
    return yield* openAiFault("There is no such conversation", {
      status: 404,
      param: conversationHeader,
      code: "conversation_not_found"
    })
  if (context.agentId !== agent.id)
    return yield* openAiFault(`This conversation is with another agent than ${agent.name}`, {
      param: "model"
    })
  return yield* completions.goOn(context, saying, by)
})

const openAiKey = Effect.mapError(readKey, ({ detail }) =>
  openAiFault(detail ?? "This is no key", { param: "idempotency-key" })
)

/** Of all that is asked for, in its own words; whether the answer is streamed is not part of it. */
const digestOf = ({
  isStreamed: _isStreamed,
  isUsageWanted: _isUsageWanted,
  ...asked
}: WantedCompletion): string => createHash("sha256").update(JSON.stringify(asked)).digest("hex")

/** Which model answers, where the request says how. */
const settingsOf = Effect.fnUntraced(function* (
  { model, name: agentName }: Agent,
  { isToolless, maxOutputTokens, temperature }: WantedCompletion
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
