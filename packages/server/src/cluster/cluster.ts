/**
 * Joins this server to others on the same database.
 *
 * `effect/cluster` tracks members, distributes shards and moves them when a server joins or leaves. It only places and routes: rows remain
 * the truth, and attempt tokens fence a server that does not know yet that it was removed. Messages between servers are notifications and
 * deltas; none is stored. Servers authenticate each other (`peers.ts`), so that no stranger in the network can join.
 */
import { createServer } from "node:http"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { PgClient } from "@effect/sql-pg"
import { Effect, Layer, Logger, Option, type Scope } from "effect"
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
import { HttpRouter, HttpServerResponse } from "effect/http"
import { RpcSerialization } from "effect/rpc"
import { Socket } from "effect/socket"
import { poolLimits } from "../database/limits.ts"
import { goneClients } from "../database/pool.ts"
import type { PostgresAccess } from "../database/postgres-access.ts"
import { type SealingKey, SealingKeys } from "../database/sealing.ts"
import { Outage } from "../outbox/outages.ts"
import { WorkerName } from "../runs/worker.ts"
import { enter, watchForAbsent } from "./absent-servers.ts"
import { carryWords, liveContexts } from "./delta-relay.ts"
import { clusterLimits } from "./limits.ts"
import { calling, type ClusterAddress, listensAt, nameOf, onlyServers, signedSockets } from "./peers.ts"

/** Runs a loop on one server of the cluster; when that server leaves, another one takes it over. */
export type Alone = (name: string, loop: Effect.Effect<never>) => Effect.Effect<void, never, Scope.Scope>

/** Joins the cluster until the scope ends. */
export const joinCluster = Effect.fn("joinCluster")(function* (at: ClusterAddress, access: PostgresAccess) {
  const address = nameOf(at)
  const worker = (yield* WorkerName) ?? address
  yield* enter(address, worker)
  const keys = yield* SealingKeys
  const outage = yield* Outage
  const loggers = new Set([...(yield* Logger.CurrentLoggers)].map(withoutLocks(outage)))
  const context = yield* Layer.build(Layer.provideMerge(liveContexts, servers(at, access, keys))).pipe(
    Effect.provideService(Logger.CurrentLoggers, loggers)
  )
  return yield* Effect.gen(function* () {
    yield* Effect.forkScoped(watchForAbsent(address, worker))
    yield* carryWords(address)
    const sharding = yield* Sharding.Sharding
    const alone: Alone = (name, loop) => sharding.registerSingleton(name, loop)
    return alone
  }).pipe(Effect.provideContext(context))
})

/** Membership and shard placement, served on a port of this server. */
const servers = (at: ClusterAddress, access: PostgresAccess, keys: ReadonlyArray<SealingKey>) => {
  const signed = Layer.provide(calling, signedSockets(nameOf(at), keys))
  const doors = HttpRouter.serve(
    Layer.provideMerge(HttpRunner.layerWebsocketOptions({ path: "/" }), onlyServers(keys)),
    { disableLogger: true, disableListenLog: true, middleware: tellOfFaults() }
  ).pipe(
    Layer.provide(
      NodeHttpServer.layer(() => createServer(), {
        ...listensAt(at),
        gracefulShutdownTimeout: clusterLimits.partingMs,
        websocket: farewells
      })
    )
  )
  return doors.pipe(
    Layer.provide(RunnerHealth.layerPing.pipe(Layer.provide(Runners.layerRpc))),
    Layer.provide(signed),
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

/** A frozen server sends no close frame, and a leaving one does not wait for it; the types of `ws` lack the timeout. */
const farewells = { clientTracking: true, closeTimeout: clusterLimits.partingMs }

/** Logs a fault here once, because the calling server only learns that there was one and retries. */
const tellOfFaults = () => {
  let told = ""
  return <A, E, R>(answering: Effect.Effect<A, E, R>) =>
    Effect.tapDefect(answering, (defect) => {
      // A peer that disappears mid-message is no fault, nor is one that this leaving server refuses.
      if (Socket.isSocketError(defect) || HttpServerResponse.isHttpServerResponse(defect)) return Effect.void
      if (told === String(defect)) return Effect.void
      told = String(defect)
      return Effect.logError("What another server asked failed", defect)
    })
}

/** What `effect/cluster` logs each second while the database is away; the work poller reports the outage once instead. */
const locksAway = /^(?:Shard lock storage|Could not (?:acquire\/)?release shards|Forced shard release)\b/

/** A logger that drops failed shard locks while the database outage is reported. */
const withoutLocks =
  (outage: { readonly isAway: boolean }) =>
  <A>(logger: Logger.Logger<unknown, A>): Logger.Logger<unknown, A | undefined> =>
    Logger.make((said) =>
      outage.isAway && locksAway.test(String([said.message].flat()[0])) ? undefined : logger.log(said)
    )

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
