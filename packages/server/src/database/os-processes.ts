/**
 * What the operating system knows of a process that this program did not start itself.
 *
 * A process id alone proves nothing, since ids are used again; `/proc` tells
 * what runs behind it where it exists. Elsewhere the answer is "cannot tell",
 * and callers must do the careful thing. This file starts nothing; it ends
 * only what its caller has recognised.
 */
import { Effect, FileSystem, Option, Predicate } from "effect"

/** Sends a signal, or tests for existence with 0; false when there is no such process. */
export const signal = (pid: number, name: "SIGINT" | "SIGQUIT" | 0): Effect.Effect<boolean> =>
  Effect.try({ try: () => process.kill(pid, name), catch: (error) => error }).pipe(
    // EPERM means that the process exists and belongs to someone else.
    Effect.catch((error) => Effect.succeed(Predicate.hasProperty(error, "code") && error.code === "EPERM"))
  )

const readProc = (pid: number, file: string) =>
  Effect.gen(function* () {
    const fileSystem = yield* FileSystem.FileSystem
    return yield* fileSystem.readFileString(`/proc/${pid}/${file}`)
  }).pipe(Effect.option)

/** Tells whether the process runs; one that ended and was not yet collected by its parent does not. */
export const isAlive = Effect.fnUntraced(function* (pid: number) {
  if (!(yield* signal(pid, 0))) return false
  const status = yield* readProc(pid, "stat")
  // The command's name stands in brackets and may hold anything, so the state is sought behind the last one.
  return !Option.exists(status, (text) => /^\) [ZX]/.test(text.slice(text.lastIndexOf(")"))))
})

/** The words of the command line behind a process id, where the system tells. */
export const commandLine = Effect.fnUntraced(function* (pid: number) {
  const text = yield* readProc(pid, "cmdline")
  return Option.map(text, (line) => line.split("\0").filter((word) => word !== ""))
})
