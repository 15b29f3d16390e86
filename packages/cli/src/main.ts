/**
 * The door of the command line: arguments in, one exit code out.
 *
 * The codes stand in `exit-codes.ts`. A stack is never shown unless
 * `--log-level debug` asks for it.
 */
// Each by its own path: the package as a whole takes half a second to load.
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, type Exit, Layer } from "effect"
import { runCommandLine } from "./command-line.ts"
import { endingOf, failureText, wantsJson } from "./ending.ts"
import { exitCodes } from "./exit-codes.ts"
import { outputLost } from "./failure.ts"
import { limits } from "./limits.ts"
import { Keyboard } from "./terminal/keyboard.ts"
import { Screen } from "./terminal/screen.ts"

const args = process.argv.slice(2)

/** Commands that run until they are stopped: stopping them is their success. */
const isStoppedBySignal = args.some((arg) => arg === "start" || arg === "demo")

/** The first signal that came. */
let signalled: "SIGINT" | "SIGTERM" | undefined

const end = (exit: Exit.Exit<unknown, unknown>): number => {
  const { exitCode, told } = endingOf(exit, args, signalled)
  if (told !== undefined) process.stderr.write(`${told}\n`)
  const isStopped = exitCode === exitCodes.interrupted || exitCode === exitCodes.terminated
  return isStopped && isStoppedBySignal ? exitCodes.done : exitCode
}

const stop = () => process.emit("SIGTERM", "SIGTERM")

// A reader that has seen enough (head) closes the pipe: that is no failure, and a server stops in good order.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (isStoppedBySignal) stop()
  else if (error.code === "EPIPE") process.exit(exitCodes.done)
  else {
    process.stderr.write(`${failureText(outputLost(error), wantsJson(args))}\n`)
    process.exit(exitCodes.failed)
  }
})

process.on("SIGHUP", stop)
/** When the first signal to stop came. */
let stoppingMs: number | undefined

// The first stops in good order, within a bound; whoever sends another one does not want to wait for that.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    const nowMs = performance.now()
    signalled ??= signal
    if (stoppingMs === undefined) {
      stoppingMs = nowMs
      setTimeout(() => process.exit(1), limits.stopMs).unref()
    } else if (nowMs - stoppingMs >= limits.sameInterruptMs) process.exit(1)
  })
}

// The launcher's end of this pipe closes when the launcher dies, however it dies.
const launcherFd = Number(process.env["TROPISM_LAUNCHER_FD"])
if (launcherFd > 2) {
  delete process.env["TROPISM_LAUNCHER_FD"]
  void Bun.file(launcherFd).stream().pipeTo(new WritableStream()).then(stop, stop)
}

runCommandLine(args).pipe(
  Effect.provide(Layer.mergeAll(Keyboard.layer, Layer.provideMerge(Screen.layer, NodeServices.layer))),
  (command) =>
    NodeRuntime.runMain(command, {
      disableErrorReporting: true,
      teardown: (exit) => process.exit(end(exit))
    })
)
