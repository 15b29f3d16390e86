/**
 * Many who watch one log: clients at the level of sockets, which check what comes and note when.
 *
 * They share the bench's process and cores, so they do as little as they can:
 * an event is recognised by its id, which must be the next one.
 */
import { connect, type Socket } from "node:net"
import { nowMs } from "./doors.ts"
import type { ServerProcess } from "./server-process.ts"

export interface Crowd {
  /** How many subscribers have heard everything up to an event. */
  readonly heardBy: (number: number) => number
  /** When the last of them had heard it. */
  readonly lastHeardMs: (number: number) => number
  readonly leave: () => void
}

/** Connects so many subscribers of a path; answers when every stream has begun. */
export const gatherCrowd = async (server: ServerProcess, path: string, count: number): Promise<Crowd> => {
  const heard: Array<number> = []
  const lastMs: Array<number> = []
  const sockets: Array<Socket> = []
  const join = () =>
    new Promise<void>((resolve, reject) => {
      const state = { rest: "", next: 1 }
      const socket = subscribe(server, path, reject)
      sockets.push(socket)
      socket.on("data", (part: Buffer) => {
        const blocks = (state.rest + part.toString("latin1")).split("\n\n")
        state.rest = blocks.pop() ?? ""
        for (const block of blocks) {
          // What a stream begins with has the id of what came before it.
          if (block.includes("retry: ")) {
            resolve()
            continue
          }
          const id = /^id: (\d+)$/m.exec(block)?.[1]
          if (id === undefined) continue
          if (Number(id) !== state.next) throw new Error(`Event ${id} came instead of ${state.next}`)
          heard[state.next] = (heard[state.next] ?? 0) + 1
          lastMs[state.next] = nowMs()
          state.next += 1
        }
      })
    })
  for (let joined = 0; joined < count; joined += 50)
    await Promise.all(Array.from({ length: Math.min(50, count - joined) }, join))
  return {
    heardBy: (number) => heard[number] ?? 0,
    lastHeardMs: (number) => lastMs[number] ?? Number.NaN,
    leave: () => sockets.forEach((socket) => socket.destroy())
  }
}

/** Connects subscribers that never read; answers what disconnects them. */
export const gatherStalled = (server: ServerProcess, path: string, count: number): (() => void) => {
  const sockets = Array.from({ length: count }, () => subscribe(server, path, () => {}).pause())
  return () => sockets.forEach((socket) => socket.destroy())
}

/** HTTP/1.0, so that what comes is the stream itself with no chunks around it. */
const subscribe = (server: ServerProcess, path: string, onError: (error: Error) => void): Socket => {
  const { hostname, port } = new URL(server.url)
  const socket = connect({ host: hostname, port: Number(port) }, () =>
    socket.write(
      `GET ${path} HTTP/1.0\r\nhost: ${hostname}:${port}\r\nauthorization: Bearer ${server.token}\r\naccept: text/event-stream\r\n\r\n`
    )
  )
  return socket.on("error", onError)
}
