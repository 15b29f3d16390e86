/**
 * The socket at which the doors stand, and what it says while they are not hung yet.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A server listens a moment before its routes are there, and a moment after they
 * are gone. A request that comes then is answered with 503 and not left waiting.
 */
import { Unavailable } from "@tropism/api/problems"
import { createServer, type Server } from "node:http"
import { createServer as createSocket } from "node:net"
import { Effect } from "effect"
import { httpLimits } from "../limits.ts"

const notYet = {
  type: "/problems/unavailable",
  status: 503,
  title: "The server cannot work at the moment",
  detail: "The server is starting or stopping: ask again in a moment"
} satisfies Partial<Unavailable>

/** A server that answers 503 to whatever no one else listens for. Uploads may take as long as they need. */
export const newServer = (): Server => {
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: httpLimits.keepAliveMs })
  return server.on("request", (request, response) => {
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

/** Tries whether somebody could listen at an address; whoever connects meanwhile is turned away. */
export const tryListening = (address: { readonly host: string; readonly port: number }) =>
  Effect.callback<void, ListenFault>((resume) => {
    const socket = createSocket((connection) => connection.destroy())
    socket.once("error", (error: ListenFault) => resume(Effect.fail(error)))
    socket.listen(address, () => socket.close(() => resume(Effect.void)))
  })
