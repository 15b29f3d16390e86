/**
 * Makes the data folder of a server that has its database elsewhere: secrets lie in it, so nobody else may look.
 *
 * The folder of an embedded PostgreSQL is made where that is prepared
 * (`embedded-postgres.ts`), because PostgreSQL's account may have to pass.
 */
import { Effect, FileSystem, Path } from "effect"

/** Makes the folder if it is missing, its owner's alone; one that was there stays as it was. */
export const makeDataFolder = Effect.fn("makeDataFolder")(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fileSystem.makeDirectory(path.dirname(folder), { recursive: true })
  yield* Effect.catchReason(
    fileSystem.makeDirectory(folder, { mode: 0o700 }),
    "PlatformError",
    "AlreadyExists",
    () => Effect.void
  )
})
