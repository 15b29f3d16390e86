/**
 * The program that is measured: the server as `tropism start` runs it, without the console.
 *
 * Everything comes by the environment (HOST, PORT, TROPISM_DATA, TROPISM_TOKEN,
 * and for a server of a cluster DATABASE_URL and TROPISM_CLUSTER_ADDRESS); one line of JSON on standard output says where it listens. Its log begins at
 * warnings and goes to standard error, so that a run with errors in it is seen.
 * Asked by SIGUSR2, it says in another line how much its heap holds.
 */
import { heapStats } from "bun:jsc"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Effect, Logger, Redacted, References } from "effect"
import { readClusterAddress } from "@tropism/server/cluster/peers"
import { serve } from "@tropism/server/main"

const { HOST = "127.0.0.1", PORT = "0", TROPISM_DATA = ".tropism", TROPISM_TOKEN = "" } = process.env
const { DATABASE_URL, TROPISM_CLUSTER_ADDRESS = "", TROPISM_ENCRYPTION_KEY } = process.env

const say = (line: unknown): void => void process.stdout.write(`${JSON.stringify(line)}\n`)

process.on("SIGUSR2", () => {
  Bun.gc(true)
  say({ heapBytes: heapStats().heapSize })
})

serve({
  host: HOST,
  port: Number(PORT),
  dataFolder: TROPISM_DATA,
  databaseUrl: DATABASE_URL === undefined ? undefined : Redacted.make(DATABASE_URL),
  cluster: readClusterAddress(TROPISM_CLUSTER_ADDRESS),
  encryptionKeys: TROPISM_ENCRYPTION_KEY === undefined ? undefined : Redacted.make(TROPISM_ENCRYPTION_KEY),
  token: Redacted.make(TROPISM_TOKEN),
  onReady: ({ url }) => Effect.sync(() => say({ url }))
}).pipe(
  Effect.provideService(References.MinimumLogLevel, "Warn"),
  Effect.provide(Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])),
  NodeRuntime.runMain
)
