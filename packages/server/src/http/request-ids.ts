/**
 * The id by which a request is spoken of: in its answer, in the log, and by whoever asks about it.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A client, or a proxy before us, may give its own, so that both sides speak of
 * the same. It is told and logged, and decides nothing: two requests may have one.
 */
import { Effect } from "effect"
import { HttpBody, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Ids } from "../ids.ts"

export const requestIdHeader = "x-request-id"

/** What a client's id may be: visible, and short enough for every line of a log. */
const fit = /^[\x21-\x7e]{1,128}$/

/** The client's id, or a new one where it gave none that is fit. */
export const makeRequestId = Effect.map(Ids, ({ next }) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) => {
    const given = headers[requestIdHeader]
    return given !== undefined && fit.test(given) ? Effect.succeed(given) : next
  })
)

/** The answer with the id: in a header, and in a problem document as its `instance`. */
export const namedBy =
  (id: string) =>
  (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse =>
    HttpServerResponse.setHeader(withInstance(response, id), requestIdHeader, id)

const withInstance = (response: HttpServerResponse.HttpServerResponse, id: string) => {
  const { body } = response
  if (body._tag !== "Uint8Array" || !body.contentType.startsWith("application/problem+json")) return response
  const problem: object = JSON.parse(new TextDecoder().decode(body.body))
  const told = JSON.stringify({ ...problem, instance: `/requests/${encodeURIComponent(id)}` })
  return HttpServerResponse.setBody(response, HttpBody.text(told, body.contentType))
}
