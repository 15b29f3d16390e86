/**
 * A request at the level of its socket, for what no client would send.
 *
 * What came back is answered once the server has closed the connection, so a
 * story that asks to keep it sees that the server ends it by itself.
 */
import { connect } from "node:net"
import { Effect } from "effect"
import type { Doors } from "./platform.ts"

/** Sends a head of request line and headers, with host and credential added, and what follows it; answers all that came back. */
export const rawAnswer = (doors: Doors, head: ReadonlyArray<string>, rest = ""): Effect.Effect<string> =>
  Effect.callback((resume) => {
    const { host, hostname, port } = new URL(doors.url)
    const lines = [...head, `host: ${host}`, `authorization: Bearer ${doors.token}`]
    const socket = connect(Number(port), hostname, () => socket.write(`${lines.join("\r\n")}\r\n\r\n${rest}`))
    let said = ""
    socket.on("data", (part) => (said += part.toString("latin1")))
    socket.on("error", () => undefined)
    socket.on("close", () => resume(Effect.succeed(said)))
    return Effect.sync(() => socket.destroy())
  })
