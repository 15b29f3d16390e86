/**
 * The errors of the OpenAI endpoint, in OpenAI's format.
 *
 * **Invariant**: clients retry 408, 409, 429 and 5xx by themselves, so none of these is returned after an agent has started, except to a
 * request with a key: it would work twice. Detection is shared with the other endpoints; only the format differs.
 */
import type { OpenAiError } from "@tropism/api/openai-api"
import {
  BodyTooLarge,
  Conflict,
  Forbidden,
  InvalidInput,
  MalformedRequest,
  NotFound,
  TooManyRequests,
  Unavailable
} from "@tropism/api/problems"
import { Effect, Schema } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { invalidBody, invalidParameters } from "../problems.ts"

/** A refusal with its status. */
export class OpenAiFault extends Schema.TaggedError<OpenAiFault>()("OpenAiFault", {
  status: Schema.Int,
  error: Schema.Struct({
    message: Schema.String,
    type: Schema.String,
    param: Schema.NullOr(Schema.String),
    code: Schema.NullOr(Schema.String)
  })
}) {}

interface Terms {
  readonly status?: number
  readonly type?: string
  readonly param?: string | null
  readonly code?: string | null
}

/** An error; by default the request is wrong. */
export const openAiFault = (
  message: string,
  { code = null, param = null, status = 400, type = "invalid_request_error" }: Terms = {}
): OpenAiFault => new OpenAiFault({ status, error: { message, type, param, code } })

/** A field of the request by its pointer, as OpenAI writes it: `/messages/0/content` is `messages[0].content`. */
export const paramOf = (pointer: string): string | null => {
  const steps = pointer.split("/").slice(pointer.startsWith("/") ? 1 : 0)
  const path = steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
  const written = path.reduce(
    (before, step) =>
      /^\d+$/.test(step) ? `${before}[${step}]` : before === "" ? step : `${before}.${step}`,
    ""
  )
  return written === "" ? null : written
}

/** Maps a problem of another endpoint to OpenAI's format; undefined for a server fault. */
export const faultOf = (error: unknown): OpenAiFault | undefined => {
  if (error instanceof OpenAiFault) return error
  if (HttpApiError.HttpApiSchemaError.is(error)) return unfitFault(error)
  if (error instanceof InvalidInput) {
    const [first] = error.errors
    return openAiFault(first?.message ?? error.detail ?? error.title, {
      param: paramOf(first?.pointer ?? "")
    })
  }
  if (error instanceof NotFound) return openAiFault(detailOf(error), { status: 404, code: "not_found" })
  if (error instanceof MalformedRequest) return openAiFault(detailOf(error))
  if (error instanceof BodyTooLarge)
    return openAiFault(detailOf(error), { status: 413, code: "request_too_large" })
  if (error instanceof Forbidden)
    return openAiFault(detailOf(error), { status: 403, type: "permission_error", code: "not_permitted" })
  if (error instanceof TooManyRequests)
    return openAiFault(detailOf(error), {
      status: 429,
      type: "rate_limit_error",
      code: "rate_limit_exceeded"
    })
  // Clients would retry a 409 and get the same answer.
  if (error instanceof Conflict) return openAiFault(detailOf(error), { code: error.reason })
  if (error instanceof Unavailable)
    return openAiFault(detailOf(error), { status: 503, type: "server_error", code: "unavailable" })
  return undefined
}

const detailOf = ({
  detail,
  title
}: {
  readonly detail?: string | undefined
  readonly title?: string
}): string => detail ?? title ?? "The request was refused"

const unfitFault = (error: HttpApiError.HttpApiSchemaError): OpenAiFault | undefined => {
  switch (error.kind) {
    case "Params":
      return openAiFault("There is nothing at this address", { status: 404, code: "not_found" })
    case "Payload":
      return faultOf(invalidBody(error.cause.issue))
    case "Body":
    case "ResponseHeaders":
      return undefined
    default:
      return faultOf(invalidParameters(error.cause.issue))
  }
}

/** A server fault; the log has the reason. */
export const serverFault = openAiFault("The server failed; its log says why", {
  status: 500,
  type: "server_error",
  code: "server_fault"
})

/** The caller may not read the answer any more. */
export const lostToken = openAiFault(
  "This token is not good any more, or has another role by now: the agent goes on, and its answer is not told here",
  { status: 401, code: "invalid_api_key" }
)

/**
 * The turn failed; `sentence` explains it.
 *
 * Not 5xx, although the request was correct: clients retry those, and the agent would repeat what it has done.
 */
export const failedTurn = (sentence: string): OpenAiFault =>
  openAiFault(sentence, { status: 422, type: "agent_error", code: "turn_failed" })

/**
 * The wait for an answer ended, and the agent goes on.
 *
 * A retry with a key is the same request. Without one it would be a new request, so the status is then not 5xx.
 */
const unawaited =
  (what: string, code: string) =>
  (isKeyed: boolean): OpenAiFault =>
    openAiFault(
      isKeyed
        ? `${what}: send the request again under the same Idempotency-Key`
        : `${what}: its answer will stand in the conversation that the header x-tropism-conversation names. Sent again, the request would be said again; under an Idempotency-Key it would be said once`,
      { status: isKeyed ? 503 : 422, type: "server_error", code }
    )

/** The server stops before the answer is complete. */
export const serverLeaving = unawaited(
  "The server stops before the answer is there, and the agent goes on at another one",
  "server_leaving"
)

/** The database was away too long before the answer was complete. */
export const answerUnknown = unawaited(
  "The database does not answer, so nobody knows the answer yet, and the agent goes on when it does",
  "unavailable"
)

/** The database went away while a request without a key was stored. */
export const keptUnknown = openAiFault(
  "The database does not answer, so nobody knows whether this was said: look among the conversations before it is sent again. Under an Idempotency-Key it is said once, however often it is sent",
  { status: 422, type: "server_error", code: "unavailable" }
)

/** The answer for a fault. */
export const faultResponse = ({
  error,
  status
}: OpenAiFault): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const body: OpenAiError = { error }
  return Effect.orDie(HttpServerResponse.json(body, { status }))
}

// Limits of the OpenAI endpoint; each unit is in its name.

export const openAiLimits = {
  /** A client that times out after 300 seconds retries, and the agent would work twice; a whole answer is waited for less. */
  waitMs: 240_000,
  /** The same for a streamed answer. */
  streamWaitMs: 900_000,
  /** Between two heartbeats of a stream: Bun closes a connection that is quiet for 10 seconds. */
  heartbeatIntervalMs: 4_000,
  /** Projects listed in the error for a token that reaches several; the newest. */
  toldProjects: 20,
  /** Agents listed as models; the newest. */
  listedModels: 1_000,
  /** Agents of one page of that list. */
  pageModels: 200
} as const
