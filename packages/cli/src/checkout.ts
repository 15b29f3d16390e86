/**
 * Where the parts of this program lie: the console, the demo, the lockfile it is shown with.
 *
 * Everything is found from this file's own place, never from the folder the
 * command is run in, so `tropism` works from anywhere. The package that is
 * installed is one folder, `dist`, with what the checkout has in several.
 */
import { Effect, FileSystem, Path } from "effect"

export interface Checkout {
  readonly cliFolder: string
  /** The console is in its `dist`, and built there where its sources are. */
  readonly consoleFolder: string
  readonly demoFolder: string
  /** What the demo imports: the packages that this program is made of. */
  readonly lockfile: string
}

export const findCheckout: Effect.Effect<Checkout, never, Path.Path> = Effect.gen(function* () {
  const path = yield* Path.Path
  const here = path.dirname(yield* Effect.orDie(path.fromFileUrl(new URL(import.meta.url))))
  const cliFolder = path.dirname(here)
  const isPackage = path.basename(here) === "dist"
  return {
    cliFolder,
    consoleFolder: isPackage ? path.join(here, "console") : path.join(path.dirname(cliFolder), "console"),
    demoFolder: path.join(cliFolder, "demo"),
    lockfile: isPackage
      ? path.join(here, "package-lock.json")
      : path.join(cliFolder, "..", "..", "package-lock.json")
  }
})

/** The lockfile of the demo, where it is. */
export const findDemoLockfile = ({
  lockfile
}: Checkout): Effect.Effect<string | undefined, never, FileSystem.FileSystem> =>
  Effect.gen(function* () {
    const files = yield* FileSystem.FileSystem
    return (yield* Effect.orElseSucceed(files.exists(lockfile), () => false)) ? lockfile : undefined
  })
