/**
 * Finds the keys that secrets are sealed with: what the operator gave, else a file in the data folder.
 *
 * Several keys are several after commas: the first seals, all of them open, so a
 * key is replaced by putting a new one before it. Only a program that keeps its
 * own token in the data folder makes a key there, too: elsewhere nobody would
 * find it again at the next start, or at another server of the same database.
 */
import { Effect, FileSystem, Path, Redacted } from "effect"
import { makeDataFolder } from "./data-folder.ts"
import { newKeyText, readKey, type SealingKey } from "./sealed-text.ts"

/** The file's name in the data folder. */
export const keyFile = "encryption-key"

/** The keys, or the sentence that says what is wrong with them. */
export const findSealingKeys = Effect.fn("findSealingKeys")(function* (options: {
  readonly given: Redacted.Redacted<string> | undefined
  readonly dataFolder: string
  readonly mayMake: boolean
}): Effect.fn.Return<
  { readonly keys: ReadonlyArray<SealingKey> } | { readonly fault: string },
  never,
  FileSystem.FileSystem | Path.Path
> {
  if (options.given) return keysOf(Redacted.value(options.given), "TROPISM_ENCRYPTION_KEY")
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.resolve(options.dataFolder, keyFile)
  const read = Effect.orElseSucceed(fileSystem.readFileString(file), () => "")
  const kept = yield* read
  if (kept !== "") return keysOf(kept, file)
  if (!options.mayMake) return { keys: [] }
  const made = yield* Effect.andThen(Effect.ignore(makeKeyFile(options.dataFolder, file)), read)
  return made === ""
    ? {
        fault: `The key for secrets could not be kept in ${file}: make the folder writable, or set TROPISM_ENCRYPTION_KEY.`
      }
    : keysOf(made, file)
})

/**
 * Makes the file with all that is in it: it is written beside its place, and then linked to it.
 *
 * Of two programs that do so at once the first one's link stays, and both read that. A file without a key comes of a
 * machine that stopped while it was written: nothing can have been sealed with it.
 */
const makeKeyFile = Effect.fnUntraced(function* (dataFolder: string, file: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* makeDataFolder(dataFolder)
  const beside = yield* fileSystem.makeTempDirectoryScoped({ directory: dataFolder, prefix: `${keyFile}-` })
  const written = path.join(beside, keyFile)
  const handle = yield* fileSystem.open(written, { flag: "wx", mode: 0o600 })
  yield* handle.writeAll(new TextEncoder().encode(`${newKeyText()}\n`))
  yield* handle.sync
  const isEmpty = Effect.map(fileSystem.stat(file), ({ size }) => Number(size) === 0)
  if (yield* Effect.orElseSucceed(isEmpty, () => false)) yield* fileSystem.remove(file)
  yield* fileSystem.link(written, file)
}, Effect.scoped)

const keysOf = (text: string, where: string) => {
  const parts = text.split(",").map((one) => one.trim())
  // A variable that is not set leaves such a part, where two keys were meant.
  if (parts.length > 1 && parts.includes(""))
    return { fault: `${where} has an empty part: put a comma only between two keys.` }
  const known = parts.map(readKey).filter((key) => key !== undefined)
  return known.length < parts.length
    ? {
        fault: `${where} must be a key of 32 bytes in base64, or several with commas between them: make one with "openssl rand -base64 32".`
      }
    : { keys: known }
}
