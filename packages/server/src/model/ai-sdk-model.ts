/**
 * Makes a model of one AI SDK model.
 *
 * One adapter for every provider: the packages speak the wire formats, this
 * file joins them to effect's words. Interruption aborts the HTTP request. There is no
 * retry here and no timeout: `attempt.ts` and `retry.ts` hold those for every
 * model alike. Only a request that was refused with a system message in its middle is
 * made again at once, without one: some servers' chat templates take none there.
 */
import {
  APICallError,
  type LanguageModelV4,
  type LanguageModelV4CallOptions,
  type LanguageModelV4Prompt,
  type SharedV4ProviderOptions
} from "@ai-sdk/provider"
import type { ReasoningEffort } from "@tropism/domain/model-config"
import { Effect, type Schema, Stream } from "effect"
import { type Teller, toAiError } from "./ai-sdk-error.ts"
import { makeArgumentsKeeper, toResponsePart } from "./ai-sdk-parts.ts"
import { toAiSdkPrompt } from "./ai-sdk-prompt.ts"
import { type SchemaRules, toAiSdkTools, withOwnKeys } from "./tool-schemas.ts"
import { makeThinkTagReader } from "./think-tags.ts"
import type { ModelPort, PortRequest } from "./model-port.ts"

export interface AiSdkModelOptions extends Teller {
  readonly model: LanguageModelV4
  /** provider:name, as events record the model of an answer. */
  readonly name: string
  readonly lateSystemMessages: LateSystemMessages
  /** Whether neighbours of one role are sent as one message. */
  readonly joinsNeighbours: boolean
  readonly answersResults: boolean
  /** Whether a request must name each tool that the prompt has calls of. */
  readonly namesCalledTools: boolean
  /** Whether a request may show tools and forbid their use; where not, words alone forbid it. */
  readonly forbidsTools: boolean
  readonly schemaRules: SchemaRules
  readonly temperature?: number | undefined
  readonly maxOutputTokens?: number | undefined
  readonly reasoning?: ReasoningEffort | undefined
  /** What the provider is told in each request beside that. */
  readonly requestOptions?: SharedV4ProviderOptions | undefined
}

/** Whether a model takes a system message in the middle of a conversation. */
export interface LateSystemMessages {
  readonly areTaken: () => boolean
  /** Called when the model answered without one what it had refused with one. */
  readonly refused: () => void
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
        const open = (prompt: LanguageModelV4Prompt) =>
          Effect.tryPromise({
            try: () =>
              Promise.resolve(
                options.model.doStream(callOptions(options, request, prompt, controller.signal))
              ),
            catch: (error) => error
          })
        const { lateSystemMessages } = options
        const promptWith = (isTaken: boolean) =>
          toAiSdkPrompt(request.prompt, { ...options, lateSystemMessages: isTaken })
        const prompt = promptWith(lateSystemMessages.areTaken())
        const result = yield* open(prompt).pipe(
          Effect.catchIf(
            (error) => hasLateSystemMessage(prompt) && mayRefuseTheRole(error),
            () => Effect.tap(open(promptWith(false)), () => Effect.sync(lateSystemMessages.refused))
          ),
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
          Stream.map(makeThinkTagReader()),
          Stream.flattenIterable
        )
      })
    )

const hasLateSystemMessage = (prompt: LanguageModelV4Prompt): boolean =>
  prompt.slice(1).some(({ role }) => role === "system")

/** Chat templates that fail name the role, the system message or the template; llama.cpp answers such a failure with 500. */
const mayRefuseTheRole = (error: unknown): boolean =>
  APICallError.isInstance(error) &&
  [400, 422, 500].includes(error.statusCode ?? 0) &&
  /system|template|role/i.test(`${error.message} ${error.responseBody ?? ""}`)

const callOptions = (
  options: AiSdkModelOptions,
  request: PortRequest,
  prompt: LanguageModelV4Prompt,
  abortSignal: AbortSignal
): LanguageModelV4CallOptions => ({
  prompt,
  abortSignal,
  ...toolsOf(request, options),
  ...(options.temperature === undefined ? {} : { temperature: options.temperature }),
  ...(options.maxOutputTokens === undefined ? {} : { maxOutputTokens: options.maxOutputTokens }),
  ...(options.reasoning === undefined ? {} : { reasoning: options.reasoning }),
  ...(options.requestOptions === undefined ? {} : { providerOptions: options.requestOptions })
})

/** Anthropic and Bedrock refuse a prompt with tool calls if the request declares no such tool, so tools of earlier calls are declared even if none is offered. */
const toolsOf = (
  request: PortRequest,
  { forbidsTools, namesCalledTools, schemaRules }: AiSdkModelOptions
): Pick<LanguageModelV4CallOptions, "tools" | "toolChoice"> => {
  const none = { type: forbidsTools ? "none" : "auto" } as const
  if (request.tools.length > 0)
    return {
      tools: toAiSdkTools(request.tools, schemaRules),
      toolChoice: request.toolChoice === "none" ? none : { type: "auto" }
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
    toolChoice: none
  }
}
