/**
 * Lets this server work with others on the same database.
 *
 * Flow: everything on the stairs below **cluster**
 *
 * `effect/cluster` says who is there, spreads places over the servers and moves
 * them when one comes or goes. It places and routes: the rows stay the truth,
 * and attempt tokens fence whoever has not noticed yet that it was left out.
 * Messages between servers are wake-ups and passing words; none is stored.
 * Servers prove themselves to each other by a key that follows from the one with
 * which secrets are sealed, so that no stranger in the same network joins.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Option, Redacted, type Scope } from "effect"
import {
  HttpRunner,
  MessageStorage,
  RunnerAddress,
  RunnerHealth,
  Runners,
  Sharding,
  ShardingConfig,
  SqlRunnerStorage
} from "effect/cluster"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { RpcSerialization } from "effect/rpc"
import { Socket } from "effect/socket"
import { createHmac, timingSafeEqual } from "node:crypto"
import { createServer } from "node:http"
import { goneClients } from "../database/pool.ts"
import type { PostgresAccess } from "../database/postgres-access.ts"
import type { SealingKey } from "../database/sealed-text.ts"
import { SealingKeys } from "../database/sealing.ts"
import { poolLimits } from "../limits.ts"
import { enter, watchForAbsent } from "./absent-servers.ts"
import { WorkerName } from "../run/worker-name.ts"
import { type ClusterAddress, listensAt, nameOf } from "./cluster-address.ts"
import { clusterLimits } from "./cluster-limits.ts"
import { carryWords, liveContexts } from "./live-contexts.ts"

/** Runs a loop at one server of all; where a server goes, another one takes its loops up. */
export type Alone = (name: string, loop: Effect.Effect<never>) => Effect.Effect<void, never, Scope.Scope>

/** Joins the cluster until the scope ends. */
export const joinCluster = Effect.fn("joinCluster")(function* (at: ClusterAddress, access: PostgresAccess) {
  const address = nameOf(at)
  const worker = (yield* WorkerName) ?? address
  yield* enter(address, worker)
  const keys = yield* SealingKeys
  const context = yield* Layer.build(Layer.provideMerge(liveContexts, servers(at, access, keys)))
  return yield* Effect.gen(function* () {
    yield* Effect.forkScoped(watchForAbsent(address, worker))
    yield* carryWords(address)
    const sharding = yield* Sharding.Sharding
    const alone: Alone = (name, loop) => sharding.registerSingleton(name, loop)
    return alone
  }).pipe(Effect.provideContext(context))
})

/** Who is there and where each place is, told and asked over a port of this server. */
const servers = (at: ClusterAddress, access: PostgresAccess, keys: ReadonlyArray<SealingKey>) => {
  const calling = HttpRunner.layerClientProtocolWebsocket({ path: "/" }).pipe(
    Layer.provide(signedSockets(keys))
  )
  const doors = HttpRouter.serve(
    Layer.provideMerge(HttpRunner.layerWebsocketOptions({ path: "/" }), onlyServers(keys)),
    { disableLogger: true, disableListenLog: true }
  ).pipe(
    Layer.provide(
      NodeHttpServer.layer(() => createServer(), {
        ...listensAt(at),
        gracefulShutdownTimeout: clusterLimits.partingMs
      })
    )
  )
  return doors.pipe(
    Layer.provide(RunnerHealth.layerPing.pipe(Layer.provide(Runners.layerRpc))),
    Layer.provide(calling),
    Layer.provide(MessageStorage.layerNoop),
    Layer.provide(
      SqlRunnerStorage.layerStorage({ prefix: "kb_cluster.tropism" }).pipe(
        Layer.provide(
          PgClient.layer({
            url: access.serverUrl,
            startupParameters: { ...access.serverStartupParameters, ...goneClients },
            applicationName: "tropism cluster",
            keepAlive: poolLimits.keepAliveMs,
            maxConnections: clusterLimits.connections
          })
        )
      )
    ),
    Layer.provide(ShardingConfig.layer(config(at))),
    Layer.provide(RpcSerialization.layerNdjson)
  )
}

const config = ({ host, port }: ClusterAddress) => ({
  runnerAddress: Option.some(RunnerAddress.make(host, port)),
  shardsPerGroup: clusterLimits.shards,
  shardLockRefreshInterval: clusterLimits.heartbeatMs,
  shardLockExpiration: clusterLimits.silenceMs,
  refreshAssignmentsInterval: clusterLimits.lookMs,
  runnerHealthCheckInterval: clusterLimits.silenceMs,
  entityTerminationTimeout: clusterLimits.partingMs,
  simulateRemoteSerialization: false
})

/** What a server shows to another one. */
const proofOf = ({ bytes }: SealingKey): string =>
  `Bearer ${createHmac("sha256", Redacted.value(bytes)).update("tropism cluster\n").digest("base64url")}`

/** Sockets whose first request carries the proof. */
const signedSockets = ([key]: ReadonlyArray<SealingKey>) =>
  Layer.effect(
    Socket.WebSocketConstructor,
    Effect.map(
      Socket.WebSocketConstructor,
      (open) => (url: string, options?: Socket.WebSocketConstructorOptions) =>
        open(url, {
          protocols: typeof options === "string" || Array.isArray(options) ? options : options?.protocols,
          headers: key === undefined ? {} : { authorization: proofOf(key) }
        })
    )
  ).pipe(Layer.provide(NodeSocket.layerWebSocketConstructor))

/** Lets nobody in who does not know one of the keys. */
const onlyServers = (keys: ReadonlyArray<SealingKey>) => {
  const proofs = keys.map((key) => Buffer.from(proofOf(key)))
  const isServer = (shown: string | undefined) => {
    const bytes = Buffer.from(shown ?? "")
    return proofs.some((proof) => proof.length === bytes.length && timingSafeEqual(proof, bytes))
  }
  return HttpRouter.middleware(
    (answering) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
        isServer(headers["authorization"])
          ? answering
          : Effect.succeed(HttpServerResponse.empty({ status: 401 }))
      ),
    { global: true }
  )
}
