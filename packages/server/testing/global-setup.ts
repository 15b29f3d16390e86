/**
 * One real PostgreSQL for a whole test run, with a migrated template database in it.
 *
 * It starts before the first test file and ends after the last, whatever
 * happened in between. A run that was killed leaves its folder and perhaps its
 * server; the next run ends and removes both, and leaves alone what a run
 * beside it still holds.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, Effect, Exit, FileSystem, Logger, Option, Path, Redacted, Scope } from "effect"
import type { TestProject } from "vitest/node"
import { holdFolder } from "../src/database/data-folder.ts"
import { embedded, type EmbeddedPostgres } from "../src/database/embedded-postgres.ts"
import { migrate, databaseName } from "../src/database/schema.ts"
import { connect } from "../src/database/postgres-access.ts"
import { findPostmaster, stopPostmaster } from "../src/database/embedded-cluster.ts"
import { databaseLimits } from "../src/limits.ts"
import { quickFolder } from "./quick-folder.ts"

/** What a test file gets of the run's PostgreSQL; addresses are plain text, since they cross threads. */
export interface RunningPostgres {
  /** Where tests keep clusters of their own: what a killed run leaves in it is ended and removed by the next. */
  readonly runFolder: string
  readonly adminUrl: string
  readonly ownerUrl: string
  readonly serverUrl: string
  readonly version: number
}

declare module "vitest" {
  interface ProvidedContext {
    readonly postgres: RunningPostgres
  }
}

/**
 * Nothing here outlives the run, so nothing is flushed to disk, and nothing is vacuumed, which looked at each of the many
 * databases every few seconds; and many files have servers at once.
 */
const settings = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  autovacuum: "off",
  max_connections: "400"
}

/** A folder this young may belong to a run that has not locked it yet. */
const youngestLeftoverMs = 60_000

const makeRunFolder = Effect.gen(function* () {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const home = path.join(quickFolder, `tropism-tests-${process.getuid?.() ?? "user"}`)
  yield* fileSystem.makeDirectory(home, { recursive: true })
  yield* removeLeftovers(home)
  const folder = yield* Effect.acquireRelease(
    fileSystem.makeTempDirectory({ directory: home, prefix: "run-" }),
    (made) => fileSystem.remove(made, { recursive: true, force: true }).pipe(Effect.ignore)
  )
  // PostgreSQL runs under another account when the tests run as root.
  yield* fileSystem.chmod(folder, 0o711)
  return folder
})

const removeLeftovers = Effect.fnUntraced(function* (home: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  for (const name of yield* fileSystem.readDirectory(home)) {
    yield* removeLeftover(path.join(home, name)).pipe(Effect.scoped, Effect.ignore)
  }
})

const removeLeftover = Effect.fnUntraced(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { mtime } = yield* fileSystem.stat(folder)
  const now = yield* Clock.currentTimeMillis
  const ageMs = now - Option.getOrElse(mtime, () => new Date(now)).getTime()
  if (ageMs < youngestLeftoverMs) return
  yield* holdFolder(folder)
  for (const file of yield* fileSystem.glob("**/postmaster.pid", { root: folder, dot: true })) {
    const cluster = path.dirname(path.join(folder, file))
    const server = yield* findPostmaster(cluster)
    if (Option.isSome(server)) yield* stopPostmaster(cluster, server.value.pid, databaseLimits.stopTimeoutMs)
  }
  yield* fileSystem.remove(folder, { recursive: true, force: true })
})

/** Migrates the database and closes it, so that it can be copied at any moment. */
const prepareTemplate = Effect.fn("prepareTemplate")(function* (postgres: EmbeddedPostgres) {
  yield* migrate(postgres.ownerUrl)
  const admin = yield* connect(postgres.adminUrl)
  yield* admin.query(`alter database ${databaseName} with is_template true allow_connections false`)
})

const start = Effect.gen(function* () {
  const runFolder = yield* makeRunFolder
  const postgres = yield* embedded({ dataFolder: runFolder, settings })
  yield* Effect.scoped(prepareTemplate(postgres))
  const running: RunningPostgres = {
    runFolder,
    adminUrl: Redacted.value(postgres.adminUrl),
    ownerUrl: Redacted.value(postgres.ownerUrl),
    serverUrl: Redacted.value(postgres.serverUrl),
    version: postgres.version
  }
  return running
})

/** Vitest calls this before the first file, and what it answers after the last. */
export const setup = async (project: TestProject) => {
  const scope = Scope.makeUnsafe()
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  const running = await Effect.runPromise(
    start.pipe(
      Effect.provideService(Scope.Scope, scope),
      Effect.onError(() => Scope.close(scope, Exit.void)),
      Effect.provide([NodeServices.layer, Logger.layer([])])
    )
  )
  project.provide("postgres", running)
  return close
}
