/**
 * The program `hold-database.ts` as a process that a test starts, kills and asks about.
 *
 * Whatever a test leaves running, the program or the PostgreSQL that outlived
 * it, is ended with the scope.
 */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Deferred, Effect, FileSystem, Option, Path, Schedule, Schema, type Scope } from "effect"
import { commandLine } from "../src/database/postgres-programs.ts"

/** What the program says in its one line. */
const Said = Schema.fromJsonString(
  Schema.Union([
    Schema.Struct({
      cluster: Schema.String,
      pid: Schema.Int,
      port: Schema.Int,
      reattached: Schema.Boolean,
      tookMs: Schema.Int
    }),
    Schema.Struct({ reason: Schema.String, message: Schema.String })
  ])
)

export interface DatabaseProcess {
  readonly pid: number
  /** Waits for the one line; dies when the program ends without it. */
  readonly said: Effect.Effect<typeof Said.Type>
  /** Sends a signal and waits until the program has ended. */
  readonly end: (signal: "SIGKILL" | "SIGTERM" | "SIGINT") => Effect.Effect<void>
}

export interface DatabaseProcessOptions {
  readonly dataFolder: string
  readonly machineFolder?: string
  /** The account to run it as; the test's own where not given. */
  readonly user?: { readonly uid: number; readonly gid: number }
  readonly workingFolder?: string
}

const script = fileURLToPath(new URL("hold-database.ts", import.meta.url))

/** Starts the program. */
export const startDatabaseProcess = (
  options: DatabaseProcessOptions
): Effect.Effect<DatabaseProcess, never, Scope.Scope | FileSystem.FileSystem | Path.Path> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const { dataFolder, machineFolder = "/var/lib/tropism", user = {}, workingFolder = "/" } = options
      const child = spawn(process.execPath, [script, dataFolder, machineFolder], {
        ...user,
        cwd: workingFolder,
        stdio: ["pipe", "pipe", "inherit"]
      })
      const line = Deferred.makeUnsafe<string>()
      const ended = Deferred.makeUnsafe<void>()
      let text = ""
      child.stdout.on("data", (part: Buffer) => {
        text += part.toString("utf8")
        if (text.includes("\n")) Deferred.doneUnsafe(line, Effect.succeed(text.trim()))
      })
      child.on("close", () => {
        Deferred.doneUnsafe(line, Effect.die(new Error(`the program ended, saying only "${text}"`)))
        Deferred.doneUnsafe(ended, Effect.void)
      })
      const handle: DatabaseProcess = {
        pid: child.pid ?? -1,
        said: Deferred.await(line).pipe(Effect.flatMap(Schema.decodeEffect(Said)), Effect.orDie),
        end: (signal) =>
          Effect.andThen(
            Effect.sync(() => child.kill(signal)),
            Deferred.await(ended)
          )
      }
      return handle
    }),
    (handle) => Effect.andThen(handle.end("SIGKILL"), endProcessesOf(options.dataFolder))
  )

/** The processes whose command line names something in this folder. */
export const processesOf = Effect.fnUntraced(function* (folder: string) {
  const fileSystem = yield* FileSystem.FileSystem
  const pids = (yield* fileSystem.readDirectory("/proc").pipe(Effect.orDie)).filter((name) =>
    /^\d+$/.test(name)
  )
  const named = yield* Effect.forEach(pids, (pid) =>
    Effect.map(commandLine(Number(pid)), (words) =>
      Option.exists(words, (each) => each.some((word) => word.includes(folder))) ? [Number(pid)] : []
    )
  )
  return named.flat().filter((pid) => pid !== process.pid)
})

/** Waits until no process names this folder. */
export const noProcessLeft = (folder: string) =>
  processesOf(folder).pipe(
    Effect.repeat({ until: (pids) => pids.length === 0, schedule: Schedule.spaced(20) }),
    Effect.timeout(100_000),
    Effect.orDie
  )

const endProcessesOf = (folder: string) =>
  Effect.gen(function* () {
    for (const pid of yield* processesOf(folder)) {
      yield* Effect.try(() => process.kill(pid, "SIGKILL")).pipe(Effect.ignore)
    }
    yield* noProcessLeft(folder)
  })
