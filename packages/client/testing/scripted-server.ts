/**
 * A server that answers its connections in order, as a story scripts them, and the clock of whoever waits for it.
 */
import { Effect, Fiber, Layer } from "effect"
import { HttpClient, HttpClientError, type HttpClientRequest, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"

/** What the server does with one connection. */
export type Answer = (
  request: HttpClientRequest.HttpClientRequest
) => Effect.Effect<Response, HttpClientError.HttpClientError>

export const says =
  (text: string, init?: ResponseInit): Answer =>
  () =>
    Effect.succeed(new Response(text, init))

/** Sends a text and then neither closes nor says anything more. */
export const fallsSilentAfter =
  (text: string): Answer =>
  () =>
    Effect.sync(
      () =>
        new Response(
          new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(text)) })
        )
    )

/** No connection comes about. */
export const refusesConnections: Answer = (request) =>
  Effect.fail(
    new HttpClientError.HttpClientError({
      reason: new HttpClientError.TransportError({
        request,
        cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" })
      })
    })
  )

export const cannotBeReached: Answer = (request) =>
  Effect.fail(
    new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request }) })
  )

/** A server that answers its connections in order, and the requests it saw. */
export const server = (...answers: ReadonlyArray<Answer>) => {
  const requests: Array<HttpClientRequest.HttpClientRequest> = []
  const layer = Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) =>
      Effect.suspend(() => {
        requests.push(request)
        const answer = answers[requests.length - 1] ?? says("", { status: 204 })
        return Effect.map(answer(request), (response) => HttpClientResponse.fromWeb(request, response))
      })
    )
  )
  return { requests, layer }
}

/** Runs an effect while the clock moves as far as it needs. */
export const whileTimePasses = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust("1 hour")
    return yield* Fiber.join(fiber)
  })
