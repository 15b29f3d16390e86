/**
 * Where the parts of this program lie: the console, the demo, the lockfile it is shown with.
 *
 * Everything is found from this file's own place, never from the folder the
 * command is run in, so `tropism` works from anywhere.
 */
import { Effect, FileSystem, Path } from "effect"

export interface Checkout {
  readonly cliFolder: string
  readonly consoleFolder: string
  readonly demoFolder: string
}

export const findCheckout: Effect.Effect<Checkout, never, Path.Path> = Effect.gen(function* () {
  const path = yield* Path.Path
  const here = yield* Effect.orDie(path.fromFileUrl(new URL(import.meta.url)))
  const cliFolder = path.dirname(path.dirname(here))
  return {
    cliFolder,
    consoleFolder: path.join(path.dirname(cliFolder), "console"),
    demoFolder: path.join(cliFolder, "demo")
  }
})

/** The lockfile of the demo: the checkout's own, else the one that lies beside the program. */
export const findDemoLockfile = (
  checkout: Checkout
): Effect.Effect<string | undefined, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const path = yield* Path.Path
    const files = yield* FileSystem.FileSystem
    const candidates = [
      path.join(checkout.cliFolder, "..", "..", "package-lock.json"),
      path.join(checkout.cliFolder, "package-lock.json"),
      path.join(checkout.demoFolder, "package-lock.json")
    ]
    return yield* Effect.findFirst(candidates, (file) =>
      Effect.orElseSucceed(files.exists(file), () => false)
    ).pipe(Effect.map((found) => (found._tag === "Some" ? found.value : undefined)))
  })
