/**
 * `tropism start --cluster`: servers on one database find each other, and what keeps one from it is a sentence.
 */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { nameOf } from "../../server/src/cluster/peers.ts"
import { type PostgresAccess, withDatabase } from "../../server/src/database/postgres-access.ts"
import { freeAddress, takenAddress } from "../../server/testing/cluster-servers.ts"
import { freshDatabase, unmigratedDatabase } from "../../server/testing/fresh-database.ts"
import { ask } from "../../server/testing/owner-rows.ts"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { until } from "../testing/invoke.ts"
import { launch, launcher } from "../testing/launch.ts"

const token = "a-token-for-stories-of-clusters"
const key = Buffer.alloc(32, 7).toString("base64")

/** How an administrator reaches a database. */
const adminUrlOf = ({ ownerUrl }: PostgresAccess) =>
  Redacted.value(
    withDatabase(
      Redacted.make(inject("postgres").adminUrl),
      new URL(Redacted.value(ownerUrl)).pathname.slice(1)
    )
  )

const databaseOfYours = Effect.map(freshDatabase, adminUrlOf)

const start = (environment: Record<string, string>) =>
  Effect.gen(function* () {
    const folder = yield* quickDataFolder
    const server = yield* launch(launcher, ["start", "--json", "--cluster"], {
      TROPISM_DATA: join(folder, "data"),
      PORT: "0",
      ...environment
    })
    yield* until(() => server.out().includes("\n") || server.code() !== undefined)
    return server
  })

const refusal = (environment: Record<string, string>) =>
  Effect.gen(function* () {
    const server = yield* start(environment)
    yield* until(() => server.code() !== undefined)
    return { code: server.code(), error: server.error() }
  })

describe("start --cluster", () => {
  it.live(
    "starts servers that share a database, each at an address of its own",
    () =>
      Effect.gen(function* () {
        const databaseUrl = yield* databaseOfYours
        const [one, other] = yield* Effect.all([freeAddress, freeAddress])
        const common = { DATABASE_URL: databaseUrl, TROPISM_TOKEN: token, TROPISM_ENCRYPTION_KEY: key }
        const at = ({ host, port }: typeof one) => ({ ...common, TROPISM_CLUSTER_ADDRESS: `${host}:${port}` })
        const servers = yield* Effect.all([start(at(one)), start(at(other))], { concurrency: 2 })
        for (const server of servers) expect(server.error() + server.out()).toContain(`"type":"ready"`)

        expect(yield* refusal(at(one))).toMatchObject({
          code: 1,
          error: expect.stringContaining(`${one.host}:${one.port}`)
        })
        expect(
          yield* refusal({
            DATABASE_URL: databaseUrl,
            TROPISM_TOKEN: token,
            TROPISM_CLUSTER_ADDRESS: `${one.host}:1`
          })
        ).toMatchObject({
          code: 2,
          error: expect.stringContaining("TROPISM_ENCRYPTION_KEY")
        })
      }).pipe(Effect.scoped),
    300_000
  )

  it.live(
    "is called wrongly where a flag's setting is missing, and makes nothing",
    () =>
      Effect.gen(function* () {
        const folder = yield* quickDataFolder
        const TROPISM_DATA = join(folder, "data")
        const { host, port } = yield* freeAddress
        const cluster = { TROPISM_DATA, TROPISM_CLUSTER_ADDRESS: `${host}:${port}` }
        const refusals = yield* Effect.all(
          [refusal(cluster), refusal({ ...cluster, DATABASE_URL: yield* databaseOfYours })],
          { concurrency: 2 }
        )
        const wrongCall = (said: string) => ({ code: 2, error: expect.stringContaining(said) })
        expect(refusals).toEqual(["DATABASE_URL", "TROPISM_ENCRYPTION_KEY"].map(wrongCall))
        expect(readdirSync(folder)).toEqual([])
      }).pipe(Effect.scoped),
    300_000
  )

  it.live(
    "refuses a port that the doors or another program have before it changes the database",
    () =>
      Effect.gen(function* () {
        const access = yield* unmigratedDatabase
        const free = yield* freeAddress
        const taken = yield* takenAddress
        const common = {
          DATABASE_URL: adminUrlOf(access),
          TROPISM_TOKEN: token,
          TROPISM_ENCRYPTION_KEY: key
        }
        const refusals = yield* Effect.forEach(
          [
            { PORT: `${free.port}`, TROPISM_CLUSTER_ADDRESS: nameOf(free) },
            { PORT: `${free.port}`, TROPISM_CLUSTER_ADDRESS: `server-1:${free.port}` },
            { TROPISM_CLUSTER_ADDRESS: nameOf(taken) }
          ],
          (addresses) => refusal({ ...common, ...addresses }),
          { concurrency: 2 }
        )
        const both = `\\bTROPISM_CLUSTER_ADDRESS\\b.*\\b${free.port}\\b.*\\bPORT\\b`
        expect(refusals).toEqual(
          [both, both, `\\b${nameOf(taken)}\\b.*\\bTROPISM_CLUSTER_ADDRESS\\b`].map((named) => ({
            code: 1,
            error: expect.stringMatching(named)
          }))
        )
        expect(yield* ask(access, "select nspname::text from pg_namespace where nspname like 'kb%'")).toEqual(
          []
        )
      }).pipe(Effect.scoped),
    300_000
  )

  it.live(
    "says of an address that is none what it must be, and nothing else",
    () =>
      Effect.gen(function* () {
        const refusals = yield* Effect.forEach(
          [
            { HOST: "0.0.0.0" },
            { PORT: "65500" },
            { TROPISM_CLUSTER_ADDRESS: "server-1:0" },
            { TROPISM_CLUSTER_ADDRESS: "0.0.0.0:4500" },
            { TROPISM_CLUSTER_ADDRESS: "[::]:4500" },
            { TROPISM_CLUSTER_ADDRESS: "http://server-1:4500" }
          ],
          (environment) => refusal(environment),
          { concurrency: 2 }
        )
        expect(refusals.map(({ code }) => code)).toEqual([2, 2, 1, 1, 1, 1])
        for (const { error } of refusals)
          expect(JSON.parse(error).error.message).toMatch(/^[^\n]*\bTROPISM_CLUSTER_ADDRESS\b[^\n]*$/)
      }).pipe(Effect.scoped),
    300_000
  )
})
