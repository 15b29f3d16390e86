/**
 * Reads and validates the server's settings from the environment.
 *
 * `main.ts` starts with them, and `tropism doctor` lists what would prevent a start. A value that may be secret is never shown.
 */
import { Config, Effect, type FileSystem, Option, type Path, type Redacted, Schema, type Scope } from "effect"
import { FetchHttpClient } from "effect/http"
import { clusterLimits } from "./cluster/limits.ts"
import { besideDoors, type ClusterAddress, isLoopback, readClusterAddress } from "./cluster/peers.ts"
import { findSealingKeys } from "./database/sealing.ts"
import { issuerOfEnvironment } from "./http/jwt.ts"
import { edgeLimits } from "./http/limits.ts"
import { readOrigins } from "./http/origins.ts"
import { type RateLimit, readRateLimit } from "./http/rate-limits.ts"
import { modelLimits, runLimits } from "./limits.ts"
import { Models } from "./models/models.ts"
import { findSettingFault } from "./models/setting-faults.ts"
import type { LocalPermit } from "./tools/external-mcp/faults.ts"

/** A setting prevents the start; `message` names it and what to set. */
export class SettingUnusable extends Schema.TaggedError<SettingUnusable>()("SettingUnusable", {
  message: Schema.String
}) {}

/** A flag requires a missing setting; nothing was changed. */
export class FlagUnmet extends Schema.TaggedError<FlagUnmet>()("FlagUnmet", {
  message: Schema.String
}) {}

/** Where sealing keys come from if the environment has none. */
export interface SealingOptions {
  readonly encryptionKeys?: Redacted.Redacted<string> | undefined
  readonly dataFolder: string
  /** Whether a key may be created in the data folder. */
  readonly mayMake: boolean
}

/** The options on which the settings depend. */
export interface SettingsOptions {
  readonly host: string
  readonly port: number
  readonly dataFolder: string
  readonly encryptionKeys?: Redacted.Redacted<string> | undefined
}

/** Each setting, read and validated; an invalid one fails with what to set. */
const judgements = (
  options: SettingsOptions
): ReadonlyArray<
  Effect.Effect<unknown, { readonly message: string }, FileSystem.FileSystem | Path.Path | Scope.Scope>
> => [
  checkAddresses,
  // Loading the models reads the prices, too.
  Effect.provide(checkModel, Models.layer),
  minScheduleSeconds,
  retentionDays,
  stuckAfterMs,
  concurrentRuns,
  modelConcurrency,
  localMcpServers(options.host),
  rateLimit,
  trustedIssuer,
  allowedOrigins,
  // Only a server in a cluster needs an address; an invalid one is always wrong.
  Effect.flatMap(clusterAddressText, (text) => (text === "" ? Effect.void : clusterAddress(options))),
  sealingKeys({ ...options, mayMake: false })
]

/** Every setting that would prevent a start here, in one sentence each; nothing is created. */
export const findSettingFaults = (options: SettingsOptions) =>
  Effect.forEach(judgements(options), (judgement) =>
    Effect.match(judgement, {
      onFailure: ({ message }): ReadonlyArray<string> => [message],
      onSuccess: (): ReadonlyArray<string> => []
    })
  ).pipe(
    Effect.map((faults) => [...new Set(faults.flat())]),
    Effect.scoped
  )

/** Fails with the first of them: a server with invalid settings creates and migrates no database. */
export const checkSettings = (options: SettingsOptions) =>
  Effect.forEach(judgements(options), (judgement) => judgement, { discard: true }).pipe(
    Effect.mapError(({ message }) => new SettingUnusable({ message })),
    Effect.scoped
  )

/** Addresses and choices that are read at their use, and would fail there too late. */
const checkAddresses = Effect.flatMap(findSettingFault, (message) =>
  message === null ? Effect.void : Effect.fail(new SettingUnusable({ message }))
)

/** Fails with a sentence if the environment's default model is unavailable. */
const checkModel = Effect.gen(function* () {
  const preset = yield* Effect.orElseSucceed(Config.option(Config.String("TROPISM_MODEL")), () =>
    Option.none()
  )
  if (Option.isNone(preset) || preset.value.startsWith("scripted")) return
  const models = yield* Models
  yield* Effect.mapError(
    models.resolve({ agentName: "TROPISM_MODEL", model: null }),
    ({ message }) => new SettingUnusable({ message: `${message}.` })
  )
})

/** The shortest allowed interval of schedules. */
export const minScheduleSeconds = Effect.mapError(
  Effect.gen(function* () {
    const seconds = yield* Config.Int("TROPISM_MIN_SCHEDULE_SECONDS").pipe(Config.withDefault(60))
    return seconds >= 1 ? seconds : yield* Effect.fail("zero")
  }),
  () =>
    new SettingUnusable({
      message:
        "TROPISM_MIN_SCHEDULE_SECONDS must be a whole number of seconds, 1 or more: set it to the shortest time between two fires of a schedule, or leave it out."
    })
)

/** The retention of ended processing entries in days. */
export const retentionDays = Effect.mapError(
  Effect.gen(function* () {
    const days = yield* Config.Int("TROPISM_RETENTION_DAYS").pipe(Config.withDefault(30))
    return days >= 1 && days <= 3_650 ? days : yield* Effect.fail("out of bounds")
  }),
  () =>
    new SettingUnusable({
      message:
        "TROPISM_RETENTION_DAYS must be a whole number of days from 1 to 3650: set it to how long ended processing entries are kept, or leave it out."
    })
)

/** The maximum number of concurrent runs of this server. */
export const concurrentRuns = Effect.mapError(
  Effect.gen(function* () {
    const runs = yield* Config.Int("TROPISM_CONCURRENT_RUNS").pipe(
      Config.withDefault(runLimits.concurrentRuns)
    )
    return runs >= 1 && runs <= runLimits.mostConcurrentRuns ? runs : yield* Effect.fail("range")
  }),
  () =>
    new SettingUnusable({
      message: `TROPISM_CONCURRENT_RUNS must be a whole number from 1 to ${runLimits.mostConcurrentRuns}: the number of runs that this server works on at once.`
    })
)

/** The maximum number of this server's open requests at one provider's model. */
export const modelConcurrency = Effect.mapError(
  Effect.gen(function* () {
    const requests = yield* Config.Int("TROPISM_MODEL_CONCURRENCY").pipe(
      Config.withDefault(modelLimits.concurrency)
    )
    return requests >= 1 && requests <= modelLimits.mostConcurrency ? requests : yield* Effect.fail("range")
  }),
  () =>
    new SettingUnusable({
      message: `TROPISM_MODEL_CONCURRENCY must be a whole number from 1 to ${modelLimits.mostConcurrency}: the number of requests that this server has open at one model of a provider.`
    })
)

/** How long a running run may make no progress. */
export const stuckAfterMs = Effect.mapError(
  Effect.gen(function* () {
    const seconds = yield* Config.Int("TROPISM_STUCK_AFTER_SECONDS").pipe(
      Config.withDefault(runLimits.stuckAfterMs / 1_000)
    )
    return seconds >= leastStuckSeconds && seconds <= mostStuckSeconds
      ? seconds * 1_000
      : yield* Effect.fail("range")
  }),
  () =>
    new SettingUnusable({
      message: `TROPISM_STUCK_AFTER_SECONDS must be a whole number of seconds from ${leastStuckSeconds} to ${mostStuckSeconds}: after it a run of which nothing comes is abandoned.`
    })
)

/** Progress is checked with each heartbeat: less would be only a few checks. */
const leastStuckSeconds = 60
const mostStuckSeconds = 86_400

/** Who may add tools from programs and addresses of this machine; by default a server on loopback allows it to holders of server tokens. */
export const localMcpServers = (host: string) =>
  Effect.mapError(
    Config.option(Config.Boolean("TROPISM_LOCAL_MCP_SERVERS")).pipe(
      Config.map(
        Option.match({
          onNone: (): LocalPermit => (isLoopback(host) ? "serverTokens" : "nobody"),
          onSome: (isAllowed): LocalPermit => (isAllowed ? "admins" : "nobody")
        })
      )
    ),
    () =>
      new SettingUnusable({
        message:
          "TROPISM_LOCAL_MCP_SERVERS must be true or false: whether MCP servers may be programs of this machine or lie in its network."
      })
  )

const clusterAddressText = Effect.map(
  Effect.orElseSucceed(Config.String("TROPISM_CLUSTER_ADDRESS"), () => ""),
  (text) => text.trim()
)

/** The address for the other servers of a cluster; by default a server on loopback uses a port next to its HTTP port. */
export const clusterAddress = Effect.fn("clusterAddress")(function* (doors: ClusterAddress) {
  const text = yield* clusterAddressText
  const read = text === "" ? besideDoors(doors) : readClusterAddress(text)
  if (read === undefined) {
    const Fault = text === "" ? FlagUnmet : SettingUnusable
    // Added to the advice, for readers who know only PORT.
    const beside =
      text === "" && isLoopback(doors.host)
        ? ` Where it is not set it is PORT + ${clusterLimits.portDistance}, and there is no port ${doors.port + clusterLimits.portDistance}.`
        : ""
    return yield* new Fault({
      message:
        "TROPISM_CLUSTER_ADDRESS must be where the other servers reach this one, as host:port, such as server-1.internal:4500: another port than PORT, on a network that only the servers are in." +
        beside
    })
  }
  if (read.port === doors.port)
    return yield* new SettingUnusable({
      message: `TROPISM_CLUSTER_ADDRESS has port ${read.port}, and so has PORT, where the doors are: give one of them another port.`
    })
  return read
})

/** The rate limit per token. */
export const rateLimit = Effect.gen(function* () {
  const text = yield* Effect.orElseSucceed(Config.String("TROPISM_RATE_LIMIT"), () => "")
  const read: RateLimit | undefined =
    text.trim() === "" ? edgeLimits.tokenRequestsPerSecond : readRateLimit(text.trim())
  return read === undefined
    ? yield* new SettingUnusable({
        message:
          "TROPISM_RATE_LIMIT must be how many requests one token may make in a second, a whole number from 1 to 9999999, or off."
      })
    : read
})

/** The issuer whose JWTs are accepted. */
export const trustedIssuer = issuerOfEnvironment.pipe(
  Effect.mapError((message) => new SettingUnusable({ message })),
  Effect.provide(FetchHttpClient.layer)
)

/** Other origins whose pages may call the MCP endpoint. */
export const allowedOrigins = Effect.gen(function* () {
  const text = yield* Config.String("TROPISM_ALLOWED_ORIGINS").pipe(
    Config.withDefault(""),
    Effect.orElseSucceed(() => "")
  )
  const read = readOrigins(text)
  return "origins" in read
    ? read.origins
    : yield* new SettingUnusable({
        message: `TROPISM_ALLOWED_ORIGINS must be origins such as https://tropism.example, separated by commas, not "${read.unfit}".`
      })
})

/** The environment's sealing keys. */
const namedKeys = Effect.orElseSucceed(Config.option(Config.Redacted("TROPISM_ENCRYPTION_KEY")), () =>
  Option.none<Redacted.Redacted<string>>()
)

/** Whether sealing keys are configured, so that none is looked for or created. */
export const isKeyGiven = (encryptionKeys: Redacted.Redacted<string> | undefined) =>
  Effect.map(namedKeys, (named) => encryptionKeys !== undefined || Option.isSome(named))

/** The sealing keys: the given ones, otherwise the environment's, otherwise one in the data folder. */
export const sealingKeys = Effect.fn("sealingKeys")(function* (options: SealingOptions) {
  const found = yield* findSealingKeys({
    given: options.encryptionKeys ?? Option.getOrUndefined(yield* namedKeys),
    dataFolder: options.dataFolder,
    mayMake: options.mayMake
  })
  return "keys" in found ? found.keys : yield* new SettingUnusable({ message: found.fault })
})
