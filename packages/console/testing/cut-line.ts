/**
 * A line to a server that can be cut and mended: what runs over it ends at once, and nothing new comes through.
 *
 * A browser that is told to be offline keeps the streams that it has; a real network does not.
 */
import { connect, createServer, type Socket } from "node:net"
import { onTestFinished } from "vitest"

export interface CutLine {
  /** Where the server is reached over this line. */
  readonly url: string
  readonly cut: () => void
  readonly mend: () => void
}

/** A line to a server; it ends with the test. */
export const cutLine = async (serverUrl: string): Promise<CutLine> => {
  const { hostname, port } = new URL(serverUrl)
  const sockets = new Set<Socket>()
  let isCut = false
  const hangUp = () => {
    for (const socket of sockets) socket.destroy()
    sockets.clear()
  }
  const server = createServer((near) => {
    if (isCut) {
      near.destroy()
      return
    }
    const far = connect(Number(port), hostname)
    for (const [one, other] of [
      [near, far],
      [far, near]
    ] as const) {
      sockets.add(one)
      one.on("error", () => other.destroy())
      one.on("close", () => {
        sockets.delete(one)
        other.destroy()
      })
    }
    near.pipe(far)
    far.pipe(near)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve)
  })
  onTestFinished(() => {
    hangUp()
    server.close()
  })
  const address = server.address()
  const own = typeof address === "object" && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${own}`,
    cut: () => {
      isCut = true
      hangUp()
    },
    mend: () => {
      isCut = false
    }
  }
}
