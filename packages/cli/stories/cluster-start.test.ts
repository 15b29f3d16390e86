/**
 * `tropism start --cluster`: servers on one database find each other, and what keeps one from it is a sentence.
 */
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { freeAddress } from "../../server/testing/cluster-servers.ts"
import { freshDatabase } from "../../server/testing/fresh-database.ts"
import { withDatabase } from "../../server/src/database/postgres-access.ts"
import { quickDataFolder } from "../../server/testing/quick-folder.ts"
import { until } from "../testing/invoke.ts"
import { launch, launcher } from "../testing/launch.ts"

const token = "a-token-for-stories-of-clusters"
const key = Buffer.alloc(32, 7).toString("base64")

/** A database as an administrator gives it. */
const databaseOfYours = Effect.map(freshDatabase, ({ ownerUrl }) =>
  Redacted.value(
    withDatabase(
      Redacted.make(inject("postgres").adminUrl),
      new URL(Redacted.value(ownerUrl)).pathname.slice(1)
    )
  )
)

const start = (environment: Record<string, string>) =>
  Effect.gen(function* () {
    const folder = yield* quickDataFolder
    const server = yield* launch(launcher, ["start", "--cluster", "--json"], {
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
          error: expect.stringContaining(`${one.host}:${one.port} is in use`)
        })
        expect(
          yield* refusal({
            DATABASE_URL: databaseUrl,
            TROPISM_TOKEN: token,
            TROPISM_CLUSTER_ADDRESS: `${one.host}:1`
          })
        ).toMatchObject({
          code: 1,
          error: expect.stringContaining("TROPISM_ENCRYPTION_KEY")
        })
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "says what is missing",
    () =>
      Effect.gen(function* () {
        const free = yield* freeAddress
        const refused = yield* refusal({ TROPISM_CLUSTER_ADDRESS: `${free.host}:${free.port}` })
        expect(refused).toMatchObject({ code: 1, error: expect.stringContaining("set DATABASE_URL") })
      }).pipe(Effect.scoped),
    120_000
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
            { TROPISM_CLUSTER_ADDRESS: "http://server-1:4500" }
          ],
          refusal,
          { concurrency: 2 }
        )
        for (const { code, error } of refusals) {
          expect(code).toBe(1)
          expect(JSON.parse(error).error.message).toMatch(
            /^TROPISM_CLUSTER_ADDRESS must be where the other servers reach this one, .*\.$/
          )
        }
      }).pipe(Effect.scoped),
    120_000
  )
})
