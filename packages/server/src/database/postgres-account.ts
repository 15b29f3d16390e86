/**
 * Under which account of the machine PostgreSQL runs.
 *
 * PostgreSQL refuses to run as root. A program started by root therefore runs
 * it under an account without rights, and everything that account must reach
 * is checked for being reachable. An ordinary user runs it as himself.
 */
import { Effect, FileSystem, Option, Path } from "effect"
import { type DatabaseUnavailable, unavailable } from "./database-unavailable.ts"

export interface PostgresAccount {
  readonly name: string
  readonly uid: number
  readonly gid: number
  /** Whether it is another account than the program's own. */
  readonly foreign: boolean
}

/** In this order: an account made for us, PostgreSQL's own, and the one that owns nothing. */
const preferred: ReadonlyArray<string> = ["tropism", "postgres", "_postgres", "nobody"]

const listed = (passwd: string): ReadonlyArray<PostgresAccount> =>
  passwd
    .split("\n")
    .map((line) => line.split(":"))
    .map(([name = "", , uid = "", gid = ""]) => ({
      name,
      // Darwin writes nobody as -2.
      uid: Number.parseInt(uid, 10) >>> 0,
      gid: Number.parseInt(gid, 10) >>> 0,
      foreign: true
    }))
    .filter((account) => account.name !== "" && account.uid !== 0)

/**
 * Chooses the account.
 *
 * **Details**
 *
 * `clusterOwner` is the owner of a cluster that exists already: PostgreSQL must
 * run as that one, whatever accounts were added to the machine since.
 */
export const postgresAccount = Effect.fn("postgresAccount")(function* (
  clusterOwner: Option.Option<number>
): Effect.fn.Return<PostgresAccount, DatabaseUnavailable, FileSystem.FileSystem> {
  const uid = process.getuid?.() ?? -1
  const own = { name: `user ${uid}`, uid, gid: process.getgid?.() ?? -1, foreign: false }
  if (uid !== 0) {
    if (Option.exists(clusterOwner, (owner) => owner !== uid)) {
      return yield* unavailable(
        "clusterForeign",
        "The database in this data folder was made by another user: start the program as that user, or set TROPISM_DATA to another folder."
      )
    }
    return own
  }
  const fileSystem = yield* FileSystem.FileSystem
  const passwd = yield* fileSystem.readFileString("/etc/passwd").pipe(Effect.orElseSucceed(() => ""))
  const accounts = listed(passwd)
  const account = Option.match(clusterOwner, {
    onNone: () =>
      preferred
        .map((name) => accounts.find((account) => account.name === name))
        .find((found) => found !== undefined),
    onSome: (owner) => accounts.find((account) => account.uid === owner)
  })
  if (account === undefined) {
    return yield* unavailable(
      "noAccount",
      "PostgreSQL does not run as root, and this machine has no account for it: add a user named postgres, start the program as an ordinary user, or set DATABASE_URL."
    )
  }
  return account
})

/** Tells whether the account may pass through `folder` and all folders above it. */
export const canEnter = Effect.fnUntraced(function* (folder: string, account: PostgresAccount) {
  if (!account.foreign) return true
  const fileSystem = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const names = (yield* fileSystem.realPath(folder)).split(path.sep)
  for (const depth of names.keys()) {
    const ancestor = names.slice(0, depth + 1).join(path.sep)
    const { gid, mode, uid } = yield* fileSystem.stat(ancestor === "" ? path.sep : ancestor)
    const shift = Option.contains(uid, account.uid) ? 6 : Option.contains(gid, account.gid) ? 3 : 0
    if (((mode >> shift) & 1) === 0) return false
  }
  return true
})
