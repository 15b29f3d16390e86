/**
 * Every way in which the door for OpenAI's clients says no, in OpenAI's form.
 *
 * What goes wrong is found by the same code as at the other doors; here it is
 * only told in other words. Clients send a request again by themselves when they
 * are told 408, 409, 429 or 5xx, so none of these is answered once an agent was at work, but
 * to a request with a key: it would work twice.
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

/** Says no; without more the request is wrong. */
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

/** What another door would answer with a problem, in OpenAI's words; undefined for what no request is to blame for. */
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
  // 409 would be sent again by itself, and would be told the same.
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

/** A failure of the server's own; its log says why. */
export const serverFault = openAiFault("The server failed; its log says why", {
  status: 500,
  type: "server_error",
  code: "server_fault"
})

/** Whoever asked may not be told the answer any more. */
export const lostToken = openAiFault(
  "This token is not good any more, or has another role by now: the agent goes on, and its answer is not told here",
  { status: 401, code: "invalid_api_key" }
)

/**
 * The turn that was to answer has failed, told in this sentence.
 *
 * **Details** Not 5xx, although nothing was wrong with the request: clients send one again by themselves then, and what
 * the agent has done by now it would do twice.
 */
export const failedTurn = (sentence: string): OpenAiFault =>
  openAiFault(sentence, { status: 422, type: "agent_error", code: "turn_failed" })

/**
 * Something ends the wait for an answer, and not the agent's work.
 *
 * **Details** Sent again under a key it is the same request; without one it would be another, so it is not 5xx then.
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

/** The server stops before the answer is there. */
export const serverLeaving = unawaited(
  "The server stops before the answer is there, and the agent goes on at another one",
  "server_leaving"
)

/** The database has been away for long before the answer is there. */
export const answerUnknown = unawaited(
  "The database does not answer, so nobody knows the answer yet, and the agent goes on when it does",
  "unavailable"
)

/** The database went away while it kept what was said without a key. */
export const keptUnknown = openAiFault(
  "The database does not answer, so nobody knows whether this was said: look among the conversations before it is sent again. Under an Idempotency-Key it is said once, however often it is sent",
  { status: 422, type: "server_error", code: "unavailable" }
)

/** The answer that a fault is. */
export const faultResponse = ({
  error,
  status
}: OpenAiFault): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const body: OpenAiError = { error }
  return Effect.orDie(HttpServerResponse.json(body, { status }))
}

// Every bound of the door for OpenAI's clients, with its unit in its name.
//

export const openAiLimits = {
  /** A whole answer is waited for so long: a client that waits in vain for 300 seconds would send its request again, and the agent would work twice. */
  waitMs: 240_000,
  /** The same for one that comes as it is made. */
  streamWaitMs: 900_000,
  /** Between two signs of life of a stream: Bun closes a connection that is quiet for 10 seconds. */
  heartbeatIntervalMs: 4_000,
  /** Projects whose addresses a token is told that reaches several, the newest. */
  toldProjects: 20,
  /** Agents that are listed as models, the newest. */
  listedModels: 1_000,
  /** Agents of one read of that list. */
  pageModels: 200
} as const
