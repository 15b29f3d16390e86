/**
 * Adapts an AI SDK model to our model port, for every provider.
 *
 * The packages implement the wire formats; this file maps them to effect's types. Interruption aborts the HTTP request. Retries and
 * timeouts are in `retry.ts`. One exception: a request that was refused for its roles, an option, its `tool_choice`, its pictures or
 * missing signatures is sent again at once in a form that the model accepts.
 */
import {
  APICallError,
  type LanguageModelV4,
  type LanguageModelV4CallOptions,
  type LanguageModelV4Prompt,
  type LanguageModelV4StreamResult,
  type SharedV4ProviderOptions,
  type LanguageModelV4FinishReason,
  type LanguageModelV4StreamPart,
  type LanguageModelV4Usage,
  type SharedV4ProviderMetadata
} from "@ai-sdk/provider"
import { foldGrown } from "@tropism/domain/grown"
import { scanJson } from "@tropism/domain/json-text"
import type { ReasoningEffort } from "@tropism/domain/model-config"
import { Effect, Schema, Stream, Option, Predicate } from "effect"
import type { Prompt, AiError, Response } from "effect/ai"
import { type Teller, toAiError, cutShort, endedTooEarly, unallowed } from "./ai-sdk-error.ts"
import {
  hasUnsignedCalls,
  hasUnthoughtCalls,
  type PicturePlace,
  toAiSdkPrompt,
  withInstructionsByUser,
  withSignedCalls
} from "./ai-sdk-prompt.ts"
import { type BodyEdits, editsHeader, kindInHeaders } from "./lenient-wire.ts"
import { makeThinkingReader } from "./thinking-tags.ts"
import type { ModelPort, PortRequest, ModelRequest, OfferedTool } from "./model-request.ts"
import { type SchemaRules, toAiSdkTools, withOwnKeys } from "./tool-schemas.ts"

export interface AiSdkModelOptions extends Teller {
  readonly model: LanguageModelV4
  /** provider:name, as events record the model of an answer. */
  readonly name: string
  readonly habits: KnownHabits
  /** The call ids that the provider accepts. */
  readonly callIds?: RegExp | undefined
  /** Where the model takes pictures of tool results. */
  readonly pictures: PicturePlace
  /** Whether it may send reasoning as text that ends with `</think>`, without an opening tag. */
  readonly mayThinkAloud: boolean
  /** Whether consecutive messages of one role are joined. */
  readonly joinsNeighbours: boolean
  /** Whether a request must declare each tool that the prompt has calls of. */
  readonly namesCalledTools: boolean
  readonly schemaRules: SchemaRules
  /** Whether request bodies may be changed after the package wrote them. */
  readonly mayEdit: boolean
  readonly temperature?: number | undefined
  readonly maxOutputTokens?: number | undefined
  readonly reasoning?: ReasoningEffort | undefined
  /** Additional provider options of each request. */
  readonly requestOptions?: SharedV4ProviderOptions | undefined
}

/** What a model refuses although others accept it. */
export interface Habits {
  /** It accepts no system message in the middle of a conversation. */
  readonly tagsNotices: boolean
  /** It accepts no system message at all. */
  readonly instructsByUser: boolean
  /** Options that it refuses, by their wire names, and options that it calls otherwise. */
  readonly edits: BodyEdits
  /** It accepts no user message directly after a tool result. */
  readonly answersTools: boolean
  /** It does not know `tool_choice: none`, so the tools are left out; tools that must be declared are forbidden in the prompt only. */
  readonly leavesOutTools: boolean
  /** It accepts no pictures of tool results. */
  readonly leavesOutPictures: boolean
  /** In a turn with calls but without their reasoning, it refuses to reason. */
  readonly wantsThinking: boolean
  /** It accepts no call without a Google signature. */
  readonly wantsSignatures: boolean
  /** It has no encrypted reasoning to return. */
  readonly leavesOutEncrypted: boolean
  /** Its answers begin inside the reasoning, because its chat template contains the opening tag. */
  readonly opensSilently: boolean
}

/** The known habits of a model. */
export interface KnownHabits {
  readonly now: () => Habits
  /** Called when the model accepted a request in this form after a refusal. */
  readonly learned: (habits: Habits) => void
}

/** Creates a model port for the given AI SDK model. */
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
              // Each refusal adds one habit, so this terminates.
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
            makeThinkingReader({
              mayCloseAlone: options.mayThinkAloud,
              opensSilently: known.opensSilently,
              closedAlone: () => options.habits.learned({ ...options.habits.now(), opensSilently: true })
            })
          ),
          Stream.flattenIterable
        )
      })
    )

/** The habits that are new. */
const differing = (known: Habits, habits: Habits): Partial<Habits> =>
  Object.fromEntries(Object.entries(habits).filter(([name, value]) => known[name as keyof Habits] !== value))

/** The habits with which a refused request can be sent again; undefined where the refusal suggests none. */
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
  // Failing chat templates name the role, the system message or the template; llama.cpp answers such a failure with 500.
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

/** Options that do not change an answer's meaning: a server that refuses one is asked without it. */
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

/** OpenAI's newer models have another name for the answer's token limit, which other servers do not know. */
const limitNames: Readonly<Record<string, string>> = {
  max_tokens: "max_completion_tokens",
  max_completion_tokens: "max_tokens"
}

/** The body edits after one field was refused; undefined where the refusal names none that can be edited. */
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

/** Whether a refusal calls a field or a role unknown or unsupported, near its name. */
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

/** Models without vision name the image, the content type or, where the user shows it after a result, the role. */
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

/** The options without reasoning, by the names that Anthropic, Bedrock and OpenRouter use. */
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

/** The options without encrypted reasoning. */
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

/** The `include` value of the Responses API that lets a reasoning model continue from its own reasoning. */
export const encryptedReasoning = "reasoning.encrypted_content"

/**
 * Anthropic and Bedrock refuse a prompt with tool calls if the request declares no such tool, so tools of earlier calls are declared even
 * if none is offered.
 */
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

// Maps streamed AI SDK parts to effect's.
//
// Each part gives at most one part, or a failure. Nothing after this validates parts, so this does. An answer that stops without a finish
// is a failure, whatever the package made of it. Arguments are checked as text, because decoding would already have rounded a large
// integer.

/** The metadata key of a call whose arguments are unusable, with the reason. */
export const argumentsFault = "argumentsFault"

/** Maps one streamed part. */
export const toResponsePart = (
  part: LanguageModelV4StreamPart,
  teller: Teller
): Effect.Effect<ReadonlyArray<Response.StreamPartEncoded>, AiError.AiError> => {
  if (!isSound(part)) return Effect.fail(unallowed(teller.where))
  switch (part.type) {
    case "text-start":
    case "text-end":
    case "reasoning-start":
    case "reasoning-end":
      return Effect.succeed([{ type: part.type, id: part.id, ...metadataOf(part) }])
    case "text-delta":
    case "reasoning-delta":
      return Effect.succeed([{ type: part.type, id: part.id, delta: part.delta, ...metadataOf(part) }])
    // Streaming arguments count as progress; only the whole call is used.
    case "tool-input-start":
      return Effect.succeed([{ type: "tool-params-start", id: part.id, name: part.toolName }])
    case "tool-input-delta":
      return Effect.succeed([{ type: "tool-params-delta", id: part.id, delta: part.delta }])
    case "tool-input-end":
      return Effect.succeed([{ type: "tool-params-end", id: part.id }])
    case "tool-call":
      return Effect.succeed([
        { type: "tool-call", id: part.toolCallId, name: part.toolName, ...toCall(part) }
      ])
    case "finish": {
      const reason = reasonOf(part.finishReason)
      return reason === undefined
        ? Effect.fail(cutShort(endedTooEarly(teller.where)))
        : Effect.succeed([{ type: "finish", reason, usage: toUsage(part.usage) }])
    }
    case "error":
      return Effect.flatMap(toAiError(part.error, teller), Effect.fail)
    default:
      return Effect.succeed([])
  }
}

/**
 * Restores the arguments of a call that a package replaced.
 *
 * OpenRouter's package replaces invalid JSON by `{}`, and the call would run without arguments. The size is bounded where the parts are
 * measured.
 */
const makeArgumentsKeeper = () => {
  const written = new Map<string, string>()
  return (part: LanguageModelV4StreamPart): LanguageModelV4StreamPart => {
    if (part.type === "tool-input-delta") written.set(part.id, (written.get(part.id) ?? "") + part.delta)
    if (part.type !== "tool-call") return part
    const text = written.get(part.toolCallId)?.trim() ?? ""
    written.delete(part.toolCallId)
    return part.input === "{}" && text !== "" ? { ...part, input: text } : part
  }
}

/** Whether a part has the text that its type requires. */
const isSound = (part: LanguageModelV4StreamPart): boolean => {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta":
    case "tool-input-delta":
      return typeof part.delta === "string"
    case "tool-call":
      return [part.toolCallId, part.toolName, part.input].every((text) => typeof text === "string")
    default:
      return true
  }
}

/** Why an answer ended; undefined where it broke off: some packages report that as `other`. */
const reasonOf = ({ raw, unified }: LanguageModelV4FinishReason): Response.FinishReason | undefined => {
  if (unified === "interrupted" || unified === "error") return undefined
  // The package treats Anthropic's pause as an end.
  if (raw === "pause_turn") return "pause"
  if (unified !== "other") return unified
  // OpenRouter's package does not know `error`, and Bedrock's does not know `malformed_tool_use` and `malformed_model_output`.
  // Google ends with OTHER what it cannot finish.
  if (raw === undefined || raw === "OTHER" || brokenOff.test(raw)) return undefined
  if (withheld.test(raw)) return "content-filter"
  if (whole.test(raw)) return "stop"
  return atLimit.test(raw) ? "length" : unified
}

/** Finish reasons that OpenAI-compatible servers pass on from the model's maker: Google, Zhipu, Mistral, vLLM. */
const brokenOff =
  /^(?:error|abort(?:ed)?|network_error|malformed_.*|insufficient_system_resource|too_many_tool_calls|missing_thought_signature)$/i
const withheld =
  /^(?:safety|recitation|blocklist|prohibited_content|spii|sensitive|content[_-]?filter(?:ed)?|language)$/i
const atLimit =
  /^(?:model_context_window_exceeded|context_length_exceeded|model_length|max_(?:output_)?tokens|time_limit|repetition_truncation)$/i
const whole = /^(?:stop|end_turn|finish_reason_unspecified)$/i

const toCall = (part: Extract<LanguageModelV4StreamPart, { readonly type: "tool-call" }>) => {
  const { metadata: fault, params } = decodeArguments(part.input)
  const metadata = { ...metadataOf(part).metadata, ...fault }
  return Object.keys(metadata).length === 0 ? { params } : { params, metadata }
}

const Metadata = Schema.fromJsonString(
  Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json))
)
const decodeMetadata = Schema.decodeUnknownOption(Metadata)

/** Metadata that a provider wants back, as storable JSON; the rest is dropped. */
const metadataOf = (part: {
  readonly providerMetadata?: SharedV4ProviderMetadata
}): { readonly metadata?: typeof Metadata.Type } => {
  if (part.providerMetadata === undefined) return {}
  const text = JSON.stringify(part.providerMetadata)
  if (/\\u(?:0000|d[89a-f])/i.test(text)) return {}
  const metadata = Object.fromEntries(
    Object.entries(Option.getOrElse(decodeMetadata(text), () => ({}))).filter(
      ([, value]) => Object.keys(value).length > 0
    )
  )
  return Object.keys(metadata).length === 0 ? {} : { metadata }
}

const decodeJson = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))

/** Empty arguments are an empty object: some models call a tool without parameters in this way. */
const decodeArguments = (
  text: string
): { readonly params: Schema.Json; readonly metadata?: Response.ProviderMetadata } => {
  if (text.trim() === "") return { params: {} }
  const fault = scanJson(text)
  const value = fault === undefined ? decodeJson(text) : Option.none()
  if (Option.isSome(value)) return { params: value.value }
  return {
    params: text,
    metadata: { [argumentsFault]: fault?.message ?? "The arguments are not valid JSON" }
  }
}

const toUsage = (usage: LanguageModelV4Usage): typeof Response.Usage.Encoded => ({
  inputTokens: {
    total: toCount(usage.inputTokens.total),
    uncached: toCount(usage.inputTokens.noCache),
    cacheRead: toCount(usage.inputTokens.cacheRead),
    cacheWrite: toCount(usage.inputTokens.cacheWrite)
  },
  outputTokens: {
    total: toCount(usage.outputTokens.total),
    text: toCount(usage.outputTokens.text),
    reasoning: toCount(usage.outputTokens.reasoning)
  }
})

/** Some servers report fractions, or NaN where they do not know. */
const toCount = (tokens: number | undefined): number | undefined =>
  tokens === undefined || !Number.isFinite(tokens) ? undefined : Math.max(0, Math.round(tokens))

// Estimates a request's usage when the server does not report it.
//
// Four characters per token, over the prompt and the answer: close enough for a token budget to stop a run. Files count nothing, because
// their cost is unknown. Each message is counted once, however many requests contain it.

const charsPerToken = 4

/** The tokens of a number of characters, at least one unless empty. */
export const tokensOf = (chars: number): number => Math.ceil(chars / charsPerToken)

/** The characters of a request. */
export const charsOf = ({ messages, tools }: Pick<ModelRequest, "messages" | "tools">): number =>
  charsOfList(messages) + charsOfTools(tools)

/** The characters of a list as JSON, such as messages, with files as null. */
export const charsOfList = (items: ReadonlyArray<unknown>): number => Math.max(2, charsWithin(items) + 1)

/** Each item counts with the bracket or comma before it. */
const charsWithin = foldGrown<unknown, number>(
  () => 0,
  (chars, item) => chars + 1 + JSON.stringify(item, withoutFiles).length
)

const withoutFiles = (_key: string, value: unknown): unknown =>
  Predicate.hasProperty(value, "type") && value.type === "file" ? null : value

/** Cached per list: agents offer the same lists again and again. */
const toolChars = new WeakMap<ReadonlyArray<OfferedTool>, number>()

const charsOfTools = (tools: ReadonlyArray<OfferedTool>): number => {
  const chars = toolChars.get(tools) ?? (tools.length === 0 ? 0 : JSON.stringify(tools).length)
  toolChars.set(tools, chars)
  return chars
}
