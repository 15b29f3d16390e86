/**
 * Starts the server: database, schema, every stage, and the doors.
 *
 * The only place that reads the machine's environment. What `serve` starts ends
 * with it; what it found running it leaves running. Every failure to start is
 * one sentence that says what to do.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Context, Effect, FileSystem, Layer, Metric, Option, Path, Redacted, Schema } from "effect"
import { FetchHttpClient, HttpRouter, HttpServer } from "effect/http"
import { MinScheduleSeconds } from "./agent/schedule.ts"
import { embedded } from "./database/embedded-postgres.ts"
import { PassingFolder } from "./database/dump-file.ts"
import { examineDatabase } from "./database/examining.ts"
import { external } from "./database/external-postgres.ts"
import type { PostgresAccess } from "./database/postgres-access.ts"
import { migrate } from "./database/migrations.ts"
import { Sealing, SealingKeys } from "./database/sealing.ts"
import { findSealingKeys } from "./database/sealing-keys.ts"
import { poolLayer } from "./database/pool.ts"
import { Closing } from "./http/closing.ts"
import { edgeLimits } from "./http/edge-limits.ts"
import { layerEdge } from "./http/edge.ts"
import { issuerOfEnvironment } from "./http/jwt-settings.ts"
import { readOrigins, Standing } from "./http/origins.ts"
import { type RateLimit, RateLimits, readRateLimit } from "./http/rate-limits.ts"
import { Readiness } from "./http/readiness.ts"
import { layerRoutes } from "./http/routes.ts"
import { type ListenFault, newServer, tryListening } from "./http/listening.ts"
import { Tokens } from "./http/tokens.ts"
import { TrustedIssuer } from "./http/trusted-issuer.ts"
import { Ids } from "./ids.ts"
import { httpLimits } from "./limits.ts"
import { sealEventSecrets } from "./mcp/event-secrets.ts"
import { layerMcpRoutes } from "./mcp/routes.ts"
import { Models } from "./model/models.ts"
import { carryWakeUps } from "./outbox/courier.ts"
import { loops, platformLayer } from "./platform.ts"
import { Runs } from "./run/runs.ts"
import { findSettingFault } from "./model/setting-faults.ts"
import { LocalMcpServers, type LocalPermit } from "./tool/foreign-permit.ts"
import { Spans } from "./telemetry/spans.ts"

/** The server could not start; `message` says why and what to do. */
export class StartFailure extends Schema.TaggedError<StartFailure>()("StartFailure", {
  message: Schema.String
}) {}

export interface ServeOptions {
  readonly host: string
  /** 0 takes any free port. */
  readonly port: number
  readonly dataFolder: string
  readonly databaseUrl?: Redacted.Redacted<string> | undefined
  /** The admin's token; without one it lies in the data folder. */
  readonly token?: Redacted.Redacted<string> | undefined
  /** What secrets are sealed with, as `TROPISM_ENCRYPTION_KEY` has it; without it the environment is asked, then the data folder. */
  readonly encryptionKeys?: Redacted.Redacted<string> | undefined
  readonly consoleFolder?: string | undefined
  /** Opens `/mcp-fixtures`, without a token, for the MCP conformance suite; only on 127.0.0.1. */
  readonly mcpFixtures?: boolean | undefined
  /** How long the doors of a server that is watched stay open once it stops; by itself as the bound says. */
  readonly leaveNoticeMs?: number | undefined
  readonly onReady?: ((info: Ready) => Effect.Effect<void>) | undefined
}

export interface Ready {
  readonly url: string
  /** Signs one browser in, once. */
  readonly loginLink: string
  /** Where the admin's token lies; null when it was given. */
  readonly tokenFile: string | null
  readonly token: Redacted.Redacted<string>
}

/** Serves until it is interrupted, on the database of `databaseUrl` or on one of its own. */
export const serve = Effect.fn("serve")(
  function* (options: ServeOptions) {
    yield* checkPort(options)
    const access = options.databaseUrl
      ? yield* external(options.databaseUrl)
      : yield* embedded({ dataFolder: options.dataFolder })
    return yield* serveOn(access, options)
  },
  Effect.scoped,
  Effect.provide(NodeServices.layer)
)

/** Brings the database to the schema of this program, without serving, and answers which it had and has. */
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

/** Serves until it is interrupted, on a database that can be reached. */
export const serveOn = Effect.fn("serveOn")(
  function* (access: PostgresAccess, options: ServeOptions) {
    if (options.mcpFixtures === true && options.host !== "127.0.0.1")
      return yield* new StartFailure({
        message:
          "--mcp-fixtures opens an address without a token: start with HOST=127.0.0.1, or without the flag."
      })
    const fault = yield* findSettingFault
    if (fault !== null) return yield* new StartFailure({ message: fault })
    yield* Effect.mapError(migrate(access.ownerUrl), ({ message }) => new StartFailure({ message }))
    const pool = poolLayer({ url: access.serverUrl, startupParameters: access.serverStartupParameters })
    const floor = Layer.succeed(MinScheduleSeconds, yield* minScheduleSeconds)
    const local = Layer.succeed(LocalMcpServers, yield* localMcpServers(options.host))
    const passing = Layer.succeed(PassingFolder, options.dataFolder)
    const keys = Layer.succeed(SealingKeys, yield* sealingKeys(access, options))
    const issuer = Layer.succeed(TrustedIssuer, yield* trustedIssuer)
    const platform = platformLayer.pipe(
      Layer.provideMerge(
        Layer.mergeAll(pool, Ids.layer, Models.layer, floor, local, passing, keys, issuer, Spans.layer)
      )
    )
    // Node would end a request that is not here after five minutes: a large import takes longer, and other bodies have a bound of their own.
    const http = NodeHttpServer.layer(newServer, {
      host: options.host,
      port: options.port,
      gracefulShutdownTimeout: httpLimits.drainTimeoutMs
    })
    const standing = Layer.succeed(Standing, {
      host: options.host,
      allowedOrigins: yield* allowedOrigins
    })
    const routes = Layer.merge(
      layerRoutes(options.consoleFolder),
      layerMcpRoutes(options.mcpFixtures === true)
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
      yield* checkModel
      yield* takeUpSecrets
      const { file, token } = yield* adminToken(options)
      // Whoever holds the data folder is alone: what another program was at work on when it died is free.
      if (access.embedded) yield* (yield* Runs).lapseAll
      else {
        const { serverStartupParameters: startupParameters, serverUrl: url } = access
        yield* Effect.forkScoped(carryWakeUps({ url, startupParameters }))
      }
      yield* loops
      const http = yield* Layer.build(doors)
      // Before the doors are waited for: streams would keep them open, and who watches may go elsewhere.
      yield* Effect.addFinalizer(() =>
        Effect.andThen(closing.begin, leave(options.leaveNoticeMs ?? edgeLimits.leaveNoticeMs))
      )
      const { address } = Context.get(http, HttpServer.HttpServer)
      const port = "port" in address ? address.port : options.port
      const url = `http://${options.host.includes(":") ? `[${options.host}]` : options.host}:${port}`
      const code = yield* (yield* Tokens).loginCode
      yield* (
        options.onReady?.({
          url,
          loginLink: `${url}/login?code=${Redacted.value(code)}`,
          tokenFile: file,
          token
        }) ?? Effect.void
      )
      return yield* Effect.never
    }).pipe(
      // The doors and the loops end before what they work with: requests under way have a database until they are answered.
      Effect.scoped,
      Effect.provide(platform),
      Effect.catchTag("PricesUnusable", ({ message }) => Effect.fail(new StartFailure({ message })))
    )
  },
  // The spans that are told are made by hand (`run/observing.ts`): one for each statement would cost as much as some of them.
  Effect.withTracerEnabled(false),
  // Figures are this server's own, also where a program starts several.
  (serving) => Effect.suspend(() => Effect.provideService(serving, Metric.MetricRegistry, new Map())),
  Effect.scoped,
  Effect.provide(NodeServices.layer)
)

/** Fails with a sentence when nobody can listen at the address. */
const checkPort = ({ host, port }: ServeOptions) =>
  Effect.mapError(
    tryListening({ host, port }),
    (fault) => new StartFailure({ message: portProblem(host, port, fault) })
  )

const portProblem = (host: string, port: number, error: ListenFault): string => {
  switch (error.code) {
    case "EADDRINUSE":
      return `Port ${port} on ${host} is in use: stop the program that holds it, or start with another PORT.`
    case "EACCES":
      return `Port ${port} on ${host} may not be used by this account: start with a PORT above 1023.`
    default:
      return `Nothing can listen at ${host}:${port} (${error.message}): check HOST and PORT.`
  }
}

/** Fails with a sentence when the default model that the environment names cannot be asked. */
const checkModel = Effect.gen(function* () {
  const preset = yield* Effect.orElseSucceed(Config.option(Config.String("TROPISM_MODEL")), () =>
    Option.none()
  )
  if (Option.isNone(preset) || preset.value.startsWith("scripted")) return
  const models = yield* Models
  yield* Effect.mapError(
    models.resolve({ agentName: "TROPISM_MODEL", model: null }),
    ({ message }) => new StartFailure({ message: `${message}.` })
  )
})

/** How often a schedule may fire at most, where the environment says. */
const minScheduleSeconds = Effect.mapError(
  Effect.gen(function* () {
    const seconds = yield* Config.Int("TROPISM_MIN_SCHEDULE_SECONDS").pipe(Config.withDefault(60))
    return seconds >= 1 ? seconds : yield* Effect.fail("zero")
  }),
  () =>
    new StartFailure({
      message:
        "TROPISM_MIN_SCHEDULE_SECONDS must be a whole number of seconds, 1 or more: set it to the shortest time between two fires of a schedule, or leave it out."
    })
)

/** Who may let tools come from programs and addresses of this machine; where nobody says, a server on loopback lets whoever has the server anyway. */
const localMcpServers = (host: string) =>
  Effect.mapError(
    Config.option(Config.Boolean("TROPISM_LOCAL_MCP_SERVERS")).pipe(
      Config.map(
        Option.match({
          onNone: (): LocalPermit =>
            host === "localhost" || host === "::1" || host.startsWith("127.") ? "serverTokens" : "nobody",
          onSome: (isAllowed): LocalPermit => (isAllowed ? "admins" : "nobody")
        })
      )
    ),
    () =>
      new StartFailure({
        message:
          "TROPISM_LOCAL_MCP_SERVERS must be true or false: whether MCP servers may be programs of this machine or lie in its network."
      })
  )

/** How often one token may ask. */
const rateLimit = Effect.gen(function* () {
  const text = yield* Effect.orElseSucceed(Config.String("TROPISM_RATE_LIMIT"), () => "")
  const read: RateLimit | undefined =
    text.trim() === "" ? edgeLimits.tokenRequestsPerSecond : readRateLimit(text.trim())
  return read === undefined
    ? yield* new StartFailure({
        message:
          "TROPISM_RATE_LIMIT must be how many requests one token may make in a second, a whole number from 1 to 9999999, or off."
      })
    : read
})

/** Whose JWTs let somebody in. */
const trustedIssuer = issuerOfEnvironment.pipe(
  Effect.mapError((message) => new StartFailure({ message })),
  Effect.provide(FetchHttpClient.layer)
)

/** The pages elsewhere that may call the MCP door. */
const allowedOrigins = Effect.gen(function* () {
  const text = yield* Config.String("TROPISM_ALLOWED_ORIGINS").pipe(
    Config.withDefault(""),
    Effect.orElseSucceed(() => "")
  )
  const read = readOrigins(text)
  return "origins" in read
    ? read.origins
    : yield* new StartFailure({
        message: `TROPISM_ALLOWED_ORIGINS must be origins such as https://tropism.example, separated by commas, not "${read.unfit}".`
      })
})

/** The keys for secrets that are kept: those given, else of the environment, else one in the data folder. */
const sealingKeys = Effect.fn("sealingKeys")(function* (access: PostgresAccess, options: ServeOptions) {
  const named = yield* Effect.orElseSucceed(Config.option(Config.Redacted("TROPISM_ENCRYPTION_KEY")), () =>
    Option.none()
  )
  const found = yield* findSealingKeys({
    given: options.encryptionKeys ?? Option.getOrUndefined(named),
    dataFolder: options.dataFolder,
    mayMake: options.token === undefined
  })
  return "keys" in found ? found.keys : yield* new StartFailure({ message: found.fault })
})

/** Makes our key the one of the database, and seals with it what is not; refuses a database whose secrets we cannot open. */
const takeUpSecrets = Effect.gen(function* () {
  const { adopt, keyIds } = yield* Sealing
  const current = yield* adopt
  if (current !== null && current !== keyIds[0])
    return yield* new StartFailure({
      message: `The secrets in this database are sealed with the key ${current}, and this server has ${keyIds.join(", ")}: set TROPISM_ENCRYPTION_KEY to the one that the other servers have. If that key is lost, remove what was sealed with it (delete from kb.event_subscriptions); the subscribers come back by themselves.`
    })
  yield* sealEventSecrets
})

/** The token that acts as the admin: the one given, else one kept in the data folder, readable by its owner alone. */
const adminToken = Effect.fn("adminToken")(function* (options: ServeOptions) {
  const tokens = yield* Tokens
  if (options.token) {
    yield* tokens.admit(options.token)
    return { file: null, token: options.token }
  }
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.resolve(options.dataFolder, "token")
  const kept = (yield* Effect.orElseSucceed(fileSystem.readFileString(file), () => "")).trim()
  const token = Redacted.make(kept === "" ? yield* (yield* Ids).secret : kept)
  if (kept === "") {
    const write = Effect.andThen(
      fileSystem.makeDirectory(path.dirname(file), { recursive: true }),
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
  yield* tokens.admit(token)
  return { file, token }
})
