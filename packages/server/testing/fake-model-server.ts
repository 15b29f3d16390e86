/**
 * For tests over the wire: a model server on this machine that answers as it is told.
 *
 * Each request takes the next answer; the last one stays. What was asked, and
 * whether the asker hung up, is kept for the test to look at. Not for production.
 */
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import { Deferred, Effect, type Scope } from "effect"

export interface AskedRequest {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: unknown
}

export interface FakeModelServer {
  readonly url: string
  readonly requests: ReadonlyArray<AskedRequest>
  /** Done when the first request was read. */
  readonly asked: Deferred.Deferred<void>
  /** Tears every answer that hangs. */
  readonly breakOff: Effect.Effect<void>
  /** Lets answers begin that are held back. */
  readonly letBegin: Effect.Effect<void>
  /** Lets answers that hang say the next piece of what is left of them. */
  readonly letGoOn: Effect.Effect<void>
  /** Done when the asker closed a stream that was not at its end. */
  readonly hungUp: Deferred.Deferred<void>
}

/** How one request is answered. */
export type FakeAnswer =
  | { readonly kind: "silence" }
  | {
      readonly kind: "json"
      readonly status: number
      readonly body?: unknown
      /** Sent as it is, in place of the body. */
      readonly text?: string
      readonly headers?: Record<string, string>
    }
  | {
      readonly kind: "stream"
      readonly chunks: ReadonlyArray<string | Uint8Array>
      /** `end` ends the body properly, `hang` leaves it open. */
      readonly ending: "end" | "hang"
      /** What a stream that hangs says when the test lets it go on, a piece each time; behind the last it ends properly. */
      readonly rest?: ReadonlyArray<string>
      /** Whether nothing is sent, not even a head, until the test lets it begin. */
      readonly isHeldBack?: boolean
    }

/** A body that is sent in these pieces and ended properly. */
export const streaming = (chunks: ReadonlyArray<string | Uint8Array>): FakeAnswer => ({
  kind: "stream",
  chunks,
  ending: "end"
})

/** Server-sent events with `data` only, as OpenAI and Google send them. */
export const events = (...values: ReadonlyArray<unknown>): FakeAnswer => ({
  kind: "stream",
  chunks: values.map(toEvent),
  ending: "end"
})

export const toEvent = (value: unknown): string =>
  `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`

/** Starts a server that gives these answers, and stops it with the scope. */
export const serveAnswers = (
  ...answers: readonly [FakeAnswer, ...ReadonlyArray<FakeAnswer>]
): Effect.Effect<FakeModelServer, never, Scope.Scope> =>
  Effect.gen(function* () {
    const requests: Array<AskedRequest> = []
    const hanging = new Map<ServerResponse, Array<string>>()
    const heldBack: Array<() => void> = []
    const asked = yield* Deferred.make<void>()
    const hungUp = yield* Deferred.make<void>()
    const server = createServer((request, response) => {
      const body: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => body.push(chunk))
      request.on("end", () => {
        const answer = answers[Math.min(requests.length, answers.length - 1)] ?? answers[0]
        requests.push({
          path: request.url ?? "",
          headers: request.headers,
          body: JSON.parse(Buffer.concat(body).toString("utf8"))
        })
        Deferred.doneUnsafe(asked, Effect.void)
        if (answer.kind === "stream" && answer.isHeldBack) heldBack.push(() => send(answer, response))
        else send(answer, response)
        if (response.writableEnded) return
        hanging.set(response, answer.kind === "stream" ? [...(answer.rest ?? [])] : [])
        response.on("close", () => {
          if (!response.writableFinished) Deferred.doneUnsafe(hungUp, Effect.void)
        })
      })
    })
    yield* Effect.acquireRelease(
      Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
      () =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    )
    const address = server.address()
    const breakOff = Effect.sync(() => {
      for (const response of hanging.keys()) response.destroy()
    })
    return {
      url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
      requests,
      asked,
      hungUp,
      breakOff,
      letBegin: Effect.sync(() => {
        for (const begin of heldBack.splice(0)) begin()
      }),
      letGoOn: Effect.sync(() => {
        for (const [response, left] of hanging) {
          const next = left.shift()
          if (next === undefined) continue
          if (left.length === 0) response.end(next)
          else response.write(next)
        }
      })
    }
  })

const send = (answer: FakeAnswer, response: ServerResponse): void => {
  if (answer.kind === "silence") return
  if (answer.kind === "json") {
    response
      .writeHead(answer.status, { "content-type": "application/json", ...answer.headers })
      .end(answer.text ?? JSON.stringify(answer.body))
    return
  }
  response.writeHead(200, { "content-type": "text/event-stream" })
  for (const chunk of answer.chunks) response.write(chunk)
  if (answer.ending === "end") response.end()
}

/** One chunk of OpenAI's chat completions. */
export const chatChunk = (delta: unknown, finishReason: string | null = null): unknown => ({
  id: "chatcmpl-1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta, finish_reason: finishReason }]
})

/** The last chunks of a chat completion: the reason, the usage, the end. */
export const chatEnd = (reason: string): ReadonlyArray<unknown> => [
  chatChunk({}, reason),
  {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [],
    usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
  },
  "[DONE]"
]
