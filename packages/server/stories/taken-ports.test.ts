/**
 * A port that somebody takes while the server starts, after it was found free.
 */
import { NodeServices } from "@effect/platform-node"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, Redacted } from "effect"
import { nameOf } from "../src/cluster/peers.ts"
import { type ServeOptions, serveOn } from "../src/main.ts"
import { freeAddress, takenAddress } from "../testing/cluster-servers.ts"
import { freshDatabase } from "../testing/fresh-database.ts"
import { storyKeys, storyToken } from "../testing/platform.ts"
import { naming } from "../testing/naming.ts"

/** Starts past the look at the ports, and says why it ended. */
const faultOf = (ports: Pick<ServeOptions, "port" | "cluster">) =>
  Effect.gen(function* () {
    const access = yield* freshDatabase
    return yield* serveOn(
      { ...access, embedded: false },
      {
        host: "127.0.0.1",
        dataFolder: "/nonexistent",
        encryptionKeys: Redacted.make(storyKeys),
        token: Redacted.make(storyToken),
        ...ports
      }
    ).pipe(Effect.flip, Effect.provide([NodeServices.layer, Logger.layer([])]))
  })

describe("A port that is taken while the server starts", () => {
  it.live(
    "is named, with what to do",
    () =>
      Effect.gen(function* () {
        const [taken, free] = yield* Effect.all([takenAddress, freeAddress])
        const said = (setting: string) => naming(nameOf(taken), setting)
        expect((yield* faultOf({ port: taken.port })).message).toEqual(said("PORT"))
        expect((yield* faultOf({ port: taken.port, cluster: free })).message).toEqual(said("PORT"))
        expect((yield* faultOf({ port: 0, cluster: taken })).message).toEqual(said("TROPISM_CLUSTER_ADDRESS"))
      }).pipe(Effect.scoped),
    120_000
  )
})
