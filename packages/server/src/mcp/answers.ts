/**
 * What goes back through the door: the SDK's answers, and those that are given before it is asked.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * What concerns the request as such (who, where, how large) is told by a problem
 * document as at every other door; what concerns the message, by a JSON-RPC error.
 */
import { type InputFault, ServerFault } from "@tropism/api/problems"
import { Effect, Predicate, Stream } from "effect"
import { HttpServerRespondable, HttpServerResponse } from "effect/http"

/** A JSON-RPC error that belongs to no message that could be read. */
export const rpcFault = (
  status: number,
  code: number,
  message: string,
  errors?: ReadonlyArray<InputFault>,
  headers: Record<string, string> = {}
): Response =>
  Response.json(
    {
      jsonrpc: "2.0",
      error: { code, message, ...(errors === undefined ? {} : { data: { errors } }) },
      id: null
    },
    { status, headers }
  )

/** A comment with which a stream that may be quiet for long says that it is open. */
const begun = new TextEncoder().encode(": open\n\n")

/** Whether a stream that answers this message, or none, has no end of its own. */
const isOpenEnded = (message: unknown): boolean =>
  message === undefined ||
  (Predicate.hasProperty(message, "method") && message.method === "subscriptions/listen")

/** An answer of the SDK to a message; a stream without an end of its own goes on until `over`. */
export const asHttp = (
  response: Response,
  message: unknown,
  over: Effect.Effect<unknown>
): HttpServerResponse.HttpServerResponse => {
  const { body } = response
  if (body === null || response.headers.get("content-type") !== "text/event-stream")
    return HttpServerResponse.fromWeb(response)
  const sent = Stream.fromReadableStream({ evaluate: () => body, onError: (error) => error })
  return HttpServerResponse.stream(
    isOpenEnded(message) ? Stream.succeed(begun).pipe(Stream.concat(sent), Stream.interruptWhen(over)) : sent,
    { status: response.status, headers: Object.fromEntries(response.headers) }
  )
}

/** What the server itself got wrong is for its log. */
export const toServerFault = (defect: unknown) =>
  Effect.logError("An MCP request failed", defect).pipe(
    Effect.andThen(
      HttpServerRespondable.toResponse(new ServerFault({ detail: "The server failed; its log says why" }))
    )
  )
