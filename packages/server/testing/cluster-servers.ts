/**
 * Addresses for servers of a story that work together.
 */
import { createServer, type Server } from "node:net"
import { Effect } from "effect"
import type { ClusterAddress } from "../src/cluster/cluster-address.ts"

/** An address of this machine that nobody listened at a moment ago. */
export const freeAddress: Effect.Effect<ClusterAddress> = Effect.promise(
  () =>
    new Promise((resolve) => {
      const socket = createServer()
      socket.listen({ host: "127.0.0.1", port: 0 }, () => {
        const at = socket.address()
        const port = at !== null && typeof at === "object" ? at.port : 0
        socket.close(() => resolve({ host: "127.0.0.1", port }))
      })
    })
)

/** An address of this machine at which another program listens, until the scope ends. */
export const takenAddress = Effect.map(
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<Server>((resolve) => {
          const server = createServer()
          server.listen({ host: "127.0.0.1", port: 0 }, () => resolve(server))
        })
    ),
    (server) => Effect.sync(() => server.close())
  ),
  (server): ClusterAddress => {
    const at = server.address()
    return { host: "127.0.0.1", port: at !== null && typeof at === "object" ? at.port : 0 }
  }
)
