/**
 * Runs the bundled PostgreSQL in the program's data folder.
 *
 * The steps: lock the folder, choose the account, prepare the programs, create the cluster once, run it, create its database and roles. A
 * crash in any step is repaired by the next start. PostgreSQL's own error messages are passed on; nothing is deleted except this program's
 * scratch folders.
 */
import { createHash } from "node:crypto"
import { Effect, FileSystem, Option, Path, type Redacted, type Scope } from "effect"
import { databaseLimits } from "../limits.ts"
import { holdFolder } from "./data-folder.ts"
import { type DatabaseUnavailable, folderProblem, unavailable } from "./database-unavailable.ts"
import { adminRole, checkVersion, clusterOwner, createCluster, runServer } from "./embedded-cluster.ts"
import {
  type DatabaseRecord,
  newRecord,
  readRecord,
  writeRecord,
  localUrl,
  ownerRole,
  type PostgresAccess,
  serverRole
} from "./postgres-access.ts"
import { canEnter, postgresAccount, type PostgresAccount, postgresPrograms } from "./postgres-programs.ts"
import { databaseName, provisionEmbedded } from "./schema.ts"

export interface EmbeddedOptions {
  /** The folder of everything that the program stores, `TROPISM_DATA`. */
  readonly dataFolder: string
  /** The cluster's place if its account cannot enter the data folder; owned by root, and not temporary. */
  readonly machineFolder?: string
  /** PostgreSQL settings that override ours; `fsync: "off"` also skips the flush of a new cluster. */
  readonly settings?: Readonly<Record<string, string>>
}

export interface EmbeddedPostgres extends PostgresAccess {
  readonly embedded: true
  /** The superuser's login: for creating databases in tests and for manual repairs. */
  readonly adminUrl: Redacted.Redacted<string>
  readonly cluster: string
  readonly pid: number
  readonly port: number
  /** Whether the server had outlived an earlier program. */
  readonly reattached: boolean
}

type Files = FileSystem.FileSystem | Path.Path

/** Creates the folder; under root, PostgreSQL's account may traverse it but read nothing. */
const openDataFolder = Effect.fnUntraced(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const absolute = path.resolve(folder)
  const orProblem = Effect.mapError(folderProblem(absolute))
  if (!(yield* fileSystem.exists(absolute).pipe(orProblem))) {
    yield* fileSystem.makeDirectory(absolute, { recursive: true }).pipe(orProblem)
    yield* fileSystem.chmod(absolute, process.getuid?.() === 0 ? 0o711 : 0o700).pipe(orProblem)
  }
  return yield* fileSystem.realPath(absolute).pipe(orProblem)
})

const takenWithoutRecord = (cluster: string): DatabaseUnavailable =>
  unavailable(
    "recordDamaged",
    `The folder ${cluster} holds a database, but the file database.json with its passwords is missing: restore that file, or move ${cluster} away to begin anew.`
  )

/** A name for the cluster in the machine's folder; earlier clusters of the same path keep theirs. */
const placeOnMachine = Effect.fnUntraced(function* (dataFolder: string, machineFolder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const digest = createHash("sha256").update(dataFolder).digest("hex").slice(0, 16)
  const home = path.join(machineFolder, digest)
  yield* fileSystem.makeDirectory(home, { recursive: true, mode: 0o755 })
  for (let number = 1; number <= databaseLimits.clusterNames; number++) {
    const cluster = path.join(home, number === 1 ? "postgres" : `postgres-${number}`)
    if (!(yield* fileSystem.exists(cluster))) return cluster
    yield* Effect.logWarning(
      `A database of an earlier ${dataFolder} is left in ${cluster}; remove it if nobody needs it.`
    )
  }
  return yield* takenWithoutRecord(home)
})

/** Where to create the cluster, as the record names it. */
const choosePlace = Effect.fnUntraced(
  function* (dataFolder: string, account: PostgresAccount, machineFolder: string) {
    const fileSystem = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const inside = path.join(dataFolder, "postgres")
    if (yield* fileSystem.exists(inside)) return yield* takenWithoutRecord(inside)
    if (yield* canEnter(dataFolder, account)) return "postgres"
    const cluster = yield* placeOnMachine(dataFolder, machineFolder)
    if (yield* canEnter(path.dirname(cluster), account)) return cluster
    return yield* unavailable(
      "folderUnusable",
      `PostgreSQL runs as ${account.name}, who may enter neither ${dataFolder} nor ${machineFolder}: open one of them to that user, start the program as an ordinary user, or set DATABASE_URL.`
    )
  },
  (effect, dataFolder) =>
    Effect.catchTag(effect, "PlatformError", (error) => Effect.fail(folderProblem(dataFolder)(error)))
)

interface Prepared {
  readonly record: DatabaseRecord
  readonly cluster: string
  readonly account: PostgresAccount
}

/** Reads the record, or writes the first one. */
const prepareRecord = Effect.fnUntraced(function* (
  dataFolder: string,
  machineFolder: string
): Effect.fn.Return<Prepared, DatabaseUnavailable, Files> {
  const path = yield* Path.Path
  const known = yield* readRecord(dataFolder)
  if (Option.isSome(known)) {
    const cluster = path.resolve(dataFolder, known.value.cluster)
    const account = yield* postgresAccount(yield* clusterOwner(cluster))
    return { record: known.value, cluster, account }
  }
  const account = yield* postgresAccount(Option.none())
  const place = yield* choosePlace(dataFolder, account, machineFolder)
  const record = yield* newRecord(place)
  yield* writeRecord(dataFolder, record)
  return { record, cluster: path.resolve(dataFolder, place), account }
})

/** Refuses what a start cannot repair: a lost cluster, or one that its account cannot reach. */
const checkPlace = Effect.fnUntraced(function* (prepared: Prepared, dataFolder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const home = path.dirname(prepared.cluster)
  const exists = yield* fileSystem.exists(prepared.cluster).pipe(Effect.mapError(folderProblem(home)))
  if (!exists && prepared.record.complete) {
    return yield* unavailable(
      "clusterForeign",
      `The database of ${dataFolder} is gone from ${prepared.cluster}: restore that folder, or remove ${path.join(dataFolder, "database.json")} to begin anew.`
    )
  }
  const reachable = yield* canEnter(home, prepared.account).pipe(Effect.mapError(folderProblem(home)))
  if (reachable) return exists
  return yield* unavailable(
    "folderUnusable",
    `PostgreSQL runs as ${prepared.account.name}, who may no longer enter ${home}: let that user pass through it and the folders above (chmod o+x).`
  )
})

/** A cluster outside the data folder is locked, too: a copied data folder names the same one. */
const holdHome = Effect.fnUntraced(function* (cluster: string, dataFolder: string) {
  const path = yield* Path.Path
  const home = path.dirname(cluster)
  if (home !== dataFolder) yield* holdFolder(home)
})

/**
 * Runs PostgreSQL for this data folder until the scope ends.
 *
 * The first start creates the cluster, a later one starts it, and one after a killed program reuses the running server. A second program on
 * the same folder fails with the first one's process id.
 */
export const embedded = Effect.fn("embedded")(function* (
  options: EmbeddedOptions
): Effect.fn.Return<EmbeddedPostgres, DatabaseUnavailable, Files | Scope.Scope> {
  const path = yield* Path.Path
  const machineFolder = options.machineFolder ?? "/var/lib/tropism"
  const settings = options.settings ?? {}
  const dataFolder = yield* openDataFolder(options.dataFolder)
  yield* holdFolder(dataFolder)
  const prepared = yield* prepareRecord(dataFolder, machineFolder)
  const { account, cluster, record } = prepared
  yield* holdHome(cluster, dataFolder)
  const exists = yield* checkPlace(prepared, dataFolder)
  const copies = path.join(account.foreign ? machineFolder : dataFolder, "programs")
  const programs = yield* postgresPrograms(account, copies)
  const adminPassword = record.passwords.admin
  if (!exists) {
    yield* Effect.logInfo(`Creating the database in ${cluster}`)
    const durable = settings["fsync"] !== "off"
    yield* createCluster({ cluster, account, programs, adminPassword, durable })
  }
  yield* checkVersion(cluster, programs)
  const logFile = path.join(dataFolder, "postgres.log")
  const preferredPort = record.port
  const server = yield* runServer({
    cluster,
    account,
    programs,
    adminPassword,
    preferredPort,
    logFile,
    settings
  })
  const login = (role: string, password: string, database: string) =>
    localUrl({ role, password, port: server.port, database })
  const adminUrl = login(adminRole, adminPassword, "postgres")
  yield* provisionEmbedded(adminUrl, record.passwords)
  if (!record.complete || record.port !== server.port) {
    yield* writeRecord(dataFolder, { ...record, port: server.port, complete: true })
  }
  return {
    ...server,
    ownerUrl: login(ownerRole, record.passwords.owner, databaseName),
    serverUrl: login(serverRole, record.passwords.server, databaseName),
    serverStartupParameters: {},
    embedded: true,
    version: programs.version,
    adminUrl,
    cluster
  }
})
