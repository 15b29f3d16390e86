/**
 * Addresses for servers of a story that work together.
 */
import { randomInt } from "node:crypto"
import { createServer, type Server } from "node:net"
import { Effect } from "effect"
import type { ClusterAddress } from "../src/cluster/peers.ts"

/** Below the ports from which a system takes when it is asked for any, or for one to connect from. */
const ownPorts = { lowest: 10_000, beyond: 32_000 }

/** An address of this machine that nobody listens at, and that nobody is given who asks for any port. */
export const freeAddress: Effect.Effect<ClusterAddress> = Effect.callback<ClusterAddress, "taken">(
  (resume) => {
    const address = { host: "127.0.0.1", port: randomInt(ownPorts.lowest, ownPorts.beyond) }
    const socket = createServer()
    socket.once("error", () => resume(Effect.fail("taken")))
    socket.listen(address, () => socket.close(() => resume(Effect.succeed(address))))
  }
).pipe(Effect.retry({ times: 100 }), Effect.orDie)

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
