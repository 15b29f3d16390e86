/**
 * Opens the listening socket, answers 503 while there are no routes, and coordinates the shutdown of requests.
 *
 * A server listens a moment before its routes exist and a moment after they are gone. A request at that time gets an answer and does not
 * hang.
 */
import { createServer, type Server } from "node:http"
import { createServer as createSocket } from "node:net"
import type { Duplex } from "node:stream"
import { MalformedRequest, Unavailable } from "@tropism/api/problems"
import { Effect, Context, Deferred, Layer, Clock } from "effect"
import { HttpServerRespondable, HttpServerResponse } from "effect/http"
import { httpLimits } from "../limits.ts"
import { edgeLimits } from "./limits.ts"

const notYet = {
  type: "/problems/unavailable",
  status: 503,
  title: "The server cannot work at the moment",
  detail: "The server is starting or stopping: ask again in a moment"
} satisfies Partial<Unavailable>

const noHttp = {
  type: "/problems/malformed-request",
  status: 400,
  title: "The request cannot be read",
  detail: "What came is no request in HTTP/1.1"
} satisfies Partial<MalformedRequest>

const headTooLarge = {
  type: "about:blank",
  status: 431,
  title: "Request Header Fields Too Large",
  detail: "The address and the headers are larger than the server reads: send less of them, also of cookies"
}

/** Answers bytes that did not parse as a request, and closes the connection. */
const answerUnread = (error: NodeJS.ErrnoException, socket: Duplex): void => {
  if (!socket.writable || error.code?.startsWith("HPE_") !== true) return void socket.destroy()
  const problem = error.code === "HPE_HEADER_OVERFLOW" ? headTooLarge : noHttp
  const body = JSON.stringify(problem)
  const head = [
    `HTTP/1.1 ${problem.status} ${problem.status === 431 ? problem.title : "Bad Request"}`,
    "content-type: application/problem+json",
    `content-length: ${body.length}`,
    "connection: close"
  ]
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`)
}

/**
 * A server that answers 503 until another handler is attached. Uploads have no time limit here.
 *
 * A broken connection is an error of its request even when nothing reads the body any more. Readers learn it from the stream; an unhandled
 * `error` event would end the program.
 */
export const newServer = (): Server => {
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: httpLimits.keepAliveMs })
  server.on("clientError", answerUnread)
  return server.on("request", (request, response) => {
    request.on("error", () => undefined)
    response.on("error", () => undefined)
    if (server.listenerCount("request") > 1) return
    // Discard the body, and close the connection so that no further request waits on it.
    request.resume()
    response
      .writeHead(503, { "content-type": "application/problem+json", "retry-after": "1", connection: "close" })
      .end(JSON.stringify(notYet))
  })
}

/** Why listening at an address failed: the operating system's code and message. */
export interface ListenFault {
  readonly code?: string
  readonly message: string
}

/** Without a host: all addresses of the machine. */
export interface ListenAddress {
  readonly host?: string | undefined
  readonly port: number
}

/** Checks that an address is free to listen at; connections meanwhile are refused. */
export const tryListening = (address: ListenAddress) =>
  Effect.callback<void, ListenFault>((resume) => {
    const socket = createSocket((connection) => connection.destroy())
    socket.once("error", (error: ListenFault) => resume(Effect.fail(error)))
    socket.listen(address, () => socket.close(() => resume(Effect.void)))
  })

// Signals to endless streams that the server is about to stop.
//
// A stopping server waits for open requests, and a stream would hold it up for nothing. So a stream ends at once and its client reconnects
// elsewhere. A caller who waits for an answer may wait until a moment before requests are cut off, and then learns where to go on.

export class Closing extends Context.Service<
  Closing,
  {
    /** Completes as soon as the server stops. */
    readonly begun: Effect.Effect<void>
    /** Marks the server as stopping. */
    readonly begin: Effect.Effect<void>
    /** Completes a moment before open requests are cut off. */
    readonly lastCall: Effect.Effect<void>
    /** Starts the time that open requests have to finish. */
    readonly drain: Effect.Effect<void>
  }
>()("@tropism/server/http/Closing") {
  static readonly layer = Layer.effect(
    Closing,
    Effect.gen(function* () {
      const scope = yield* Effect.scope
      const stopping = yield* Deferred.make<void>()
      const called = yield* Deferred.make<void>()
      const call = Effect.andThen(
        Effect.sleep(httpLimits.drainTimeoutMs - edgeLimits.lastWordMs),
        Deferred.succeed(called, undefined)
      )
      return Closing.of({
        begun: Deferred.await(stopping),
        begin: Effect.asVoid(Deferred.succeed(stopping, undefined)),
        lastCall: Deferred.await(called),
        // No request waits for this timer: the server exits as soon as the last request is answered.
        drain: Effect.asVoid(Effect.forkIn(call, scope))
      })
    })
  )
}

/** The problem for a request that the server's stop interrupts. */
export const stopsWith = (detail: string): Unavailable => new Unavailable({ detail })

/** The same as an answer, with Retry-After. */
export const stoppedResponse = (detail: string): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(HttpServerRespondable.toResponse(stopsWith(detail)), comeAgain)

/** Sets Retry-After. */
export const comeAgain = HttpServerResponse.setHeader("retry-after", "1")

// Readiness: whether this server should receive requests. Not while it stops, and not when a background loop has ended.
//
// A stopping server reports it at once, and stays open for a moment longer if a readiness probe came recently, so that load balancers
// notice first. Whether the database is writable is the database's own answer.

export class Readiness extends Context.Service<
  Readiness,
  {
    /** Why the server is not ready, for a readiness probe; undefined when it is. Counts as monitoring. */
    readonly look: Effect.Effect<
      { readonly reason: "stopping" | "partEnded"; readonly detail: string } | undefined
    >
    /** The background loop that has ended; null while all run. Unlike `look` it does not count as monitoring. */
    readonly fault: Effect.Effect<string | null>
    /** Whether the server is stopping. */
    readonly isStopping: Effect.Effect<boolean>
    /** Marks the server as stopping, and waits for the notice period if the server is monitored. */
    readonly leave: (noticeMs: number) => Effect.Effect<void>
    /** Runs a loop that must not end while the server runs. */
    readonly depend: <R>(name: string, loop: Effect.Effect<never, never, R>) => Effect.Effect<never, never, R>
  }
>()("@tropism/server/http/Readiness") {
  static readonly layer = Layer.sync(Readiness, () => {
    let isStopping = false
    let lookedAtMs: number | undefined
    const ended: Array<string> = []

    const look = Effect.map(Clock.currentTimeMillis, (nowMs) => {
      lookedAtMs = nowMs
      if (isStopping)
        return { reason: "stopping" as const, detail: "The server is stopping: ask another one" }
      const detail = endedWords()
      return detail === undefined ? undefined : { reason: "partEnded" as const, detail }
    })

    const endedWords = () =>
      ended.length === 0
        ? undefined
        : `A part of the server has ended and must be started again with it: ${ended.join(", ")}`

    const leave = Effect.fnUntraced(function* (noticeMs: number) {
      isStopping = true
      const nowMs = yield* Clock.currentTimeMillis
      const isWatched = lookedAtMs !== undefined && nowMs - lookedAtMs < edgeLimits.watchedMs
      if (isWatched && noticeMs > 0) yield* Effect.sleep(noticeMs)
    })

    const depend = <R>(name: string, loop: Effect.Effect<never, never, R>) =>
      Effect.onExit(loop, () =>
        Effect.suspend(() => {
          if (isStopping) return Effect.void
          ended.push(name)
          return Effect.logError(`The ${name} has ended: nothing that it moves goes on at this server`)
        })
      )

    return Readiness.of({
      look,
      fault: Effect.sync(() => endedWords() ?? null),
      isStopping: Effect.sync(() => isStopping),
      leave,
      depend
    })
  })
}
