/**
 * What a server says before its doors are hung, and a port while it is tried.
 */
import { connect } from "node:net"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { freeAddress } from "../../testing/cluster-servers.ts"
import { newServer, tryListening } from "./listener.ts"

const portOf = (server: ReturnType<typeof newServer>): number => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

const listening = Effect.acquireRelease(
  Effect.callback<ReturnType<typeof newServer>>((resume) => {
    const server = newServer()
    server.listen({ host: "127.0.0.1", port: 0 }, () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.sync(() => server.close())
)

const ask = (port: number, init?: RequestInit) =>
  Effect.promise(() =>
    fetch(`http://127.0.0.1:${port}/ready`, { signal: AbortSignal.timeout(60_000), ...init })
  )

describe("a server whose doors are not hung yet", () => {
  it.live("answers 503 to whoever comes, body or not, and leaves them to the doors afterwards", () =>
    Effect.gen(function* () {
      const server = yield* listening
      const port = portOf(server)
      for (const init of [{}, { method: "POST", body: "x".repeat(200_000) }]) {
        const early = yield* ask(port, init)
        assert.strictEqual(early.status, 503)
        assert.strictEqual(early.headers.get("content-type"), "application/problem+json")
        assert.strictEqual(early.headers.get("retry-after"), "1")
        assert.include(yield* Effect.promise(() => early.text()), "/problems/unavailable")
      }
      server.on("request", (_, response) => response.end("open"))
      const later = yield* ask(port)
      assert.strictEqual(yield* Effect.promise(() => later.text()), "open")
    })
  )

  it.live(
    "a connection may wait longer for its next request than the minute for which clients keep theirs",
    () =>
      Effect.gen(function* () {
        const server = yield* listening
        server.on("request", (_, response) => response.end("open"))
        const answer = yield* ask(portOf(server))
        const [, seconds] = /timeout=(\d+)/.exec(answer.headers.get("keep-alive") ?? "") ?? []
        assert.isAbove(Number(seconds), 60)
      })
  )

  it.live("a port that is only tried keeps nobody waiting", () =>
    Effect.gen(function* () {
      const { port } = yield* freeAddress
      const ended = yield* Effect.all(
        [
          tryListening({ host: "127.0.0.1", port }),
          Effect.callback<boolean>((resume) => {
            const socket = connect({ host: "127.0.0.1", port })
            socket.on("error", () => resume(Effect.succeed(true)))
            socket.on("close", () => resume(Effect.succeed(true)))
          })
        ],
        { concurrency: 2 }
      )
      assert.isTrue(ended[1])
    })
  )
})
