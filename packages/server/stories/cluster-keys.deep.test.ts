/**
 * Servers of a cluster prove themselves by the key for secrets: one with another key is not started, or is told of.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Logger, Redacted, Scope } from "effect"
import { type ClusterAddress, nameOf } from "../src/cluster/peers.ts"
import type { PostgresAccess } from "../src/database/postgres-access.ts"
import { serveOn } from "../src/main.ts"
import { freeAddress } from "../testing/cluster-servers.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { keptLines } from "../testing/kept-lines.ts"
import { ask, holding } from "../testing/owner-rows.ts"
import { eventually, startServer, storyToken } from "../testing/platform.ts"
import { naming } from "../testing/naming.ts"

const [old, fresh] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString("base64"))

const shared = Effect.map(freshDatabase, (access) => ({ ...access, embedded: false }))

/** Starts a server with these keys, and answers where the others reach it. */
const start = (access: PostgresAccess, keys: string, { logger } = keptLines()) =>
  Effect.gen(function* () {
    const at = yield* freeAddress
    yield* startServer(access, [logger], undefined, undefined, keys, at)
    yield* eventually(
      ask(access, "select 1 from kb_cluster.tropism_runners where address = $1", [nameOf(at)]),
      (rows) => rows.length === 1
    )
    return at
  })

/** Why a server with these keys does not start. */
const refusalOf = (access: PostgresAccess, keys: string) =>
  Effect.gen(function* () {
    const { message } = yield* serveOn(access, {
      host: "127.0.0.1",
      port: 0,
      dataFolder: "/nonexistent",
      encryptionKeys: Redacted.make(keys),
      token: Redacted.make(storyToken),
      cluster: yield* freeAddress,
      onReady: () => Effect.die("It started")
    }).pipe(Effect.flip, Effect.provide([NodeServices.layer, Logger.layer([])]))
    return message
  })

const anotherKeyAt = (at: ClusterAddress) => naming(nameOf(at), "TROPISM_ENCRYPTION_KEY")

/** Lets no server register until both wait for it, so that neither finds the other when it starts. */
const togetherUnseen = <A, B>(
  access: PostgresAccess,
  starts: readonly [Effect.Effect<A>, Effect.Effect<B>]
) =>
  Effect.gen(function* () {
    const fibers = yield* Effect.scoped(
      Effect.gen(function* () {
        const holder = yield* holding(access, "lock table kb_cluster.tropism_runners in share mode")
        const begun = yield* Effect.forEach(starts, (one: Effect.Effect<A | B>) => Effect.forkDetach(one))
        yield* eventually(
          ask(
            access,
            "select 1 from pg_locks where not granted and relation = 'kb_cluster.tropism_runners'::regclass"
          ),
          (waiting) => waiting.length >= 2
        )
        yield* holder.query("commit")
        return begun
      })
    )
    return yield* Effect.forEach(fibers, (fiber) => Fiber.join(fiber))
  })

const callAsStranger = ({ host, port }: ClusterAddress, stranger: string) =>
  Effect.promise(() =>
    fetch(`http://${host}:${port}/`, {
      headers: { authorization: "Bearer of-another-key", "tropism-server": stranger }
    })
  )

describe("The key of a cluster", () => {
  it.live(
    "keeps a server with another one from starting, and can be replaced while servers work",
    () =>
      Effect.gen(function* () {
        const access = yield* shared
        yield* Effect.scoped(
          Effect.gen(function* () {
            const first = yield* start(access, `${old}`)
            expect(yield* refusalOf(access, `${fresh}`)).toEqual(anotherKeyAt(first))
            // Nobody but the new one would take its proof.
            expect(yield* refusalOf(access, `${fresh},${old}`)).toEqual(anotherKeyAt(first))
            yield* start(access, `${old},${fresh}`)
          })
        )
        yield* start(access, `${old},${fresh}`)
        const replaced = yield* start(access, `${fresh},${old}`)
        // It would be heard, and would not hear.
        expect(yield* refusalOf(access, `${old}`)).toEqual(anotherKeyAt(replaced))
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "is told of once in the logs of both where servers found each other too late",
    () =>
      Effect.gen(function* () {
        const access = yield* shared
        const logs = [keptLines(), keptLines()] as const
        const scope = yield* Effect.scope
        const starting = (keys: string, log: (typeof logs)[0]) =>
          Effect.provideService(start(access, keys, log), Scope.Scope, scope)
        const [one, other] = yield* togetherUnseen(access, [
          starting(`${old}`, logs[0]),
          starting(`${fresh}`, logs[1])
        ])
        if (one === undefined || other === undefined) return expect.unreachable()
        /** The codes of what a log says of a server, each time with the setting to change. */
        const about = ({ codes, said }: (typeof logs)[0], at: ClusterAddress) =>
          codes.filter(
            (_, index) =>
              said[index]?.includes(nameOf(at)) === true && said[index].includes("TROPISM_ENCRYPTION_KEY")
          )
        // Either of them is the first to ask the other, and what came of that is told by the other one a moment later.
        const whole = [
          [["proofRefused"], ["proofNotTaken"]],
          [["proofNotTaken"], ["proofRefused"]],
          [
            ["proofNotTaken", "proofRefused"],
            ["proofNotTaken", "proofRefused"]
          ]
        ].map((codes) => JSON.stringify(codes))
        yield* eventually(
          Effect.sync(() => [about(logs[0], other), about(logs[1], one)].map((codes) => codes.toSorted())),
          (codes) => whole.includes(JSON.stringify(codes))
        )
        const stranger = { host: "server-9", port: 4500 }
        for (const _ of [1, 2, 3]) expect((yield* callAsStranger(one, nameOf(stranger))).status).toBe(401)
        expect(about(logs[0], stranger)).toEqual(["proofRefused"])
      }).pipe(Effect.scoped),
    120_000
  )
})
