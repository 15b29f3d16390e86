/**
 * Makes a model of one AI SDK model.
 *
 * One adapter for every provider: the packages speak the wire formats, this
 * file joins them to effect's words. Interruption aborts the HTTP request. There is no
 * retry here and no timeout: `attempt.ts` and `retry.ts` hold those for every
 * model alike. Only a request that was refused for its roles, for an option, for its
 * `tool_choice`, for its pictures or for what calls of another model lack is made again
 * at once, as the model may take it.
 */
import {
  APICallError,
  type LanguageModelV4,
  type LanguageModelV4CallOptions,
  type LanguageModelV4Prompt,
  type LanguageModelV4StreamResult,
  type SharedV4ProviderOptions
} from "@ai-sdk/provider"
import type { ReasoningEffort } from "@tropism/domain/model-config"
import { Effect, type Schema, Stream } from "effect"
import type { Prompt } from "effect/ai"
import { type Teller, toAiError } from "./ai-sdk-error.ts"
import { makeArgumentsKeeper, toResponsePart } from "./ai-sdk-parts.ts"
import {
  hasUnsignedCalls,
  hasUnthoughtCalls,
  type PicturePlace,
  toAiSdkPrompt,
  withInstructionsByUser,
  withSignedCalls
} from "./ai-sdk-prompt.ts"
import { type BodyEdits, editsHeader, kindInHeaders } from "./lenient-wire.ts"
import { type SchemaRules, toAiSdkTools, withOwnKeys } from "./tool-schemas.ts"
import { makeThinkTagReader } from "./think-tags.ts"
import type { ModelPort, PortRequest } from "./model-port.ts"

export interface AiSdkModelOptions extends Teller {
  readonly model: LanguageModelV4
  /** provider:name, as events record the model of an answer. */
  readonly name: string
  readonly habits: KnownHabits
  /** The ids of calls that the provider takes. */
  readonly callIds?: RegExp | undefined
  /** Where the model takes the pictures of tool results. */
  readonly pictures: PicturePlace
  /** Whether it may send its thinking as text that a `</think>` ends, without an opening tag. */
  readonly mayThinkAloud: boolean
  /** Whether neighbours of one role are sent as one message. */
  readonly joinsNeighbours: boolean
  /** Whether a request must name each tool that the prompt has calls of. */
  readonly namesCalledTools: boolean
  readonly schemaRules: SchemaRules
  /** Whether the bodies of requests may be changed after the package wrote them. */
  readonly mayEdit: boolean
  readonly temperature?: number | undefined
  readonly maxOutputTokens?: number | undefined
  readonly reasoning?: ReasoningEffort | undefined
  /** What the provider is told in each request beside that. */
  readonly requestOptions?: SharedV4ProviderOptions | undefined
}

/** What a model refuses that others take. */
export interface Habits {
  /** It takes no system message in the middle of a conversation. */
  readonly tagsNotices: boolean
  /** It takes no system message at all. */
  readonly instructsByUser: boolean
  /** Options that it refuses, by their names on the wire, and names that it has for others. */
  readonly edits: BodyEdits
  /** It takes no user directly behind a tool's result. */
  readonly answersTools: boolean
  /** It does not know `tool_choice: none`, so the tools are left out; those that must be named are forbidden by words alone. */
  readonly leavesOutTools: boolean
  /** It takes no pictures of tool results. */
  readonly leavesOutPictures: boolean
  /** It does not think in a turn that has calls without the thinking that led to them. */
  readonly wantsThinking: boolean
  /** It takes no call without a signature of Google's. */
  readonly wantsSignatures: boolean
  /** It has no encrypted reasoning to send back. */
  readonly leavesOutEncrypted: boolean
  /** Its answers begin inside the thinking, whose opening tag its chat template has. */
  readonly opensSilently: boolean
}

/** What is known of a model's habits so far. */
export interface KnownHabits {
  readonly now: () => Habits
  /** Called when the model answered by these what it had refused before. */
  readonly learned: (habits: Habits) => void
}

/** Makes a model that asks the given AI SDK model. */
export const fromAiSdk =
  (options: AiSdkModelOptions): ModelPort =>
  (request) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const controller = yield* Effect.acquireRelease(
          Effect.sync(() => new AbortController()),
          (controller) => Effect.sync(() => controller.abort())
        )
        const { callIds, joinsNeighbours, name } = options
        const known = options.habits.now()
        const open = (habits: Habits): Effect.Effect<LanguageModelV4StreamResult, unknown> => {
          const { answersTools, leavesOutPictures, tagsNotices, wantsSignatures } = habits
          const pictures = leavesOutPictures ? "none" : options.pictures
          const lateSystemMessages = !tagsNotices
          const asked = { name, callIds, joinsNeighbours, answersTools, lateSystemMessages, pictures }
          const translated = toAiSdkPrompt(request.prompt, asked)
          const instructed = habits.instructsByUser ? withInstructionsByUser(translated) : translated
          const prompt = wantsSignatures ? withSignedCalls(instructed) : instructed
          return Effect.tryPromise({
            try: () =>
              Promise.resolve(
                options.model.doStream(callOptions(options, request, prompt, habits, controller.signal))
              ),
            catch: (error) => error
          }).pipe(
            Effect.tap(() =>
              habits === known
                ? Effect.void
                : Effect.andThen(
                    Effect.sync(() => options.habits.learned(habits)),
                    Effect.logInfo(
                      "A model refuses what others take; it is asked in another way from now on",
                      {
                        model: name,
                        habits: differing(known, habits)
                      }
                    )
                  )
            ),
            Effect.catch((error) => {
              // Each refusal teaches one habit more, so this ends.
              const other = habitsAfter(habits, error, prompt, request, options)
              return other === undefined ? Effect.fail(error) : open(other)
            })
          )
        }
        const result = yield* open(known).pipe(
          Effect.catch((error) => Effect.flatMap(toAiError(error, options), Effect.fail))
        )
        return Stream.fromReadableStream({
          evaluate: () => result.stream,
          onError: (error) => ({ thrown: error })
        }).pipe(
          Stream.catch(({ thrown }) =>
            Stream.fromEffect(Effect.flatMap(toAiError(thrown, options), Effect.fail))
          ),
          Stream.map(makeArgumentsKeeper()),
          Stream.mapEffect((part) => toResponsePart(part, options)),
          Stream.flattenIterable,
          Stream.map((part) =>
            part.type === "tool-call"
              ? { ...part, params: withOwnKeys(request.tools, part.name, part.params as Schema.Json) }
              : part
          ),
          Stream.map(
            makeThinkTagReader({
              mayCloseAlone: options.mayThinkAloud,
              opensSilently: known.opensSilently,
              closedAlone: () => options.habits.learned({ ...options.habits.now(), opensSilently: true })
            })
          ),
          Stream.flattenIterable
        )
      })
    )

/** What is new among a model's habits. */
const differing = (known: Habits, habits: Habits): Partial<Habits> =>
  Object.fromEntries(Object.entries(habits).filter(([name, value]) => known[name as keyof Habits] !== value))

/** How a refused request may be made again; undefined where the refusal says nothing of it. */
const habitsAfter = (
  habits: Habits,
  error: unknown,
  prompt: LanguageModelV4Prompt,
  request: PortRequest,
  options: AiSdkModelOptions
): Habits | undefined => {
  if (!APICallError.isInstance(error) || kindInHeaders(error.responseHeaders) === "page") return undefined
  const { toolChoice, tools } = request
  const status = error.statusCode ?? 0
  const words = `${error.message} ${error.responseBody ?? ""}`
  const isRefusal = [400, 422].includes(status)
  if (isRefusal && !habits.wantsThinking && isThinkingMissing.test(words) && hasUnthoughtCalls(prompt))
    return { ...habits, wantsThinking: true }
  if (isRefusal && !habits.wantsSignatures && isSignatureMissing.test(words) && hasUnsignedCalls(prompt))
    return { ...habits, wantsSignatures: true }
  if (isRefusal && !habits.leavesOutEncrypted && isEncryptedUnknown.test(words))
    return { ...habits, leavesOutEncrypted: true }
  const mayLeaveOut = toolChoice === "none" && tools.length > 0 && !habits.leavesOutTools
  if (isRefusal && mayLeaveOut && /tool[_ ]?choice/i.test(words)) return { ...habits, leavesOutTools: true }
  const edits = isRefusal ? editsAfter(habits.edits, error.requestBodyValues, words, options) : undefined
  if (edits !== undefined) return { ...habits, edits }
  // Chat templates that fail name the role, the system message or the template; llama.cpp answers such a failure with 500.
  if ((isRefusal || status === 500) && /system|template|role/i.test(words)) {
    if (!habits.tagsNotices && prompt.slice(1).some(({ role }) => role === "system"))
      return { ...habits, tagsNotices: true }
    if (!habits.answersTools && hasUserAfterTool(prompt)) return { ...habits, answersTools: true }
    if (!habits.instructsByUser && prompt[0]?.role === "system" && refuses("system", words))
      return { ...habits, instructsByUser: true, tagsNotices: true }
  }
  return !habits.leavesOutPictures && mayRefusePictures(status, words) && hasPictures(request.prompt)
    ? { ...habits, leavesOutPictures: true }
    : undefined
}

export const noEdits: BodyEdits = { without: [], renamed: {}, withoutDeveloper: false }

/** Options that change no answer's meaning: a server that does not know one of them is asked without it. */
const dispensable = [
  "stream_options",
  "parallel_tool_calls",
  "temperature",
  "top_p",
  "reasoning_effort",
  "reasoning",
  "store",
  "cache_control"
]

/** OpenAI's newer models have another name for the limit of an answer, which other servers do not know. */
const limitNames: Readonly<Record<string, string>> = {
  max_tokens: "max_completion_tokens",
  max_completion_tokens: "max_tokens"
}

/** How the body may be changed after a refusal of one of its fields; undefined where it names none that can be. */
const editsAfter = (
  edits: BodyEdits,
  body: unknown,
  words: string,
  { mayEdit, temperature }: AiSdkModelOptions
): BodyEdits | undefined => {
  const sent: Readonly<Record<string, unknown>> = Object(body)
  const isSent = (field: string): boolean =>
    mayEdit ? sent[field] !== undefined : field === "temperature" && temperature !== undefined
  const refused = dispensable.filter(
    (field) => isSent(field) && !edits.without.includes(field) && refuses(field, words)
  )
  if (refused.length > 0) return { ...edits, without: [...edits.without, ...refused] }
  if (!mayEdit) return undefined
  const renamed = Object.entries(limitNames).find(
    ([field]) => sent[field] !== undefined && edits.renamed[field] === undefined && refuses(field, words)
  )
  if (renamed !== undefined) return { ...edits, renamed: { ...edits.renamed, [renamed[0]]: renamed[1] } }
  const saysDeveloper = [sent["messages"], sent["input"]]
    .flat()
    .some((message) => Object(message).role === "developer")
  return saysDeveloper && !edits.withoutDeveloper && /\bdeveloper\b/i.test(words)
    ? { ...edits, withoutDeveloper: true }
    : undefined
}

/** Whether a refusal says of a field or a role that it is unknown or not taken, near its name. */
const refuses = (name: string, words: string): boolean =>
  new RegExp(`${notTaken}[^.;]{0,80}\\b${name}\\b|\\b${name}\\b[^.;]{0,80}${notTaken}`, "i").test(words)

const notTaken = String.raw`(?:unknown|unsupported|unrecogni[sz]ed|unexpected|extra_forbidden|extra(?:neous)? (?:inputs?|fields?|keys?)|additional propert|invalid (?:parameter|argument|field|role)|not (?:be )?(?:supported|permitted|allowed|recogni[sz]ed|accepted|available|enabled)|(?:n't| not) (?:support|accept|allow|recogni[sz]e|take|know)|deprecated)`

/** "Encrypted content is not supported with this model." */
const isEncryptedUnknown = /encrypted[_ ]content/i

/** "Expected `thinking` or `redacted_thinking`, but found `tool_use`." */
const isThinkingMissing = /expected\W+thinking\b/i

/** "Function call is missing a thought_signature in functionCall parts." */
const isSignatureMissing = /thought_?signature/i

const hasUserAfterTool = (prompt: LanguageModelV4Prompt): boolean =>
  prompt.some(({ role }, index) => role === "user" && prompt[index - 1]?.role === "tool")

const hasPictures = ({ content }: Prompt.Prompt): boolean =>
  content.some(
    ({ content: parts, role }) =>
      role === "tool" &&
      parts.some((part) => part.type === "tool-result" && part.options["tropism"] !== undefined)
  )

/** Models without eyes name the image, the kind of content or, where the user shows it after a result, the role. */
const mayRefusePictures = (status: number, words: string): boolean =>
  [400, 404, 415, 422, 500].includes(status) && /image|picture|vision|modal|media|content|role/i.test(words)

const callOptions = (
  options: AiSdkModelOptions,
  request: PortRequest,
  prompt: LanguageModelV4Prompt,
  habits: Habits,
  abortSignal: AbortSignal
): LanguageModelV4CallOptions => {
  const { edits } = habits
  const { maxOutputTokens } = options
  const temperature = edits.without.includes("temperature") ? undefined : options.temperature
  const thinking = habits.wantsThinking && hasUnthoughtCalls(prompt) ? withoutThinking(options) : options
  const { reasoning } = thinking
  const requestOptions = habits.leavesOutEncrypted
    ? withoutEncrypted(thinking.requestOptions)
    : thinking.requestOptions
  return {
    prompt,
    abortSignal,
    ...(edits === noEdits || !options.mayEdit ? {} : { headers: { [editsHeader]: JSON.stringify(edits) } }),
    ...toolsOf(request, options, habits),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(requestOptions === undefined ? {} : { providerOptions: requestOptions })
  }
}

/** The options of a request that asks for no thinking, by the names that Anthropic, Bedrock and OpenRouter have for it. */
const withoutThinking = ({
  reasoning,
  requestOptions = {}
}: AiSdkModelOptions): Pick<AiSdkModelOptions, "reasoning" | "requestOptions"> => ({
  reasoning: reasoning === "none" ? reasoning : undefined,
  requestOptions: Object.fromEntries(
    Object.entries(requestOptions).map(
      ([provider, { reasoning: _effort, reasoningConfig: _config, thinking: _budget, ...rest }]) => [
        provider,
        rest
      ]
    )
  )
})

/** The options of a request that asks for no encrypted reasoning. */
const withoutEncrypted = (requestOptions: SharedV4ProviderOptions = {}): SharedV4ProviderOptions =>
  Object.fromEntries(
    Object.entries(requestOptions).map(([provider, { include, ...rest }]) => [
      provider,
      {
        ...rest,
        ...(Array.isArray(include) ? { include: include.filter((each) => each !== encryptedReasoning) } : {})
      }
    ])
  )

/** What the Responses API is asked for, so that a reasoning model can go on from its own reasoning. */
export const encryptedReasoning = "reasoning.encrypted_content"

/** Anthropic and Bedrock refuse a prompt with tool calls if the request declares no such tool, so tools of earlier calls are declared even if none is offered. */
const toolsOf = (
  request: PortRequest,
  { namesCalledTools, schemaRules }: AiSdkModelOptions,
  { leavesOutTools }: Habits
): Pick<LanguageModelV4CallOptions, "tools" | "toolChoice"> => {
  const isForbidden = request.toolChoice === "none"
  if (request.tools.length > 0 && !(isForbidden && leavesOutTools))
    return {
      tools: toAiSdkTools(request.tools, schemaRules),
      toolChoice: { type: isForbidden ? "none" : "auto" }
    }
  if (!namesCalledTools) return {}
  const called = request.prompt.content.flatMap((message) =>
    message.role === "assistant"
      ? message.content.flatMap((part) => (part.type === "tool-call" ? [part.name] : []))
      : []
  )
  if (called.length === 0) return {}
  return {
    tools: [...new Set(called)].map((name) => ({ type: "function", name, inputSchema: { type: "object" } })),
    toolChoice: { type: leavesOutTools ? "auto" : "none" }
  }
}
