/**
 * Makes a request again where that has no second effect: below both clients.
 *
 * A POST gets an `Idempotency-Key` of its own, so whatever becomes of its
 * connection, the server does it once. What is neither a reading nor keyed is
 * made again only where the server says that it has done nothing of it (429).
 * A refusal is an answer and never asked for again. What the server takes no key
 * for is given none and made once.
 */
import { Effect, Random, Result } from "effect"
import { HttpClient, HttpClientError, HttpClientRequest, type HttpClientResponse } from "effect/http"
import { limits } from "./limits.ts"
import { isNeverMade, mayBeDone } from "./unanswered.ts"

type Outcome = Result.Result<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>

/** A client that makes a request again up to so many times. */
export const retrying =
  (retries: number) =>
  (client: HttpClient.HttpClient): HttpClient.HttpClient =>
    client.pipe(
      HttpClient.mapRequestEffect((request) => Effect.sync(() => withKey(request))),
      HttpClient.transform((attempt, request) =>
        madeAgain(attempt, request, Math.min(Math.max(retries, 0), limits.retriesMost))
      )
    )

/** Gives a POST a key where it has none and the server takes one. */
const withKey = (request: HttpClientRequest.HttpClientRequest): HttpClientRequest.HttpClientRequest =>
  request.method === "POST" && request.headers["idempotency-key"] === undefined && !hasOwnName(request)
    ? HttpClientRequest.setHeader(request, "idempotency-key", newKey())
    : request

/** 128 bits of chance; `randomUUID` is missing from pages that came over plain HTTP. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    ""
  )

const madeAgain = (
  attempt: Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>,
  request: HttpClientRequest.HttpClientRequest,
  retries: number
) =>
  Effect.gen(function* () {
    let broken: Outcome | undefined
    for (let made = 0; ; made += 1) {
      const outcome = yield* Effect.result(inTime(attempt, request))
      if (Result.isFailure(outcome) && mayBeDone(outcome.failure)) broken = outcome
      const pauseMs = made < retries ? yield* pauseBefore(outcome, request, made) : undefined
      // A server that is gone now says nothing of what an attempt before this one came to.
      if (pauseMs === undefined)
        return yield* Effect.fromResult(broken !== undefined && saysNothing(outcome) ? broken : outcome)
      // What nobody reads would hold the connection.
      if (Result.isSuccess(outcome)) yield* Effect.ignore(outcome.success.text)
      yield* Effect.sleep(pauseMs)
    }
  })

/** Whether an outcome tells nothing of the request but that it was not done this time. */
const saysNothing = (outcome: Outcome): boolean =>
  Result.isFailure(outcome)
    ? isNeverMade(outcome.failure)
    : [429, 502, 503, 504].includes(outcome.success.status)

/** Gives an answer up that does not begin. */
const inTime = (
  attempt: Effect.Effect<HttpClientResponse.HttpClientResponse, HttpClientError.HttpClientError>,
  request: HttpClientRequest.HttpClientRequest
) =>
  isStreamed(request)
    ? attempt
    : Effect.timeoutOrElse(attempt, {
        duration: limits.answerMs,
        orElse: () =>
          Effect.fail(
            new HttpClientError.HttpClientError({
              reason: new HttpClientError.TransportError({
                request,
                description: `No answer began within ${limits.answerMs / 1_000} s`
              })
            })
          )
      })

/** How long to wait before the request is made again; undefined where it is not. */
const pauseBefore = (
  outcome: Outcome,
  request: HttpClientRequest.HttpClientRequest,
  made: number
): Effect.Effect<number | undefined> => {
  if (isStreamed(request) || hasOwnName(request) || !mayComeAgain(outcome, request))
    return Effect.succeed(undefined)
  const asked = Result.isSuccess(outcome) ? retryAfterMs(outcome.success) : undefined
  if (asked !== undefined && asked > limits.retryAfterLongestMs) return Effect.succeed(undefined)
  const own = Math.min(limits.retryFirstMs * 2 ** made, limits.retryLongestMs)
  return Effect.map(Random.next, (chance) =>
    // Many clients that were sent away together must not come back together.
    asked === undefined ? (own * (1 + chance)) / 2 : asked + (chance * own) / 2
  )
}

const mayComeAgain = (
  outcome: Outcome,
  { headers, method }: HttpClientRequest.HttpClientRequest
): boolean => {
  const isKeyed = headers["idempotency-key"] !== undefined
  const hasNoSecondEffect = method === "GET" || method === "HEAD" || isKeyed
  if (Result.isFailure(outcome)) return hasNoSecondEffect && outcome.failure.reason._tag === "TransportError"
  const { headers: told, status } = outcome.success
  if (status === 429) return true
  // An attempt before this one is still at work under the key: what comes of it will be told.
  if (status === 409) return isKeyed && told["retry-after"] !== undefined
  return hasNoSecondEffect && [502, 503, 504].includes(status)
}

/**
 * Whether the server knows such a request by a name in it and takes no key: `ownNames` of the contract, which has
 * each by its operation's name. Only who sends it knows whether it may be sent again.
 */
const hasOwnName = ({ method, url }: HttpClientRequest.HttpClientRequest): boolean =>
  method === "POST" &&
  /\/api\/(projects\/[^/]+\/import|restore|hooks\/[^/]+)$/.test(url.split(/[?#]/, 1)[0] ?? "")

/** A body that flows cannot be sent twice. */
const isStreamed = ({ body }: HttpClientRequest.HttpClientRequest): boolean =>
  body._tag === "Stream" || (body._tag === "Raw" && body.body instanceof ReadableStream)

/** What `Retry-After` asks for, in seconds as this server says it; a date is not read. */
export const retryAfterMs = ({
  headers
}: {
  readonly headers: Readonly<Record<string, string | undefined>>
}): number | undefined => {
  const text = headers["retry-after"] ?? ""
  return /^\d{1,9}$/.test(text) ? Number(text) * 1_000 : undefined
}
