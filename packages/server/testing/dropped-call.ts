/**
 * A call over a socket of its own, whose client goes away before it is answered.
 *
 * When the server has noticed is seen where everything that is connected is written down: the kernel's table.
 */
import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { Effect, type Scope } from "effect"
import { type Doors, eventually } from "./platform.ts"

export interface DroppedCall {
  /** Goes away without a word, and waits until the server has closed its end. */
  readonly drop: Effect.Effect<unknown>
}

/** Sends a message and reads nothing. */
export const beginCall = Effect.fn("beginCall")(function* (
  doors: Doors,
  path: string,
  message: object,
  headers: Readonly<Record<string, string>> = {}
): Effect.fn.Return<DroppedCall, never, Scope.Scope> {
  const { host, hostname, port } = new URL(doors.url)
  const open = Effect.callback<Socket>((resume) => {
    const socket = connect({ host: hostname, port: Number(port) }, () => resume(Effect.succeed(socket)))
    socket.on("error", () => {})
  })
  const socket = yield* Effect.acquireRelease(open, (made) => Effect.sync(() => made.destroy()))
  const ownPort = socket.localPort ?? 0
  const body = JSON.stringify(message)
  const sent = {
    host,
    authorization: `Bearer ${doors.token}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "content-length": String(Buffer.byteLength(body)),
    ...headers
  }
  const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}`)
  socket.write(`POST ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n${body}`)
  return {
    drop: Effect.andThen(
      Effect.sync(() => void socket.destroy()),
      eventually(
        Effect.sync(() => isServed(Number(port), ownPort)),
        (served) => !served
      )
    )
  }
})

/** Whether the server still holds its end of a connection. */
const isServed = (serverPort: number, clientPort: number): boolean => {
  const ends = [serverPort, clientPort].map((port) => `:${port.toString(16).toUpperCase().padStart(4, "0")}`)
  const [, ...rows] = readFileSync("/proc/net/tcp", "utf8").split("\n")
  return rows.some((row) => {
    const [, local = "", remote = "", state] = row.trim().split(/\s+/)
    // Established, or closed by the client alone.
    return (
      local.endsWith(ends[0] ?? "") && remote.endsWith(ends[1] ?? "") && (state === "01" || state === "08")
    )
  })
}
