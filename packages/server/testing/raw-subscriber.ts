/**
 * A subscriber of a stream at the level of its socket: one that sits still, or that stops in the middle of an event.
 *
 * It speaks HTTP/1.0, so what comes is the stream itself with no chunks around it.
 */
import { connect, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { type Heard, heardIn } from "./event-stream.ts"
import { type Doors, eventually } from "./platform.ts"

export interface RawSubscriber {
  /** Reads no more; the network's own buffers are all that is filled from here on. */
  readonly sitStill: Effect.Effect<void>
  readonly goOn: Effect.Effect<void>
  /** Bytes that have come so far, with the head of the answer. */
  readonly bytes: () => number
  /** The events that have come whole, of no more than the first bytes if so many are given. */
  readonly heard: (ofBytes?: number) => ReadonlyArray<Heard>
  readonly cut: Effect.Effect<void>
  /** Waits until the server has closed the connection. */
  readonly closed: Effect.Effect<unknown>
}

/** Connects and asks for a stream, until the scope ends. */
export const rawSubscriber = Effect.fn("rawSubscriber")(function* (
  doors: Doors,
  path: string,
  lastEventId?: string
): Effect.fn.Return<RawSubscriber, never, Scope.Scope> {
  const { hostname, port } = new URL(doors.url)
  const state = { parts: new Array<Buffer>(), bytes: 0, isClosed: false }
  const open = Effect.callback<Socket>((resume) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => resume(Effect.succeed(socket)))
    socket.on("data", (part: Buffer) => {
      state.parts.push(part)
      state.bytes += part.length
    })
    socket.on("error", () => {})
    socket.on("close", () => (state.isClosed = true))
  })
  const socket = yield* Effect.acquireRelease(open, (made) => Effect.sync(() => made.destroy()))
  const headers = [
    `GET ${path} HTTP/1.0`,
    `host: ${hostname}:${port}`,
    `authorization: Bearer ${doors.token}`,
    "accept: text/event-stream",
    ...(lastEventId === undefined ? [] : [`last-event-id: ${lastEventId}`])
  ]
  socket.write(`${headers.join("\r\n")}\r\n\r\n`)
  return {
    sitStill: Effect.sync(() => void socket.pause()),
    goOn: Effect.sync(() => void socket.resume()),
    bytes: () => state.bytes,
    heard: (ofBytes = state.bytes) => {
      const text = Buffer.concat(state.parts).subarray(0, ofBytes).toString("utf8")
      return heardIn(text.slice(text.indexOf("\r\n\r\n") + 4))
    },
    cut: Effect.sync(() => void socket.destroy()),
    closed: eventually(
      Effect.sync(() => state.isClosed),
      (isClosed) => isClosed
    )
  }
})
