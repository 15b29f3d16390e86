/**
 * Answers whatever goes wrong around a handler with a problem document.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A request that does not fit the contract is told where, an ill-formed id in a
 * path is answered like a missing thing, and an address that nothing answers
 * like one. What the server itself got wrong is logged and never shown.
 */
import { RequestProblems } from "@tropism/api/authorization"
import {
  BodyTooLarge,
  type InvalidInput,
  type MalformedRequest,
  NotFound,
  ServerFault,
  Unavailable
} from "@tropism/api/problems"
import { Cause, Effect, Layer } from "effect"
import { HttpEffect, type HttpServerRequest, HttpServerResponse } from "effect/http"
import { HttpApiError } from "effect/http-api"
import { passingFault } from "../database/database-away.ts"
import { unfitBody, unfitParameters } from "./input-faults.ts"
import { sendJson } from "./request-judgement.ts"

export const layerRequestProblems = Layer.succeed(RequestProblems, (httpEffect) =>
  httpEffect.pipe(
    // The framework itself answers a content type that it does not know, with bare text.
    Effect.filterOrFail(
      (response) => response.status !== 415,
      () => sendJson
    ),
    Effect.catch((error) => problemFor(error)),
    Effect.catchDefect(
      (defect): Effect.Effect<never, ServerFault | Unavailable, HttpServerRequest.HttpServerRequest> => {
        const detail = passingFault(defect)
        return detail === undefined
          ? Effect.andThen(Effect.logError("A request failed", defect), serverFault)
          : Effect.andThen(tellWhen, Effect.fail(new Unavailable({ detail })))
      }
    )
  )
)

const tellWhen = HttpEffect.appendPreResponseHandler((_, response) =>
  Effect.succeed(HttpServerResponse.setHeader(response, "retry-after", "1"))
)

const serverFault = Effect.fail(new ServerFault({ detail: "The server failed; its log says why" }))

type Problem = NotFound | InvalidInput | ServerFault | BodyTooLarge | MalformedRequest

/** A fault of the request in the contract's words; what is none of these stays what it is. */
const problemFor = <E>(error: E): Effect.Effect<never, Problem | E> => {
  if (HttpApiError.HttpApiSchemaError.is(error)) return problemOf(error)
  if (HttpApiError.HttpApiPayloadTooLarge.is(error))
    return Effect.fail(new BodyTooLarge({ detail: "The file is larger than this door takes" }))
  return Effect.fail(error)
}

const problemOf = (error: HttpApiError.HttpApiSchemaError): Effect.Effect<never, Problem> => {
  const { issue } = error.cause
  switch (error.kind) {
    case "Body":
    case "ResponseHeaders":
      return Effect.andThen(
        Effect.logError("An answer does not fit the contract", Cause.fail(error.cause)),
        serverFault
      )
    case "Params":
      return Effect.fail(new NotFound({ detail: "There is nothing at this address" }))
    case "Payload":
      return Effect.fail(unfitBody(issue))
    default:
      return Effect.fail(unfitParameters(issue))
  }
}
