/**
 * Starts the server: database, schema, modules and HTTP endpoints.
 *
 * The only place that reads the machine's environment. What `serve` starts ends with it; what was already running keeps running. Every
 * failed start is one sentence with the remedy.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, FileSystem, Layer, Metric, Path, Redacted } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { MinScheduleSeconds } from "./agents/cron-schedules.ts"
import { ownAddresses } from "./cluster/absent-servers.ts"
import { joinCluster } from "./cluster/cluster.ts"
import { type ClusterAddress, listensAt, nameOf, findStranger } from "./cluster/peers.ts"
import { TextDeltas } from "./contexts/text-deltas.ts"
import { orAway } from "./database/connection-errors.ts"
import { makeDataFolder } from "./database/data-folder.ts"
import { embedded } from "./database/embedded-postgres.ts"
import { poolLayer } from "./database/pool.ts"
import type { PostgresAccess } from "./database/postgres-access.ts"
import { examineDatabase, external, migrate } from "./database/schema.ts"
import { type SealingKey, Sealing, SealingKeys } from "./database/sealing.ts"
import { layerEdge } from "./http/edge.ts"
import { TrustedIssuer } from "./http/jwt.ts"
import { edgeLimits, tokenLimits } from "./http/limits.ts"
import { Closing, newServer, Readiness } from "./http/listener.ts"
import { tellFigures } from "./http/operations-routes.ts"
import { Standing } from "./http/origins.ts"
import { RateLimits } from "./http/rate-limits.ts"
import { layerRoutes } from "./http/routes.ts"
import { adminUser, Tokens } from "./http/tokens.ts"
import { Ids } from "./ids.ts"
import { httpLimits } from "./limits.ts"
import { sealEventSecrets } from "./mcp/event-callbacks.ts"
import { layerMcpRoutes } from "./mcp/routes.ts"
import { Models } from "./models/models.ts"
import { ModelConcurrency } from "./models/request-queue.ts"
import { relayNotifications } from "./outbox/notifier.ts"
import { nothingTold, Outage } from "./outbox/outages.ts"
import { loops, platformLayer } from "./platform.ts"
import { KillSwitches } from "./runs/kill-switches.ts"
import { RetentionDays, StuckAfterMs } from "./runs/processing-log.ts"
import { Runs } from "./runs/run-store.ts"
import { WorkerName, ConcurrentRuns, Worker } from "./runs/worker.ts"
import {
  allowedOrigins,
  checkSettings,
  concurrentRuns,
  modelConcurrency,
  localMcpServers,
  minScheduleSeconds,
  stuckAfterMs,
  rateLimit,
  retentionDays,
  sealingKeys,
  trustedIssuer
} from "./settings.ts"
import { checkCall, orPortProblem, StartFailure } from "./start-checks.ts"
import { exportMetrics } from "./telemetry/metrics.ts"
import { Spans } from "./telemetry/tracing.ts"
import { PassingFolder } from "./tenancy/dump.ts"
import { LocalMcpServers } from "./tools/external-mcp/faults.ts"
import { OAuthGrants } from "./tools/external-mcp/oauth-grants.ts"

export interface ServeOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  readonly dataFolder: string
  readonly databaseUrl?: Redacted.Redacted<string> | undefined
  /** The admin's token; without it, one in the data folder. */
  readonly token?: Redacted.Redacted<string> | undefined
  /** The sealing keys, in the form of `TROPISM_ENCRYPTION_KEY`; without them, the environment's, then one in the data folder. */
  readonly encryptionKeys?: Redacted.Redacted<string> | undefined
  readonly consoleFolder?: string | undefined
  /** The address at which other servers of the same database reach this one, for a cluster. */
  readonly cluster?: ClusterAddress | undefined
  /** Turns the server's kill switch on before anything runs, with this reason. */
  readonly stopped?: string | undefined
  /** Additional routes; tests add the fixtures of the MCP conformance suite. */
  readonly extraRoutes?: Layer.Layer<never, never, Layer.Services<typeof layerMcpRoutes>> | undefined
  /** How long a monitored server stays open once it stops; defaults to the limit. */
  readonly leaveNoticeMs?: number | undefined
  readonly onReady?: ((info: Ready) => Effect.Effect<void>) | undefined
}

export interface Ready {
  readonly url: string
  /** Signs one browser in, once. */
  readonly loginLink: string
  /** The file of the admin's token; null when it was given. */
  readonly tokenFile: string | null
  readonly token: Redacted.Redacted<string>
  /** The reason of the active kill switch; null when it is off. */
  readonly stopped: string | null
}

/** Serves until interrupted, on the database of `databaseUrl` or on an embedded one. */
export const serve = Effect.fn("serve")(
  function* (options: ServeOptions) {
    yield* checkCall(options)
    yield* checkSettings(options)
    const access = options.databaseUrl
      ? yield* external(options.databaseUrl)
      : yield* embedded({ dataFolder: options.dataFolder })
    return yield* serveOn(access, options)
  },
  Effect.scoped,
  Effect.provide(NodeServices.layer)
)

/** Migrates the database without serving, and returns the old and the new schema version. */
export const bringUpToDate = Effect.fn("bringUpToDate")(
  function* ({ dataFolder, databaseUrl }: Pick<ServeOptions, "dataFolder" | "databaseUrl">) {
    const access = databaseUrl ? yield* external(databaseUrl) : yield* embedded({ dataFolder })
    const before = yield* examineDatabase(access.ownerUrl, databaseUrl ? "another" : "own")
    yield* Effect.mapError(migrate(access.ownerUrl), ({ message }) => new StartFailure({ message }))
    return { before: before.schema, now: before.knownSchema }
  },
  Effect.scoped,
  Effect.provide(NodeServices.layer)
)

/** Serves until interrupted, on a reachable database. */
export const serveOn = Effect.fn("serveOn")(
  function* (access: PostgresAccess, options: ServeOptions) {
    const sealing = yield* sealingKeys({ ...options, mayMake: options.token === undefined })
    if (options.cluster) yield* checkCompanions(access, nameOf(options.cluster), sealing)
    yield* Effect.mapError(migrate(access.ownerUrl), ({ message }) => new StartFailure({ message }))
    const pool = poolLayer({
      url: access.serverUrl,
      startupParameters: access.serverStartupParameters,
      name: `tropism ${(yield* newId).slice(-8)}`
    })
    const floor = Layer.succeed(MinScheduleSeconds, yield* minScheduleSeconds)
    const retention = Layer.succeed(RetentionDays, yield* retentionDays)
    const stuckAfter = Layer.succeed(StuckAfterMs, yield* stuckAfterMs)
    const slots = Layer.succeed(ConcurrentRuns, yield* concurrentRuns)
    const requests = Layer.succeed(ModelConcurrency, yield* modelConcurrency)
    const local = Layer.succeed(LocalMcpServers, yield* localMcpServers(options.host))
    const passing = Layer.succeed(PassingFolder, options.dataFolder)
    const keys = Layer.succeed(SealingKeys, sealing)
    const worker = Layer.succeed(
      WorkerName,
      options.cluster ? `${nameOf(options.cluster)}#${yield* newId}` : null
    )
    const issuer = Layer.succeed(TrustedIssuer, yield* trustedIssuer)
    const platform = platformLayer.pipe(
      Layer.provideMerge(
        Layer.mergeAll(
          pool,
          Ids.layer,
          Models.layer.pipe(Layer.provide(requests)),
          floor,
          retention,
          stuckAfter,
          slots,
          local,
          passing,
          keys,
          worker,
          issuer,
          Spans.layer
        )
      )
    )
    // Node would abort a request after five minutes: a large import takes longer, and other bodies have their own limit.
    const http = NodeHttpServer.layer(newServer, {
      host: options.host,
      port: options.port,
      gracefulShutdownTimeout: httpLimits.drainTimeoutMs
    })
    const standing = Layer.succeed(Standing, {
      host: options.host,
      allowedOrigins: yield* allowedOrigins
    })
    const routes = Layer.mergeAll(
      layerRoutes(options.consoleFolder),
      layerMcpRoutes,
      options.extraRoutes ?? Layer.empty
    ).pipe(
      Layer.provide([standing, layerEdge.pipe(Layer.provide([standing, RateLimits.layer(yield* rateLimit)]))])
    )
    const doors = HttpRouter.serve(routes, {
      disableLogger: true,
      disableListenLog: true,
      routerConfig: { caseSensitive: true, maxParamLength: edgeLimits.addressPartChars }
    }).pipe(Layer.provideMerge(http))
    return yield* Effect.gen(function* () {
      const closing = yield* Closing
      const { leave } = yield* Readiness
      const switches = yield* KillSwitches
      yield* takeUpSecrets
      const { file, token } = yield* adminToken(options, access.embedded)
      // The holder of the data folder is the only server: runs of an earlier one are free at once.
      if (access.embedded) yield* (yield* Runs).lapseAll
      else {
        const { serverStartupParameters: startupParameters, serverUrl: url } = access
        yield* Effect.forkScoped(relayNotifications({ url, startupParameters }))
      }
      const alone =
        options.cluster &&
        (yield* orPortProblem(
          joinCluster(options.cluster, access),
          listensAt(options.cluster),
          "TROPISM_CLUSTER_ADDRESS"
        ))
      if (options.stopped !== undefined) yield* switches.stop(null, options.stopped, adminUser)
      yield* loops(alone)
      yield* exportMetrics(tellFiguresOrLog)
      yield* Effect.addFinalizer(() => lastAnswers)
      const http = yield* orPortProblem(Layer.build(doors), options)
      // Before the listener closes: streams would keep it open, and load balancers need notice.
      yield* Effect.addFinalizer(() =>
        closing.begin.pipe(
          Effect.andThen(leave(options.leaveNoticeMs ?? edgeLimits.leaveNoticeMs)),
          Effect.andThen(closing.drain)
        )
      )
      const { address } = Context.get(http, HttpServer.HttpServer)
      const port = "port" in address ? address.port : options.port
      const url = `http://${options.host.includes(":") ? `[${options.host}]` : options.host}:${port}`
      const code = yield* (yield* Tokens).loginCode(token)
      yield* (
        options.onReady?.({
          url,
          loginLink: `${url}/login?code=${Redacted.value(code)}`,
          tokenFile: file,
          token,
          stopped: (yield* switches.ofServer)?.reason ?? null
        }) ?? Effect.void
      )
      return yield* Effect.never
    }).pipe(
      // Endpoints and loops end before the services that they use: open requests have a database until they are answered.
      Effect.scoped,
      Effect.provide(platform),
      Effect.catchTags({
        AddressTaken: ({ address }) => Effect.fail(new StartFailure({ message: ownAddresses(address) })),
        PricesUnusable: ({ message }) => Effect.fail(new StartFailure({ message }))
      })
    )
  },
  orAway(
    (sentence) =>
      new StartFailure({
        message: `The database went away while the server started (${sentence}): see that it runs, and start the server again.`
      })
  ),
  // Spans are created by hand (`runs/run-telemetry.ts`): one per statement would cost as much as some statements.
  Effect.withTracerEnabled(false),
  // Metrics and outage logs are per server, also where a process starts several.
  (serving) =>
    Effect.suspend(() =>
      serving.pipe(
        Effect.provideService(Metric.MetricRegistry, new Map()),
        Effect.provideService(Outage, nothingTold())
      )
    ),
  Effect.scoped,
  Effect.provide(NodeServices.layer)
)

/** After its last request a server completes the answers that clients follow on other servers, for as long as requests had. */
const lastAnswers = Effect.gen(function* () {
  const { claimNoMore } = yield* Worker
  const { unheard } = yield* TextDeltas
  const { lastCall } = yield* Closing
  yield* claimNoMore
  yield* Effect.timeoutOption(Effect.raceFirst(unheard, lastCall), httpLimits.drainTimeoutMs)
})

/** A failure to read the gauges, apart from an unavailable database, does not hide the counters. */
const tellFiguresOrLog = Effect.catchCause(tellFigures, (cause) =>
  Effect.logDebug("The gauges could not be read", cause)
)

const newId = Effect.provide(
  Effect.flatMap(Ids, ({ next }) => next),
  Ids.layer
)

/** Refuses to start beside cluster peers that cannot authenticate this server, or it them. */
const checkCompanions = Effect.fnUntraced(function* (
  access: PostgresAccess,
  address: string,
  keys: ReadonlyArray<SealingKey>
) {
  const stranger = yield* findStranger(access, address, keys)
  if (stranger !== undefined)
    return yield* new StartFailure({
      message: `The server at ${stranger} works on this database with another TROPISM_ENCRYPTION_KEY than this one: give every server the same. To replace it, start all of them with OLD,NEW before one starts with NEW,OLD.`
    })
})

/** Makes our key the database's and seals what is not sealed with it; refuses a database whose secrets we cannot open. */
const takeUpSecrets = Effect.gen(function* () {
  const { adopt, keyIds } = yield* Sealing
  const current = yield* adopt
  if (current !== null && current !== keyIds[0])
    return yield* new StartFailure({
      message: `The secrets in this database are sealed with the key ${current}, and this server has ${keyIds.join(", ")}: set TROPISM_ENCRYPTION_KEY to the one that the other servers have. If that key is lost, remove what was sealed with it (delete from kb.event_subscriptions, kb.mcp_grants, kb.mcp_clients); subscribers come back by themselves, and MCP servers are signed in to again.`
    })
  // `sealAgain` comes last, because it checks which projects are left.
  yield* sealEventSecrets
  yield* (yield* OAuthGrants).sealAgain
})

/** The admin's token: the given one, otherwise one in the data folder, readable by its owner only. */
const adminToken = Effect.fn("adminToken")(function* (options: ServeOptions, isAlone: boolean) {
  const tokens = yield* Tokens
  if (options.token) {
    if (Redacted.value(options.token).length < tokenLimits.givenMinChars)
      yield* Effect.logWarning(
        `TROPISM_TOKEN has fewer than ${tokenLimits.givenMinChars} characters: whoever guesses it is the admin. Set a longer one, as of "openssl rand -hex 32".`
      )
    yield* tokens.admit(options.token, isAlone)
    return { file: null, token: options.token }
  }
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.resolve(options.dataFolder, "token")
  const kept = (yield* Effect.orElseSucceed(fileSystem.readFileString(file), () => "")).trim()
  const token = Redacted.make(kept === "" ? yield* (yield* Ids).secret : kept)
  if (kept === "") {
    const write = Effect.andThen(
      makeDataFolder(path.dirname(file)),
      fileSystem.writeFileString(file, `${Redacted.value(token)}\n`, { mode: 0o600 })
    )
    yield* Effect.mapError(
      write,
      () =>
        new StartFailure({
          message: `The token could not be kept in ${file}: make the folder writable, or set TROPISM_TOKEN.`
        })
    )
  }
  yield* tokens.admit(token, isAlone)
  return { file, token }
})
