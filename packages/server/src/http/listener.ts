/**
 * The socket at which the doors stand, and what it says while they are not hung yet.
 *
 * A server listens a moment before its routes are there, and a moment after they
 * are gone. A request that comes then is answered with 503 and not left waiting.
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

/** Answers what never came to be a request, and ends its connection. */
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
 * A server that answers 503 to whatever no one else listens for. Uploads may take as long as they need.
 *
 * **Details** A connection that breaks is an error of its request, also when nobody reads the body any more. Whoever
 * reads is told by the stream; an error that nobody listens for would end the program.
 */
export const newServer = (): Server => {
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: httpLimits.keepAliveMs })
  server.on("clientError", answerUnread)
  return server.on("request", (request, response) => {
    request.on("error", () => undefined)
    response.on("error", () => undefined)
    if (server.listenerCount("request") > 1) return
    // Nobody will read the body; the connection ends so that the next request does not wait behind it.
    request.resume()
    response
      .writeHead(503, { "content-type": "application/problem+json", "retry-after": "1", connection: "close" })
      .end(JSON.stringify(notYet))
  })
}

/** Why nobody can listen at an address: the operating system's code and words. */
export interface ListenFault {
  readonly code?: string
  readonly message: string
}

/** Without a host: at every address of the machine. */
export interface ListenAddress {
  readonly host?: string | undefined
  readonly port: number
}

/** Tries whether somebody could listen at an address; whoever connects meanwhile is turned away. */
export const tryListening = (address: ListenAddress) =>
  Effect.callback<void, ListenFault>((resume) => {
    const socket = createSocket((connection) => connection.destroy())
    socket.once("error", (error: ListenFault) => resume(Effect.fail(error)))
    socket.listen(address, () => socket.close(() => resume(Effect.void)))
  })

// Tells streams that have no end of their own that the server is about to stop.
//
// A server that stops waits for the requests under way. A stream would keep it
// waiting for nothing, so it ends at once, and its client comes back elsewhere.
// Who waits for an answer that is still being made may wait until a moment before
// the doors close for good, and is then told where it goes on.

export class Closing extends Context.Service<
  Closing,
  {
    /** Done as soon as the server stops. */
    readonly begun: Effect.Effect<void>
    /** Says that the server stops. */
    readonly begin: Effect.Effect<void>
    /** Done a moment before requests under way are cut off. */
    readonly lastCall: Effect.Effect<void>
    /** Says that from now on requests under way have the time that they may take to end. */
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
        // No request waits for it: the server is gone as soon as the last of them is answered.
        drain: Effect.asVoid(Effect.forkIn(call, scope))
      })
    })
  )
}

/** What is told where a server stops before the answer is there. */
export const stopsWith = (detail: string): Unavailable => new Unavailable({ detail })

/** The same as an answer, with the time after which another server may be asked. */
export const stoppedResponse = (detail: string): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(HttpServerRespondable.toResponse(stopsWith(detail)), comeAgain)

/** Says when to come again. */
export const comeAgain = HttpServerResponse.setHeader("retry-after", "1")

// Whether this server should be sent work: not while it stops, and not when a part that moves work along has ended.
//
// A server that stops says so at once and keeps its doors open for a moment
// longer, if anybody has asked lately whether it is ready: whoever sends
// requests to ready servers finds out before the doors close. Whether the
// database can be written is the database's own answer.

export class Readiness extends Context.Service<
  Readiness,
  {
    /** Why the server should not be sent work, for whoever watches it; undefined when nothing is known. */
    readonly look: Effect.Effect<
      { readonly reason: "stopping" | "partEnded"; readonly detail: string } | undefined
    >
    /** What has ended that should go on for as long as the server does; null where nothing has. Unlike `look` it is nobody's watch. */
    readonly fault: Effect.Effect<string | null>
    /** Whether the server stops. */
    readonly isStopping: Effect.Effect<boolean>
    /** Says that the server stops, and waits for so long if anybody watches it. */
    readonly leave: (noticeMs: number) => Effect.Effect<void>
    /** Runs a loop that is to go on for as long as the server does. */
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
