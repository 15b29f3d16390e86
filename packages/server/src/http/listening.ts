/**
 * The socket at which the doors stand, and what it says while they are not hung yet.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A server listens a moment before its routes are there, and a moment after they
 * are gone. A request that comes then is answered with 503 and not left waiting.
 */
import { MalformedRequest, Unavailable } from "@tropism/api/problems"
import { createServer, type Server } from "node:http"
import { createServer as createSocket } from "node:net"
import type { Duplex } from "node:stream"
import { Effect } from "effect"
import { httpLimits } from "../limits.ts"

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
