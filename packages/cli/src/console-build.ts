/**
 * Builds the console when it is missing or older than its sources.
 *
 * The build goes into a folder of its own that takes the place of `dist` only
 * when it is whole, so an interrupted build leaves nothing half-made. The
 * server works without a console: a failed build is told, not fatal.
 */
import { Clock, Effect, FileSystem, Option, Path, Stream } from "effect"
import { ChildProcess } from "effect/process"
import type { Checkout } from "./checkout.ts"
import { failure } from "./failure.ts"
import { limits } from "./limits.ts"

/** The parts of the workspace that go into the console. */
const sourceFolders = ["console/src", "api/src", "client/src", "domain/src"]
const sourceFiles = ["console/index.html", "console/package.json", "console/vite.config.ts"]

/** Whether the console has to be built; false where its sources are not here, as in an installed package. */
export const isConsoleStale = (checkout: Checkout) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const packages = path.dirname(checkout.consoleFolder)
    const canBuild = yield* files.exists(path.join(packages, "console/index.html"))
    if (!canBuild) return false
    const builtAt = yield* modifiedAt(path.join(checkout.consoleFolder, "dist", "index.html"))
    if (builtAt === undefined) return true
    const listed = yield* Effect.forEach(sourceFolders, (folder) =>
      files.readDirectory(path.join(packages, folder), { recursive: true }).pipe(
        Effect.map((entries) => entries.map((entry) => path.join(folder, entry))),
        Effect.orElseSucceed(() => [])
      )
    )
    const sources = [...sourceFiles, ...listed.flat()].slice(0, limits.consoleSourceFiles)
    const times = yield* Effect.forEach(sources, (file) => modifiedAt(path.join(packages, file)), {
      concurrency: 16
    })
    return times.some((time) => time !== undefined && time > builtAt)
  })

/** When a file was written last; a folder has no such time that would say anything. */
const modifiedAt = (file: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const facts = yield* Effect.option(files.stat(file))
    return Option.getOrUndefined(
      Option.flatMap(facts, ({ mtime, type }) =>
        type === "File" ? Option.map(mtime, (time) => time.getTime()) : Option.none()
      )
    )
  })

/** Runs the build and returns how long it took. */
export const buildConsole = (checkout: Checkout, bun: string) =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const began = yield* Clock.currentTimeMillis
    const target = path.join(checkout.consoleFolder, "dist")
    const building = path.join(checkout.consoleFolder, "node_modules", `.build-${began}`)
    yield* Effect.gen(function* () {
      yield* runVite(checkout, bun, building)
      yield* files.remove(target, { recursive: true, force: true })
      yield* files.rename(building, target)
    }).pipe(Effect.ensuring(Effect.ignore(files.remove(building, { recursive: true, force: true }))))
    return (yield* Clock.currentTimeMillis) - began
  }).pipe(
    Effect.scoped,
    Effect.timeoutOrElse({
      duration: limits.consoleBuildMs,
      orElse: () => Effect.fail(failure(`timed out after ${limits.consoleBuildMs / 1000} seconds`))
    })
  )

const runVite = (checkout: Checkout, bun: string, outFolder: string) =>
  Effect.gen(function* () {
    const vite = yield* findVite(checkout)
    const handle = yield* ChildProcess.make(
      bun,
      [vite, "build", "--outDir", outFolder, "--emptyOutDir", "--logLevel", "error"],
      {
        cwd: checkout.consoleFolder,
        env: { NODE_ENV: "production", NO_COLOR: "1" },
        extendEnv: true,
        stdin: "ignore"
      }
    )
    const lines = yield* handle.all.pipe(
      Stream.decodeText(),
      Stream.splitLines,
      Stream.takeRight(limits.consoleBuildLines),
      Stream.runCollect
    )
    const code = yield* handle.exitCode
    if (code !== 0) {
      const said = lines
        .map((line) => line.trim())
        .filter((line) => line !== "" && !/^error during build:?$/.test(line))
      return yield* failure(
        said.find((line) => /error/i.test(line)) ?? said.at(-1) ?? `vite ended with code ${code}`
      )
    }
  })

const findVite = (checkout: Checkout) =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const manifest = yield* Effect.try({
      try: () => Bun.resolveSync("vite/package.json", checkout.consoleFolder),
      catch: () => failure("vite is not installed; run npm ci")
    })
    return path.join(path.dirname(manifest), "bin", "vite.js")
  })
