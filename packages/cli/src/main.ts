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
import { ExitHooks, StandingBegan } from "./commands/start.ts"
import { endingOf, failureText, fatalLine, wantsJson } from "./ending.ts"
import { exitCodes } from "./exit-codes.ts"
import { type Failure, outputLost, stoppedAtOnce } from "./failure.ts"
import { limits } from "./limits.ts"
import { PrintingBegan } from "./only-printing.ts"
import { Keyboard } from "./terminal/keyboard.ts"
import { Screen } from "./terminal/screen.ts"

const args = process.argv.slice(2)

/** Whether the command is one that runs until it is stopped; it says so itself, as no word among the arguments can. */
let isStanding = false

/** Whether the command does nothing but print; it says so itself, too. */
let isOnlyPrinting = false

/** The first signal that came. */
let signalled: "SIGINT" | "SIGTERM" | undefined

/** Says it on standard error, which is the log of a command that runs until it is stopped. */
const tell = (failure: Failure): void => {
  const isLog = isStanding && process.env["TROPISM_LOG"] === "json" && !wantsJson(args)
  process.stderr.write(`${isLog ? fatalLine(failure, new Date()) : failureText(failure, wantsJson(args))}\n`)
}

const end = (exit: Exit.Exit<unknown, unknown>): number => {
  const { exitCode, failure } = endingOf(exit, args, signalled)
  if (failure !== undefined) tell(failure)
  const isStopped = exitCode === exitCodes.interrupted || exitCode === exitCodes.terminated
  return isStopped && isStanding ? exitCodes.done : exitCode
}

const stop = () => process.emit("SIGTERM", "SIGTERM")

// A reader that has seen enough (head) closes the pipe: that is no failure. It ends what only prints, a server stops in
// good order, and whatever changes or writes something goes on to its own end.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (isStanding) stop()
  else if (error.code === "EPIPE") {
    if (isOnlyPrinting) process.exit(exitCodes.done)
  } else {
    tell(outputLost(error))
    process.exit(exitCodes.failed)
  }
})

// The log's reader may be gone, or the terminal: that ends nothing by itself.
process.stderr.on("error", () => {})

/** What would outlive this process, which no hurry leaves behind. */
const lasting = new Set<Effect.Effect<void>>()

let isHastened = false

/** Ends the program without waiting for its work, and without leaving anything behind. */
const hasten = () => {
  if (isHastened) return
  isHastened = true
  Effect.runFork(
    Effect.forEach(lasting, (atOnce) => atOnce, { concurrency: "unbounded", discard: true }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          if (isStanding) tell(stoppedAtOnce)
          process.exit(exitCodes.failed)
        })
      )
    )
  )
}

/** Begins to stop in good order, within a bound. */
const begin = (signal: "SIGINT" | "SIGTERM") => {
  if (signalled === undefined) setTimeout(hasten, limits.stopMs).unref()
  signalled ??= signal
}

let isPassedOn = false
let interrupts = 0

// A manager tells every process of a group, and the launcher passes it on: more of these say nothing new.
process.on("SIGTERM", () => begin("SIGTERM"))
process.on("SIGHUP", stop)
// Whoever presses Ctrl-C once more does not want to wait; what the launcher passes on is the same press.
process.on("SIGINT", () => {
  begin("SIGINT")
  if (!isPassedOn && ++interrupts > 1) hasten()
})

const interrupt = () => {
  isPassedOn = true
  process.emit("SIGINT", "SIGINT")
  isPassedOn = false
}

// The launcher writes into this pipe for each interrupt that it got; its end closes when the launcher dies, however it dies.
const launcherFd = Number(process.env["TROPISM_LAUNCHER_FD"])
if (launcherFd > 2) {
  delete process.env["TROPISM_LAUNCHER_FD"]
  void Bun.file(launcherFd)
    .stream()
    .pipeTo(new WritableStream({ write: interrupt }))
    .then(stop, stop)
}

runCommandLine(args).pipe(
  Effect.provideService(ExitHooks, lasting),
  Effect.provideService(StandingBegan, () => void (isStanding = true)),
  Effect.provideService(PrintingBegan, () => void (isOnlyPrinting = true)),
  Effect.provide(Layer.mergeAll(Keyboard.layer, Layer.provideMerge(Screen.layer, NodeServices.layer))),
  (command) =>
    NodeRuntime.runMain(command, {
      disableErrorReporting: true,
      // The work may end by what a hurry takes from it: then the hurry ends the program, behind what would outlive it, and says so.
      teardown: (exit) => {
        if (!isHastened) process.exit(end(exit))
      }
    })
)
