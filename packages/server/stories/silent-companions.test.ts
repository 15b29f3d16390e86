/**
 * A server that leaves while another one, which holds a connection to it, stands still.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Option, Scope } from "effect"
import { connect, type Socket } from "node:net"
import { type ClusterAddress, proofHeaders } from "../src/cluster/peers.ts"
import { readKey } from "../src/database/sealing.ts"
import { freeAddress } from "../testing/cluster-servers.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { startServer, storyKeys } from "../testing/platform.ts"

/** Less than the half minute for which a socket waits by itself. */
const farewellMs = 25_000

/** A connection of a server that hears nothing and says nothing once it stands. */
const silentCompanion = ({ host, port }: ClusterAddress) =>
  Effect.acquireRelease(
    Effect.callback<Socket>((resume) => {
      const socket = connect(port, host)
      const headers = {
        host: `${host}:${port}`,
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": Buffer.alloc(16, 7).toString("base64"),
        ...proofHeaders(
          [readKey(storyKeys)].flatMap((key) => key ?? []),
          "127.0.0.1:1"
        )
      }
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
      socket.write(["GET / HTTP/1.1", ...lines, "", ""].join("\r\n"))
      socket.once("data", (head) => {
        expect(String(head)).toContain("101 Switching Protocols")
        socket.pause()
        resume(Effect.succeed(socket))
      })
    }),
    (socket) => Effect.sync(() => socket.destroy())
  )

describe("A server that leaves", () => {
  it.live("does not wait for another one that stands still", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const access = { ...(yield* freshDatabase), embedded: false }
        const leaving = yield* Scope.make()
        const at = yield* freeAddress
        yield* Scope.provide(startServer(access, [], undefined, undefined, storyKeys, at), leaving)
        yield* silentCompanion(at)
        const left = yield* Effect.forkScoped(Scope.close(leaving, Exit.void))
        expect(Option.isSome(yield* Effect.timeoutOption(Fiber.await(left), farewellMs))).toBe(true)
      })
    )
  )
})
