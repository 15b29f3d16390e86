/**
 * A way to PostgreSQL whose connections can fall silent: nothing that is sent arrives any more, and nothing is closed.
 *
 * So it is behind a machine that lost its power, or a firewall that forgot what
 * went through it. Connections that are opened afterwards work. Answers alone can
 * be lost, too, and connections can break.
 */
import { Effect, Redacted } from "effect"
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net"
import type { PostgresAccess } from "../src/database/postgres-access.ts"

/** The same database behind the way. */
export const acquireSilentWay = Effect.fn("acquireSilentWay")(function* (access: PostgresAccess) {
  const target = new URL(Redacted.value(access.serverUrl))
  const heard = new Set<Socket>()
  const all = new Set<Socket>()
  const ofDatabase = new Set<Socket>()
  const server = yield* Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const way = createServer((near) => {
        const far = connect(Number(target.port), target.hostname)
        ofDatabase.add(far)
        const end = () => {
          // Who has fallen silent does not even hear that the other one goes.
          if (heard.has(near) || heard.has(far)) for (const one of [near, far]) one.destroy()
        }
        for (const [one, other] of [
          [near, far],
          [far, near]
        ] as const) {
          heard.add(one)
          all.add(one)
          one.on("data", (bytes) => {
            if (heard.has(one)) other.write(bytes)
          })
          one.on("error", end).on("close", end)
        }
      })
      way.listen(0, "127.0.0.1", () => resume(Effect.succeed(way)))
    }),
    (way) =>
      Effect.sync(() => {
        way.close()
        for (const one of all) one.destroy()
      })
  )
  const behind = (url: Redacted.Redacted) => {
    const changed = new URL(Redacted.value(url))
    changed.port = String((server.address() as AddressInfo).port)
    return Redacted.make(changed.toString())
  }
  return {
    access: { ...access, ownerUrl: behind(access.ownerUrl), serverUrl: behind(access.serverUrl) },
    /** Lets all connections that are open fall silent. */
    fallSilent: Effect.sync(() => heard.clear()),
    /** Lets what the database answers be lost on all connections that are open; what it is asked arrives. */
    loseAnswers: Effect.sync(() => {
      for (const one of ofDatabase) heard.delete(one)
    }),
    /** Breaks all connections that are open. */
    cut: Effect.sync(() => {
      for (const one of all) one.destroy()
    })
  }
})
