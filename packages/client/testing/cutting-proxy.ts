/**
 * Stands between a client and a server, and destroys connections in the middle of what is told on them.
 */
import { createServer, connect, type AddressInfo, type Socket } from "node:net"
import { Effect } from "effect"

/** Destroys the first connection on which the server has said a text so often. */
export interface Cut {
  readonly text: string
  readonly times: number
  /** Whether what was said last before the cut does not arrive. */
  readonly isLost?: boolean
}

export interface CuttingProxy {
  readonly url: string
  /** What was not cut yet. */
  readonly left: () => ReadonlyArray<Cut>
}

/** A proxy in front of a server, which makes each cut once and in this order, until the scope ends. */
export const cuttingProxy = (server: string, cuts: ReadonlyArray<Cut>) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() => {
        const left = [...cuts]
        const sockets = new Set<Socket>()
        const { hostname, port } = new URL(server)
        const proxy = createServer((client) => {
          const far = connect(Number(port), hostname)
          for (const socket of [client, far]) {
            sockets.add(socket)
            const end = () => {
              client.destroy()
              far.destroy()
            }
            socket.on("error", end).on("close", () => sockets.delete(socket))
          }
          client.pipe(far)
          client.on("close", () => far.destroy())
          far.on("close", () => client.end())
          let told = ""
          far.on("data", (part: Buffer) => {
            told += part.toString("latin1")
            const [cut] = left
            if (cut === undefined || told.split(cut.text).length <= cut.times) return void client.write(part)
            left.shift()
            const destroy = () => {
              client.resetAndDestroy()
              far.destroy()
            }
            if (cut.isLost === true) destroy()
            else client.write(part, destroy)
          })
        })
        return new Promise<{ url: string; left: () => ReadonlyArray<Cut>; close: () => void }>((resolve) =>
          proxy.listen(0, "127.0.0.1", () =>
            resolve({
              url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
              left: () => left,
              close: () => {
                proxy.close()
                for (const socket of sockets) socket.destroy()
              }
            })
          )
        )
      }),
      ({ close }) => Effect.sync(close)
    ),
    ({ left, url }): CuttingProxy => ({ url, left })
  )
