/**
 * What goes back through the door: the SDK's answers, and those that are given before it is asked.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * What concerns the request as such (who, where, how large) is told by a problem
 * document as at every other door; what concerns the message, by a JSON-RPC error.
 */
import { type InputFault, ServerFault } from "@tropism/api/problems"
import { Effect, Predicate, type Scope, Stream } from "effect"
import { HttpServerRespondable, HttpServerResponse } from "effect/http"
import { passingFault } from "../database/database-away.ts"
import { stoppedResponse } from "../http/closing.ts"

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
  message === undefined || isMethod(message, "subscriptions/listen")

const isMethod = (message: unknown, method: string): boolean =>
  Predicate.hasProperty(message, "method") && message.method === method

/** What becomes of a stream. */
export interface Streaming {
  /** Done when it is to end, whether or not it has an end of its own. */
  readonly over: Effect.Effect<unknown>
  /** What is told there, where it has none, beside what the SDK says, which waits until this has begun; it may end the stream. */
  readonly told: Effect.Effect<Stream.Stream<Uint8Array>, never, Scope.Scope>
}

/** An answer of the SDK to a message. */
export const asHttp = (
  response: Response,
  message: unknown,
  streaming: Streaming
): HttpServerResponse.HttpServerResponse => {
  const { body } = response
  if (body === null || response.headers.get("content-type") !== "text/event-stream")
    return HttpServerResponse.fromWeb(response)
  const sent = Stream.fromReadableStream({ evaluate: () => body, onError: (error) => error })
  return HttpServerResponse.stream(
    isOpenEnded(message)
      ? Stream.concat(Stream.succeed(begun), untilOver(sent, streaming))
      : Stream.interruptWhen(sent, streaming.over),
    {
      status: response.status,
      headers: {
        ...Object.fromEntries(response.headers),
        // A connection that is kept for another request would keep a server that stops waiting for it.
        ...(isOpenEnded(message) || isMethod(message, "events/stream") ? { connection: "close" } : {})
      }
    }
  )
}

const untilOver = <E>(sent: Stream.Stream<Uint8Array, E>, { over, told }: Streaming) =>
  Stream.unwrap(Effect.map(told, (more) => Stream.merge(sent, more, { haltStrategy: "either" }))).pipe(
    Stream.interruptWhen(over)
  )

/** What the server itself got wrong is for its log; what passes is told. */
export const toServerFault = (defect: unknown) => {
  const detail = passingFault(defect)
  return detail === undefined
    ? Effect.logError("An MCP request failed", defect).pipe(
        Effect.andThen(
          HttpServerRespondable.toResponse(new ServerFault({ detail: "The server failed; its log says why" }))
        )
      )
    : stoppedResponse(detail)
}
