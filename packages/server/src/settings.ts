/**
 * The settings that the environment gives the server, each read and judged in one place.
 *
 * `main.ts` starts with them, and `tropism doctor` asks what would keep a server
 * from starting. A value that may be a secret is never told.
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

/** A setting keeps the server from starting; `message` says which, and what to set. */
export class SettingUnusable extends Schema.TaggedError<SettingUnusable>()("SettingUnusable", {
  message: Schema.String
}) {}

/** A flag asks for what the settings do not give; nothing was touched. */
export class FlagUnmet extends Schema.TaggedError<FlagUnmet>()("FlagUnmet", {
  message: Schema.String
}) {}

/** Where the keys for secrets come from, where the environment names none. */
export interface SealingOptions {
  readonly encryptionKeys?: Redacted.Redacted<string> | undefined
  readonly dataFolder: string
  /** Whether a key may be made in the data folder. */
  readonly mayMake: boolean
}

/** Whose settings are looked at: as much of a call as they depend on. */
export interface SettingsOptions {
  readonly host: string
  readonly port: number
  readonly dataFolder: string
  readonly encryptionKeys?: Redacted.Redacted<string> | undefined
}

/** Each setting, read and judged; where it cannot be used its judgement fails with what to set. */
const judgements = (
  options: SettingsOptions
): ReadonlyArray<
  Effect.Effect<unknown, { readonly message: string }, FileSystem.FileSystem | Path.Path | Scope.Scope>
> => [
  checkAddresses,
  // Whoever knows the models has read the prices, too.
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
  // Whether there is one matters only to a server that works with others; what is no address is one to nobody.
  Effect.flatMap(clusterAddressText, (text) => (text === "" ? Effect.void : clusterAddress(options))),
  sealingKeys({ ...options, mayMake: false })
]

/** Every setting that would keep a server from starting here, in a sentence each; nothing is made. */
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

/** Fails with the first of them: a server that cannot start with its settings makes no database, and migrates none. */
export const checkSettings = (options: SettingsOptions) =>
  Effect.forEach(judgements(options), (judgement) => judgement, { discard: true }).pipe(
    Effect.mapError(({ message }) => new SettingUnusable({ message })),
    Effect.scoped
  )

/** Addresses and choices that are read where they are used, and would be found wrong late there. */
const checkAddresses = Effect.flatMap(findSettingFault, (message) =>
  message === null ? Effect.void : Effect.fail(new SettingUnusable({ message }))
)

/** Fails with a sentence when the default model that the environment names cannot be asked. */
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

/** How often a schedule may fire at most, where the environment says. */
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

/** For how many days ended processing entries are kept, where the environment says. */
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

/** How many runs this server works on at once, where the environment says. */
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

/** How many requests this server has open at one provider's model, where the environment says. */
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

/** How long a run at work may come to nothing, where the environment says. */
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

/** Progress is looked at with each heartbeat: less would be a few looks. */
const leastStuckSeconds = 60
const mostStuckSeconds = 86_400

/** Who may let tools come from programs and addresses of this machine; where nobody says, a server on loopback lets whoever has the server anyway. */
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

/** Where the other servers of a cluster reach this one; a server on loopback is beside its doors where nobody says. */
export const clusterAddress = Effect.fn("clusterAddress")(function* (doors: ClusterAddress) {
  const text = yield* clusterAddressText
  const read = text === "" ? besideDoors(doors) : readClusterAddress(text)
  if (read === undefined) {
    const Fault = text === "" ? FlagUnmet : SettingUnusable
    // Said behind what to set, for whoever knows only of PORT.
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

/** How often one token may ask. */
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

/** Whose JWTs let somebody in. */
export const trustedIssuer = issuerOfEnvironment.pipe(
  Effect.mapError((message) => new SettingUnusable({ message })),
  Effect.provide(FetchHttpClient.layer)
)

/** The pages elsewhere that may call the MCP door. */
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

/** What the environment says of the keys for secrets. */
const namedKeys = Effect.orElseSucceed(Config.option(Config.Redacted("TROPISM_ENCRYPTION_KEY")), () =>
  Option.none<Redacted.Redacted<string>>()
)

/** Whether somebody says which keys secrets are sealed with, so that none is looked for or made. */
export const isKeyGiven = (encryptionKeys: Redacted.Redacted<string> | undefined) =>
  Effect.map(namedKeys, (named) => encryptionKeys !== undefined || Option.isSome(named))

/** The keys for secrets that are kept: those given, else of the environment, else one in the data folder. */
export const sealingKeys = Effect.fn("sealingKeys")(function* (options: SealingOptions) {
  const found = yield* findSealingKeys({
    given: options.encryptionKeys ?? Option.getOrUndefined(yield* namedKeys),
    dataFolder: options.dataFolder,
    mayMake: options.mayMake
  })
  return "keys" in found ? found.keys : yield* new SettingUnusable({ message: found.fault })
})
