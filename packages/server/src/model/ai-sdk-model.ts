/**
 * Makes a model of one AI SDK model.
 *
 * One adapter for every provider: the packages speak the wire formats, this
 * file joins them to effect's words. Interruption aborts the HTTP request. There is no
 * retry here and no timeout: `attempt.ts` and `retry.ts` hold those for every
 * model alike.
 */
import type { LanguageModelV4, LanguageModelV4CallOptions, SharedV4ProviderOptions } from "@ai-sdk/provider"
import { Effect, Stream } from "effect"
import { type Teller, toAiError } from "./ai-sdk-error.ts"
import { toResponsePart } from "./ai-sdk-parts.ts"
import { toAiSdkPrompt, toAiSdkTools } from "./ai-sdk-prompt.ts"
import { makeThinkTagReader } from "./think-tags.ts"
import type { ModelPort, PortRequest } from "./model-port.ts"

export interface AiSdkModelOptions extends Teller {
  readonly model: LanguageModelV4
  /** provider:name, as events record the model of an answer. */
  readonly name: string
  /** Whether a system message may stand in the middle of a conversation. */
  readonly lateSystemMessages: boolean
  /** Whether neighbours of one role are sent as one message. */
  readonly joinsNeighbours: boolean
  /** Whether a request must name each tool that the prompt has calls of. */
  readonly namesCalledTools: boolean
  readonly temperature?: number | undefined
  readonly maxOutputTokens?: number | undefined
  /** What the provider is told in each request beside that. */
  readonly requestOptions?: SharedV4ProviderOptions | undefined
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
        const result = yield* Effect.tryPromise({
          try: () =>
            Promise.resolve(options.model.doStream(callOptions(options, request, controller.signal))),
          catch: (error) => error
        }).pipe(Effect.catch((error) => Effect.flatMap(toAiError(error, options), Effect.fail)))
        return Stream.fromReadableStream({
          evaluate: () => result.stream,
          onError: (error) => ({ thrown: error })
        }).pipe(
          Stream.catch(({ thrown }) =>
            Stream.fromEffect(Effect.flatMap(toAiError(thrown, options), Effect.fail))
          ),
          Stream.mapEffect((part) => toResponsePart(part, options)),
          Stream.flattenIterable,
          Stream.map(makeThinkTagReader()),
          Stream.flattenIterable
        )
      })
    )

const callOptions = (
  options: AiSdkModelOptions,
  request: PortRequest,
  abortSignal: AbortSignal
): LanguageModelV4CallOptions => ({
  prompt: toAiSdkPrompt(request.prompt, options),
  abortSignal,
  ...toolsOf(request, options.namesCalledTools),
  ...(options.temperature === undefined ? {} : { temperature: options.temperature }),
  ...(options.maxOutputTokens === undefined ? {} : { maxOutputTokens: options.maxOutputTokens }),
  ...(options.requestOptions === undefined ? {} : { providerOptions: options.requestOptions })
})

/** Anthropic refuses a prompt with tool calls if the request declares no such tool, so tools of earlier calls are declared even if none is offered. */
const toolsOf = (
  request: PortRequest,
  namesCalledTools: boolean
): Pick<LanguageModelV4CallOptions, "tools" | "toolChoice"> => {
  if (request.tools.length > 0)
    return {
      tools: toAiSdkTools(request.tools),
      toolChoice: { type: request.toolChoice === "none" ? "none" : "auto" }
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
    toolChoice: { type: "none" }
  }
}
