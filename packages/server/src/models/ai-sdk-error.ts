/**
 * Maps errors of AI SDK models to effect's `AiError`.
 *
 * **Invariant**: only the message, the status and the requested pause are kept: the request's headers and body, which the SDK attaches,
 * contain the key and the prompt. Each message is scrubbed and shortened, because some servers repeat the key.
 */
import { APICallError, LoadAPIKeyError } from "@ai-sdk/provider"
import { beginningOf } from "@tropism/domain/text-beginning"
import { Clock, Duration, Effect, Option, Schema } from "effect"
import { AiError } from "effect/ai"
import { modelLimits } from "../limits.ts"
import { errorMessageIn, kindInHeaders } from "./lenient-wire.ts"
import { kindOfRefusal, type RefusalKind } from "./provider-codes.ts"
import { saysTooLong } from "./window.ts"

/** The source of an error. */
export interface Teller {
  /** Removes every known key from a text. */
  readonly scrub: (text: string) => string
  /** The provider and its server's address: `openai at https://api.openai.com/v1`. */
  readonly where: string
}

/** Maps any thrown value to an `AiError`. */
export const toAiError = Effect.fnUntraced(function* (
  error: unknown,
  { scrub, where }: Teller
): Effect.fn.Return<AiError.AiError> {
  const message = beginningOf(scrub(messageOf(error)), modelLimits.failureMessageMaxChars)
  const status = statusOf(error)
  if (status !== undefined) {
    const now = yield* Clock.currentTimeMillis
    const retryAfter = APICallError.isInstance(error) ? retryAfterOf(error, now) : undefined
    const kind = APICallError.isInstance(error) ? kindInHeaders(error.responseHeaders) : kindOfRefusal(error)
    if (kind === "page" && retryAfter === undefined)
      return fail(new AiError.InvalidRequestError({ description: `${where} ${message}; ${checkAddress}` }))
    const isWorded = [400, 403, 412, 413, 425, 498].includes(status) && saysRateLimit.test(message)
    return fail(
      reasonOfStatus(
        status,
        message,
        kind === "page" ? "away" : (kind ?? (isWorded ? "rateLimit" : undefined)),
        retryAfter
      )
    )
  }
  if (isUnreached(error)) return cutShort(`${where} cannot be reached${codeOf(error)}`)
  if (isNotUnderstood(error)) return unallowed(where)
  if (APICallError.isInstance(error) || isConnectionError(error))
    return cutShort(`The answer of ${where} broke off${codeOf(error)}`)
  if (LoadAPIKeyError.isInstance(error))
    return fail(new AiError.AuthenticationError({ kind: "MissingKey", description: message }))
  if (isKind(error, endedEarly) || isCutFrame(error)) return cutShort(endedTooEarly(where))
  const refusal = refusalIn(error)
  if (refusal !== undefined) return yield* toAiError(refusal, { scrub, where })
  if (isKind(error, badAnswer)) return unallowed(where, spokenIn(error, scrub))
  if (isKind(error, badRequest)) return fail(new AiError.InvalidRequestError({ description: message }))
  const kind = kindOfRefusal(error)
  if (kind !== undefined) return fail(reasonOfKind(kind, message, undefined))
  if (namesBadRequest(error)) return fail(new AiError.InvalidRequestError({ description: message }))
  // A server streamed an error without a status: overloads are reported in this way, and are transient.
  if (!(error instanceof Error)) return fail(new AiError.InternalProviderError({ description: message }))
  return fail(new AiError.UnknownError({ description: message }))
})

/** The connection failed, or the answer ended too early. Retryable. */
export const cutShort = (description: string): AiError.AiError =>
  fail(new AiError.NetworkError({ reason: "TransportError", method: "POST", url: "", description }))

/** An answer that cannot be parsed, with the server's own message from it. */
export const unallowed = (where: string, spoken = ""): AiError.AiError =>
  fail(
    new AiError.InvalidResponseError({
      description: `${where} sent an answer that its API does not allow, which was not understood${spoken}`
    })
  )

const checkAddress = "check the base URL of the provider, which often ends with /v1"

/** The same happens when something other than a model server listens at the address. */
export const endedTooEarly = (where: string): string =>
  `The answer of ${where} ended before it was finished; if it always does, check the address`

const fail = (reason: AiError.AiErrorReason): AiError.AiError =>
  AiError.make({ module: "model", method: "request", reason })

const endedEarly = new Set([
  "AI_InvalidResponseDataError",
  "AI_NoContentGeneratedError",
  "AI_EmptyResponseBodyError"
])
const badAnswer = new Set(["AI_JSONParseError", "AI_TypeValidationError"])
const badRequest = new Set([
  "AI_UnsupportedFunctionalityError",
  "AI_InvalidPromptError",
  "AI_InvalidArgumentError",
  "AI_LoadSettingError"
])

const isKind = (error: unknown, names: ReadonlySet<string>): boolean =>
  error instanceof Error && names.has(error.name)

/** A stream that ends within a frame; the package throws a plain error. */
const isCutFrame = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith("Incomplete Amazon Bedrock event-stream frame")

const RefusedChunk = Schema.Struct({
  value: Schema.Struct({ error: Schema.Record(Schema.String, Schema.Unknown) })
})
const decodeRefusedChunk = Schema.decodeUnknownOption(RefusedChunk)

/** The error in a chunk that a package rejects because it does not expect errors inside a stream. */
const refusalIn = (error: unknown): unknown =>
  isKind(error, badAnswer) ? Option.getOrUndefined(decodeRefusedChunk(error))?.value.error : undefined

const BadAnswer = Schema.Struct({
  text: Schema.optional(Schema.Unknown),
  value: Schema.optional(Schema.Unknown)
})
const decodeBadAnswer = Schema.decodeUnknownOption(BadAnswer)

/** The server's message inside an answer that could not be parsed, where there is one. */
const spokenIn = (error: unknown, scrub: Teller["scrub"]): string => {
  const { text, value } = Option.getOrElse(decodeBadAnswer(error), () => ({
    text: undefined,
    value: undefined
  }))
  const words = value === undefined && typeof text === "string" ? text : errorMessageIn(value)
  return words === undefined || words.trim() === "" || /^\s*[[{<]/.test(words)
    ? ""
    : `: ${beginningOf(scrub(words).replace(/\s+/g, " ").trim(), modelLimits.failureMessageMaxChars)}`
}

/**
 * Whether a package failed on an unexpected value, or could not parse a whole answer.
 *
 * Both look like connection errors: a TypeError, and a failed call with a success status. The JavaScript engines' messages tell the first
 * kind apart; a retry would not help with either.
 */
const isNotUnderstood = (error: unknown): boolean =>
  APICallError.isInstance(error)
    ? error.statusCode !== undefined && isKind(error.cause, badAnswer)
    : error instanceof TypeError && !("code" in error) && stumbles.test(error.message)

const stumbles =
  /is not (?:an object|a function|iterable|defined|a constructor)|cannot read propert|cannot (?:convert|destructure)|evaluating '/i

const namesBadRequest = (error: unknown): boolean => {
  const { code, type } = Option.getOrElse(decodeStreamedError(error), () => ({
    code: undefined,
    type: undefined
  }))
  return [code, type].includes("invalid_request_error")
}

/** The wording of a rate limit without a code. */
const saysRateLimit =
  /rate limit (?:is |was |has been )?(?:exceeded|reached)|\brate[- ]limited\b|error code: 1015|exceeded .{0,40}rate limit|too many requests/i

/** A broken socket has a system code (`ECONNRESET`, `ConnectionClosed`); `fetch` throws a bare TypeError. */
const isConnectionError = (error: unknown): boolean =>
  error instanceof TypeError || (error instanceof Error && "code" in error && typeof error.code === "string")

/** No server answered at all. */
const isUnreached = (error: unknown): boolean =>
  APICallError.isInstance(error) && error.statusCode === undefined

const SystemError = Schema.Struct({ code: Schema.String })
const decodeSystemError = Schema.decodeUnknownOption(SystemError)

/** The system's error code in brackets: ` (ECONNREFUSED)`. */
const codeOf = (error: unknown): string => {
  const causes = error instanceof Error ? [error, error.cause] : [error]
  const code = causes.flatMap((each) => Option.toArray(decodeSystemError(each)))[0]?.code
  return code === undefined ? "" : ` (${code})`
}

const reasonOfStatus = (
  status: number,
  message: string,
  kind: RefusalKind | undefined,
  retryAfter: Duration.Duration | undefined
): AiError.AiErrorReason => {
  const description = message === "" ? `HTTP ${status}` : `HTTP ${status}: ${message}`
  const isVague = kind === undefined || kind === "refused" || (kind === "away" && status === 429)
  const byStatus = isVague ? kindOfStatus(status) : kind
  // A client error with a time to come back passes, whatever its status.
  const isTimed = (isVague || kind === "away") && status < 500 && retryAfter !== undefined
  const known = isTimed ? "rateLimit" : byStatus
  // Google words a per-minute limit like an exhausted quota, but sends a retry delay.
  const isLimit = known === "rateLimit" || (known === "quota" && status === 429)
  if (!isLimit) return reasonOfKind(known, description, retryAfter, status)
  const isUsedUp = retryAfter === undefined && (known === "quota" || saysQuota.test(message))
  return reasonOfKind(isUsedUp ? "quota" : "rateLimit", description, retryAfter)
}

const saysQuota = /insufficient_quota|exceeded your current quota|billing/i

/** The meaning of a status without a code. A server answers 501 when it does not have the method at all. */
const kindOfStatus = (status: number): RefusalKind => {
  if (status === 429) return "rateLimit"
  if (status === 401 || status === 403) return "authentication"
  if (status === 402) return "quota"
  if (status === 413) return "tooLong"
  return (status >= 500 && status !== 501) || [408, 409, 425].includes(status) ? "away" : "refused"
}

const reasonOfKind = (
  kind: RefusalKind,
  description: string,
  retryAfter: Duration.Duration | undefined,
  status?: number
): AiError.AiErrorReason => {
  switch (kind) {
    case "rateLimit":
      return new AiError.RateLimitError({
        metadata: { description },
        ...(retryAfter === undefined ? {} : { retryAfter })
      })
    case "quota":
      return new AiError.QuotaExhaustedError({ metadata: { description } })
    case "away":
      return new AiError.InternalProviderError({ description })
    case "authentication":
      return new AiError.AuthenticationError({
        kind: status === 403 ? "InsufficientPermissions" : "InvalidKey",
        description
      })
    case "tooLong":
      return new AiError.InvalidRequestError({
        description: saysTooLong(description) ? description : `${description} (context length exceeded)`
      })
    case "refused":
      return new AiError.InvalidRequestError({ description })
  }
}

const StreamedError = Schema.Struct({
  message: Schema.optional(Schema.Unknown),
  statusCode: Schema.optional(Schema.Unknown),
  code: Schema.optional(Schema.Unknown),
  type: Schema.optional(Schema.Unknown)
})
const decodeStreamedError = Schema.decodeUnknownOption(StreamedError)

/** The HTTP status of a refusal, also where it came inside a stream that began with 200. */
const statusOf = (error: unknown): number | undefined => {
  if (APICallError.isInstance(error) && error.statusCode !== undefined && error.statusCode >= 400)
    return error.statusCode
  const streamed = Option.getOrUndefined(decodeStreamedError(error))
  return [streamed?.statusCode, streamed?.code].find(isRefusal)
}

const isRefusal = (code: unknown): code is number => typeof code === "number" && code >= 400 && code < 600

const messageOf = (error: unknown): string => {
  if (typeof error === "string") return error
  const message = Option.getOrUndefined(decodeStreamedError(error))?.message
  return typeof message === "string" && message !== "" ? message : "The model's server gave no reason"
}

// The retry delay that a refusing server requests.
//
// Three forms: `retry-after-ms`, `Retry-After` in seconds or as a date, and Google's `RetryInfo` in the body. `retry.ts` decides whether to
// wait.

/** The requested pause, counted from an instant in milliseconds. */
const retryAfterOf = (
  { responseBody, responseHeaders }: Pick<APICallError, "responseBody" | "responseHeaders">,
  nowMs: number
): Duration.Duration | undefined => inHeaders(responseHeaders ?? {}, nowMs) ?? inBody(responseBody)

const inHeaders = (headers: Record<string, string>, nowMs: number): Duration.Duration | undefined => {
  const header = (name: string) => Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  const milliseconds = Number(header("retry-after-ms") ?? Number.NaN)
  if (Number.isFinite(milliseconds)) return pauseOf(milliseconds)
  const after = header("retry-after")
  if (after === undefined) return undefined
  const seconds = Number(after)
  return pauseOf(Number.isFinite(seconds) ? seconds * 1000 : Date.parse(after) - nowMs)
}

const RetryInfo = Schema.fromJsonString(
  Schema.Struct({
    error: Schema.Struct({
      details: Schema.Array(Schema.Struct({ retryDelay: Schema.optionalKey(Schema.String) }))
    })
  })
)
const decodeRetryInfo = Schema.decodeUnknownOption(RetryInfo)

/** A protobuf duration, as in `34.4s`. */
const inBody = (body: string | undefined): Duration.Duration | undefined => {
  const details = Option.match(decodeRetryInfo(body), {
    onNone: () => [],
    onSome: ({ error }) => error.details
  })
  const delay = details.find(({ retryDelay }) => retryDelay !== undefined)?.retryDelay
  return delay?.endsWith("s") ? pauseOf(Number(delay.slice(0, -1)) * 1000) : undefined
}

const pauseOf = (milliseconds: number): Duration.Duration | undefined =>
  Number.isFinite(milliseconds) ? Duration.millis(Math.max(0, milliseconds)) : undefined
