/**
 * The door of the command line: arguments in, one exit code out.
 *
 * 0 is done, 1 is a failure that was told in a sentence, 2 is a wrong
 * invocation, 3 is an agent that waits for a person, 130 is an interruption. A stack is never shown unless
 * `--log-level debug` asks for it.
 */
// Each by its own path: the package as a whole takes half a second to load.
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, Effect, Exit, Layer } from "effect"
import { CliError } from "effect/cli"
import { runCommandLine, usageExitCode } from "./command-line.ts"
import { Failure } from "./failure.ts"
import { limits } from "./limits.ts"
import { Keyboard } from "./terminal/keyboard.ts"
import { Screen } from "./terminal/screen.ts"

const args = process.argv.slice(2)

/** Commands that run until they are stopped: stopping them is their success. */
const isStoppedBySignal = args.some((arg) => arg === "start" || arg === "demo")

const exitCode = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return 0
  if (Cause.hasInterruptsOnly(exit.cause)) return isStoppedBySignal ? 0 : 130
  const error = Cause.squash(exit.cause)
  if (CliError.isCliError(error)) return usageExitCode(error)
  process.stderr.write(`tropism: ${error instanceof Failure ? error.message : faultText(exit.cause)}\n`)
  return error instanceof Failure ? error.exitCode : 1
}

const faultText = (cause: Cause.Cause<unknown>): string =>
  args.some((arg) => /^(debug|trace|all)$/.test(arg.replace("--log-level=", "")))
    ? Cause.pretty(cause)
    : `This is a fault of the program: ${String(Cause.squash(cause)).split("\n", 1)[0]} Run it again with --log-level debug to see where.`

const stop = () => process.emit("SIGTERM", "SIGTERM")

// A reader that has seen enough (head) closes the pipe: that is no failure, and a server stops in good order.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (isStoppedBySignal) stop()
  else process.exit(error.code === "EPIPE" ? 0 : 1)
})

process.on("SIGHUP", stop)
/** When the first signal to stop came. */
let stoppingMs: number | undefined

// The first stops in good order, within a bound; whoever sends another one does not want to wait for that.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    const nowMs = performance.now()
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
      teardown: (exit) => process.exit(exitCode(exit))
    })
)
