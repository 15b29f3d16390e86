/**
 * The PostgreSQL server of one cluster, as its `postmaster.pid` tells of it.
 *
 * The file may be left over from a killed server and its process id may belong
 * to another program by now, so the process behind it is looked at before it
 * is believed, waited for or ended. Nothing here deletes the file: PostgreSQL
 * checks by it whether orphans of the killed server still hold its memory.
 */
import { Effect, FileSystem, Option, Path, Schedule } from "effect"
import { databaseLimits } from "../limits.ts"
import { type DatabaseUnavailable, folderProblem } from "./database-unavailable.ts"
import { commandLine, isAlive, signal } from "./os-processes.ts"

export interface Postmaster {
  readonly pid: number
  readonly port: number
  /** It takes logins: it has recovered and is not stopping. */
  readonly ready: boolean
}

const pidFile = (cluster: string) => Effect.map(Path.Path, (path) => path.join(cluster, "postmaster.pid"))

/** What the file says, whoever the process is. */
const readPidFile = Effect.fnUntraced(function* (cluster: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const text = yield* fileSystem.readFileString(yield* pidFile(cluster)).pipe(Effect.option)
  const [pid = "", , , port = "", , , , status = ""] = Option.getOrElse(text, () => "").split("\n")
  const postmaster = { pid: Number(pid), port: Number(port), ready: status.trim() === "ready" }
  // A file that is just being written has fewer lines.
  return postmaster.pid > 0 ? Option.some(postmaster) : Option.none()
})

/** A command line names a PostgreSQL of this cluster unless it says another one. */
const runsOn = (cluster: string, words: ReadonlyArray<string>): boolean => {
  const folder = words.indexOf("-D")
  return (
    /(^|\/)(postgres|postmaster)$/.test(words[0] ?? "") && (folder === -1 || words[folder + 1] === cluster)
  )
}

/** The server that runs on `cluster` now, ready or not. */
export const findPostmaster = Effect.fn("findPostmaster")(function* (cluster: string) {
  const file = yield* readPidFile(cluster)
  if (Option.isNone(file) || !(yield* isAlive(file.value.pid))) return Option.none()
  const words = yield* commandLine(file.value.pid)
  return Option.exists(words, (each) => !runsOn(cluster, each)) ? Option.none() : file
})

/**
 * Lets PostgreSQL start where a leftover file names a process that is another program's by now.
 *
 * **Details**
 *
 * PostgreSQL would refuse, because that process lives. With the id of its own
 * parent in the file, which is this program, it knows that the file is stale
 * and still makes its check of the old server's shared memory.
 */
export const disownStalePidFile = Effect.fn("disownStalePidFile")(function* (
  cluster: string
): Effect.fn.Return<void, DatabaseUnavailable, FileSystem.FileSystem | Path.Path> {
  const file = yield* readPidFile(cluster)
  if (Option.isNone(file) || !(yield* isAlive(file.value.pid))) return
  if (Option.isSome(yield* findPostmaster(cluster))) return
  const fileSystem = yield* FileSystem.FileSystem
  const name = yield* pidFile(cluster)
  yield* fileSystem.readFileString(name).pipe(
    Effect.flatMap((text) => fileSystem.writeFileString(name, text.replace(/^\d+/, String(process.pid)))),
    Effect.mapError(folderProblem(cluster))
  )
})

const poll = <A, E, R>(look: Effect.Effect<Option.Option<A>, E, R>, timeoutMs: number) =>
  look.pipe(
    Effect.repeat({
      until: Option.isSome,
      schedule: Schedule.spaced(databaseLimits.pollIntervalMs)
    }),
    Effect.timeoutOption(timeoutMs),
    Effect.map(Option.flatten)
  )

/** Waits until the server takes logins or has ended; none when it did neither in time. */
export const waitUntilReady = Effect.fn("waitUntilReady")(function* (cluster: string, pid: number) {
  const look = Effect.gen(function* () {
    if (!(yield* isAlive(pid))) return Option.some<Postmaster | "ended">("ended")
    return Option.filter(yield* readPidFile(cluster), (file) => file.pid === pid && file.ready)
  })
  return yield* poll(look, databaseLimits.startTimeoutMs)
})

const waitUntilGone = (pid: number, timeoutMs: number) =>
  poll(
    Effect.map(isAlive(pid), (alive) => (alive ? Option.none() : Option.some("gone"))),
    timeoutMs
  ).pipe(Effect.map(Option.isSome))

/**
 * Ends the server of `cluster` if it is still the one with this process id; waits until it is gone.
 *
 * **Details** It may take `inOrderMs` to write everything to its tables; after that it ends as in a crash, and the next start recovers.
 */
export const stopPostmaster = Effect.fn("stopPostmaster")(function* (
  cluster: string,
  pid: number,
  inOrderMs: number
) {
  const running = yield* findPostmaster(cluster)
  if (!Option.exists(running, (each) => each.pid === pid)) return
  yield* signal(pid, "SIGINT")
  if (yield* waitUntilGone(pid, inOrderMs)) return
  yield* signal(pid, "SIGQUIT")
  if (yield* waitUntilGone(pid, databaseLimits.stopNowTimeoutMs)) return
  yield* Effect.logError(`PostgreSQL (process ${pid}) on ${cluster} does not end; end it by hand.`)
})
