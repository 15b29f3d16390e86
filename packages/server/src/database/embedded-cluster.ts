/**
 * Makes the cluster, PostgreSQL's own folder, so that it is there whole or not at all.
 *
 * It is built under a scratch name, flushed once and then renamed. A first
 * start that dies leaves a scratch folder, which the next one removes; the
 * name is new each time, because the `initdb` of the dead one may still be
 * running and clears away what it was told to make.
 */
import { Effect, FileSystem, Option, Path, type PlatformError } from "effect"
import { databaseLimits } from "../limits.ts"
import {
  type DatabaseUnavailable,
  diskFull,
  folderProblem,
  saysDiskFull,
  unavailable
} from "./database-unavailable.ts"
import { syncFolder } from "./database-record.ts"
import type { PostgresAccount } from "./postgres-account.ts"
import { runProgram } from "./postgres-process.ts"
import type { PostgresPrograms } from "./postgres-programs.ts"

/** The superuser of the embedded cluster; only this folder logs in as it. */
export const adminRole = "postgres"

export interface NewCluster {
  readonly cluster: string
  readonly account: PostgresAccount
  readonly programs: PostgresPrograms
  readonly adminPassword: string
  /** False only where the whole cluster is thrown away after use. */
  readonly durable: boolean
}

const scratchPrefix = "postgres.partial-"

/** The owner of the cluster; none where there is no cluster. */
export const clusterOwner = Effect.fnUntraced(function* (cluster: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const folder = yield* fileSystem.stat(cluster).pipe(Effect.option)
  return Option.flatMap(folder, ({ uid }) => uid)
})

/** Refuses a cluster that these programs cannot read. */
export const checkVersion = Effect.fn("checkVersion")(function* (
  cluster: string,
  programs: PostgresPrograms
): Effect.fn.Return<void, DatabaseUnavailable, FileSystem.FileSystem | Path.Path> {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const text = yield* fileSystem
    .readFileString(path.join(cluster, "PG_VERSION"))
    .pipe(
      Effect.mapError(() =>
        unavailable(
          "clusterForeign",
          `The folder ${cluster} holds no PostgreSQL cluster: move it away, or set TROPISM_DATA to another folder.`
        )
      )
    )
  if (text.trim() === String(programs.version)) return
  return yield* unavailable(
    "clusterForeign",
    `The database in ${cluster} was made by PostgreSQL ${text.trim()} and this program brings ${programs.version}: export it with the program that made it, or set TROPISM_DATA to another folder.`
  )
})

const removeScratches = Effect.fnUntraced(function* (home: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const names = yield* fileSystem.readDirectory(home)
  for (const name of names.filter((each) => each.startsWith(scratchPrefix))) {
    // What an orphan still writes into cannot be removed now, and is by the next start.
    yield* fileSystem.remove(path.join(home, name), { recursive: true, force: true }).pipe(Effect.ignore)
  }
})

const runInitdb = Effect.fnUntraced(function* (
  options: NewCluster,
  words: ReadonlyArray<string>
): Effect.fn.Return<void, DatabaseUnavailable> {
  const ended = yield* runProgram({
    file: options.programs.initdb,
    arguments: words,
    account: options.account
  }).pipe(
    Effect.timeoutOrElse({
      duration: databaseLimits.creationTimeoutMs,
      orElse: () => Effect.succeed({ exitCode: -1, lastWords: "it did not end in time" })
    })
  )
  if (ended.exitCode === 0) return
  if (saysDiskFull(ended.lastWords)) return yield* diskFull(options.cluster)
  return yield* unavailable(
    "creationFailed",
    `The database could not be created in ${options.cluster}: mend what PostgreSQL complains about and start again.\n${ended.lastWords}`
  )
})

const initdbWords = (data: string, passwordFile: string): ReadonlyArray<string> => [
  `--pgdata=${data}`,
  `--username=${adminRole}`,
  `--pwfile=${passwordFile}`,
  "--auth=scram-sha-256",
  "--encoding=UTF8",
  // The same order and case rules on every machine, whatever its locales are.
  "--locale=C",
  "--locale-provider=builtin",
  "--builtin-locale=C.UTF-8",
  "--no-instructions",
  // Flushed once when complete: until then it is thrown away anyway.
  "--no-sync"
]

const build = Effect.fnUntraced(function* (options: NewCluster, scratch: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const data = path.join(scratch, "data")
  const passwordFile = path.join(scratch, "password")
  yield* fileSystem.writeFileString(passwordFile, options.adminPassword, { mode: 0o600 })
  if (options.account.foreign) {
    yield* fileSystem.chown(passwordFile, options.account.uid, options.account.gid)
    yield* fileSystem.chown(scratch, options.account.uid, options.account.gid)
  }
  yield* runInitdb(options, initdbWords(data, passwordFile))
  if (options.durable) yield* runInitdb(options, [`--pgdata=${data}`, "--sync-only"])
  return data
})

/** Makes the cluster at `options.cluster`, which must not exist. */
export const createCluster = Effect.fn("createCluster")(function* (
  options: NewCluster
): Effect.fn.Return<void, DatabaseUnavailable, FileSystem.FileSystem | Path.Path> {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const home = path.dirname(options.cluster)
  const orFolderProblem = Effect.mapError((error: PlatformError.PlatformError | DatabaseUnavailable) =>
    error._tag === "PlatformError" ? folderProblem(home)(error) : error
  )
  yield* removeScratches(home).pipe(orFolderProblem)
  yield* Effect.acquireUseRelease(
    fileSystem.makeTempDirectory({ directory: home, prefix: scratchPrefix }),
    (scratch) =>
      Effect.gen(function* () {
        yield* fileSystem.rename(yield* build(options, scratch), options.cluster)
        yield* syncFolder(home)
      }),
    (scratch) => fileSystem.remove(scratch, { recursive: true, force: true }).pipe(Effect.ignore)
  ).pipe(orFolderProblem)
})
