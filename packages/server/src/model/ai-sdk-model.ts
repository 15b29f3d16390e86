/**
 * Makes a model of one AI SDK model.
 *
 * One adapter for every provider: the packages speak the wire formats, this
 * file joins them to effect's words. Interruption aborts the HTTP request. There is no
 * retry here and no timeout: `attempt.ts` and `retry.ts` hold those for every
 * model alike. Only a request that was refused with a system message in its middle is
 * made again at once, without one: some servers' chat templates take none there. So is one that was refused with
 * pictures of tool results.
 */
import {
  APICallError,
  type LanguageModelV4,
  type LanguageModelV4CallOptions,
  type LanguageModelV4Prompt,
  type SharedV4ProviderOptions
} from "@ai-sdk/provider"
import { Effect, type Schema, Stream } from "effect"
import type { Prompt } from "effect/ai"
import { type Teller, toAiError } from "./ai-sdk-error.ts"
import { toResponsePart } from "./ai-sdk-parts.ts"
import { type PicturePlace, toAiSdkPrompt } from "./ai-sdk-prompt.ts"
import { type SchemaRules, toAiSdkTools, withOwnKeys } from "./tool-schemas.ts"
import { makeThinkTagReader } from "./think-tags.ts"
import type { ModelPort, PortRequest } from "./model-port.ts"

export interface AiSdkModelOptions extends Teller {
  readonly model: LanguageModelV4
  /** provider:name, as events record the model of an answer. */
  readonly name: string
  readonly lateSystemMessages: LateSystemMessages
  readonly pictures: Pictures
  /** Whether neighbours of one role are sent as one message. */
  readonly joinsNeighbours: boolean
  /** Whether a request must name each tool that the prompt has calls of. */
  readonly namesCalledTools: boolean
  readonly schemaRules: SchemaRules
  readonly temperature?: number | undefined
  readonly maxOutputTokens?: number | undefined
  /** What the provider is told in each request beside that. */
  readonly requestOptions?: SharedV4ProviderOptions | undefined
}

/** Whether a model takes a system message in the middle of a conversation. */
export interface LateSystemMessages {
  readonly areTaken: () => boolean
  /** Called when the model answered without one what it had refused with one. */
  readonly refused: () => void
}

/** Where a model takes the pictures of tool results, until it has refused them. */
export interface Pictures {
  readonly place: () => PicturePlace
  /** Called when the model answered without the pictures what it had refused with them. */
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
        const { joinsNeighbours, lateSystemMessages, name, pictures } = options
        const promptWith = (isTaken: boolean, place: PicturePlace) =>
          toAiSdkPrompt(request.prompt, {
            name,
            joinsNeighbours,
            lateSystemMessages: isTaken,
            pictures: place
          })
        const openWith = (place: PicturePlace) => {
          const prompt = promptWith(lateSystemMessages.areTaken(), place)
          return Effect.catchIf(
            open(prompt),
            (error) => hasLateSystemMessage(prompt) && mayRefuseTheRole(error),
            () => Effect.tap(open(promptWith(false, place)), () => Effect.sync(lateSystemMessages.refused))
          )
        }
        const place = pictures.place()
        const result = yield* openWith(place).pipe(
          Effect.catchIf(
            (error) => place !== "none" && hasPictures(request.prompt) && mayRefusePictures(error),
            () => Effect.tap(openWith("none"), () => Effect.sync(pictures.refused))
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

const hasPictures = ({ content }: Prompt.Prompt): boolean =>
  content.some(
    ({ content: parts, role }) =>
      role === "tool" &&
      parts.some((part) => part.type === "tool-result" && part.options["tropism"] !== undefined)
  )

/** Models without eyes name the image, the kind of content or, where the user shows it after a result, the role. */
const mayRefusePictures = (error: unknown): boolean =>
  APICallError.isInstance(error) &&
  [400, 404, 415, 422, 500].includes(error.statusCode ?? 0) &&
  /image|picture|vision|modal|media|content|role/i.test(`${error.message} ${error.responseBody ?? ""}`)

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
  ...(options.requestOptions === undefined ? {} : { providerOptions: options.requestOptions })
})

/** Anthropic refuses a prompt with tool calls if the request declares no such tool, so tools of earlier calls are declared even if none is offered. */
const toolsOf = (
  request: PortRequest,
  { namesCalledTools, schemaRules }: AiSdkModelOptions
): Pick<LanguageModelV4CallOptions, "tools" | "toolChoice"> => {
  if (request.tools.length > 0)
    return {
      tools: toAiSdkTools(request.tools, schemaRules),
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
