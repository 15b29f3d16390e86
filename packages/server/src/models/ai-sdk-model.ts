/**
 * Makes a model of one AI SDK model.
 *
 * One adapter for every provider: the packages speak the wire formats, this
 * file joins them to effect's words. Interruption aborts the HTTP request. There is no
 * retry here and no timeout: `attempt.ts` and `retry.ts` hold those for every
 * model alike. Only a request that was refused for the order of its roles, for its
 * `tool_choice`, for its pictures or for what calls of another model lack is made again
 * at once, as the model may take it.
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
  withSignedCalls
} from "./ai-sdk-prompt.ts"
import { makeThinkingReader } from "./lenient-wire.ts"
import type { ModelPort, PortRequest, ModelRequest, OfferedTool } from "./model-request.ts"
import { type SchemaRules, toAiSdkTools, withOwnKeys } from "./tool-schemas.ts"

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
          const prompt = wantsSignatures ? withSignedCalls(translated) : translated
          return Effect.tryPromise({
            try: () =>
              Promise.resolve(
                options.model.doStream(callOptions(options, request, prompt, habits, controller.signal))
              ),
            catch: (error) => error
          }).pipe(
            Effect.tap(() =>
              habits === known ? Effect.void : Effect.sync(() => options.habits.learned(habits))
            ),
            Effect.catch((error) => {
              // Each refusal teaches one habit more, so this ends.
              const other = habitsAfter(habits, error, prompt, request)
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

/** How a refused request may be made again; undefined where the refusal says nothing of it. */
const habitsAfter = (
  habits: Habits,
  error: unknown,
  prompt: LanguageModelV4Prompt,
  request: PortRequest
): Habits | undefined => {
  if (!APICallError.isInstance(error)) return undefined
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
  // Chat templates that fail name the role, the system message or the template; llama.cpp answers such a failure with 500.
  if ((isRefusal || status === 500) && /system|template|role/i.test(words)) {
    if (!habits.tagsNotices && prompt.slice(1).some(({ role }) => role === "system"))
      return { ...habits, tagsNotices: true }
    if (!habits.answersTools && hasUserAfterTool(prompt)) return { ...habits, answersTools: true }
  }
  return !habits.leavesOutPictures && mayRefusePictures(status, words) && hasPictures(request.prompt)
    ? { ...habits, leavesOutPictures: true }
    : undefined
}

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
  const { maxOutputTokens, temperature } = options
  const thinking = habits.wantsThinking && hasUnthoughtCalls(prompt) ? withoutThinking(options) : options
  const { reasoning } = thinking
  const requestOptions = habits.leavesOutEncrypted
    ? withoutEncrypted(thinking.requestOptions)
    : thinking.requestOptions
  return {
    prompt,
    abortSignal,
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

// Turns the parts an AI SDK model streams into effect's.
//
// One part in, at most one part out, or a failure. What a package hands on without a
// look is looked at here, because nobody behind this does. An answer that stops without
// saying that it is finished is a failure here, whatever the provider package
// made of it. Arguments are judged as text, because a decoder would already
// have rounded a large integer.

/** Where a tool call's metadata keeps why its arguments cannot be used. */
export const argumentsFault = "argumentsFault"

/** Translates one streamed part. */
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
    // Arguments on their way show that the model is alive; only the whole call is used.
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
 * Puts back the arguments of a call that a package replaced.
 *
 * **Details** OpenRouter's package hands on `{}` for arguments that are no JSON, and the call would be made without any.
 * How much may come is bounded where the parts are measured.
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

/** Whether a part has the text that its type promises. */
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

/** Why an answer ended; undefined where it broke off before its provider said so: some packages call that `other`. */
const reasonOf = ({ raw, unified }: LanguageModelV4FinishReason): Response.FinishReason | undefined => {
  if (unified === "interrupted" || unified === "error") return undefined
  // The package counts Anthropic's pause as an end.
  if (raw === "pause_turn") return "pause"
  if (unified !== "other") return unified
  // OpenRouter's package does not know `error`, nor Bedrock's `malformed_tool_use` and `malformed_model_output`.
  if (raw === undefined || brokenOff.test(raw)) return undefined
  if (withheld.test(raw)) return "content-filter"
  return atLimit.test(raw) ? "length" : unified
}

/** Reasons that servers with the API of OpenAI give in the words of the model's own maker: Google's, Zhipu's, Mistral's, vLLM's. */
const brokenOff = /^(?:error|abort(?:ed)?|network_error|malformed_.*)$/i
const withheld = /^(?:safety|recitation|blocklist|prohibited_content|spii|sensitive)$/i
const atLimit = /^(?:model_context_window_exceeded|model_length|max_(?:output_)?tokens)$/i

const toCall = (part: Extract<LanguageModelV4StreamPart, { readonly type: "tool-call" }>) => {
  const { metadata: fault, params } = decodeArguments(part.input)
  const metadata = { ...metadataOf(part).metadata, ...fault }
  return Object.keys(metadata).length === 0 ? { params } : { params, metadata }
}

const Metadata = Schema.fromJsonString(
  Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json))
)
const decodeMetadata = Schema.decodeUnknownOption(Metadata)

/** What a provider wants to see again, as JSON that the log can keep; what it cannot keep is left out. */
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

/** No arguments at all are an empty object: so some models call a tool that needs none. */
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

/** Some servers count in fractions, or report NaN where they do not know. */
const toCount = (tokens: number | undefined): number | undefined =>
  tokens === undefined || !Number.isFinite(tokens) ? undefined : Math.max(0, Math.round(tokens))

// What a request used, where its server does not say.
//
// A guess of four characters to the token, of what the model was shown and of
// what it said: near enough that a budget in tokens stops a run. Files count
// nothing, because nobody knows what a model makes of one. Messages are counted
// once, however many requests they are part of.

const charsPerToken = 4

/** The tokens of so many characters, at least one where there are any. */
export const tokensOf = (chars: number): number => Math.ceil(chars / charsPerToken)

/** The characters that a model is shown with a request. */
export const charsOf = ({ messages, tools }: Pick<ModelRequest, "messages" | "tools">): number =>
  charsOfList(messages) + charsOfTools(tools)

/** The characters of the JSON of a list, such as that of messages, in which files are null. */
export const charsOfList = (items: ReadonlyArray<unknown>): number => Math.max(2, charsWithin(items) + 1)

/** Each item is counted with the bracket or the comma before it. */
const charsWithin = foldGrown<unknown, number>(
  () => 0,
  (chars, item) => chars + 1 + JSON.stringify(item, withoutFiles).length
)

const withoutFiles = (_key: string, value: unknown): unknown =>
  Predicate.hasProperty(value, "type") && value.type === "file" ? null : value

/** By the list: agents offer the same lists again and again. */
const toolChars = new WeakMap<ReadonlyArray<OfferedTool>, number>()

const charsOfTools = (tools: ReadonlyArray<OfferedTool>): number => {
  const chars = toolChars.get(tools) ?? (tools.length === 0 ? 0 : JSON.stringify(tools).length)
  toolChars.set(tools, chars)
  return chars
}
