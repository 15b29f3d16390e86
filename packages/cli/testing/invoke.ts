/**
 * One invocation of the command line inside a test: what it prints and how it ends.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cause, ConfigProvider, Console, Effect, Exit, Layer, Schedule } from "effect"
import { CliError } from "effect/cli"
import { runCommandLine } from "../src/command-line.ts"
import { endingOf, failureText, wantsJson } from "../src/ending.ts"
import { Failure } from "../src/failure.ts"
import { Keyboard } from "../src/terminal/keyboard.ts"
import { Screen } from "../src/terminal/screen.ts"
import { type FakeServer, token } from "./fake-server.ts"

export interface Invocation {
  readonly exitCode: number
  readonly out: ReadonlyArray<string>
  /** What a person reads on standard error. */
  readonly error: string
}

/** Runs a command against a server, with nothing else in its environment. */
export const invoke = (server: FakeServer, ...args: ReadonlyArray<string>) =>
  invokeWith({ TROPISM_TOKEN: token }, ...args, "--url", server.url)

/** Runs a command that does not end, printing into a list. */
export const invokeInto = (out: Array<string>, server: FakeServer, ...args: ReadonlyArray<string>) =>
  execute(out, { TROPISM_TOKEN: token }, [...args, "--url", server.url])

/** Runs a command that says notices before it ends, into a list. */
export const invokeHearing = (notices: Array<string>, server: FakeServer, ...args: ReadonlyArray<string>) =>
  Effect.suspend(() => execute([], { TROPISM_TOKEN: token }, [...args, "--url", server.url], notices))

/** Runs a command with exactly this environment. */
export const invokeWith = (environment: Record<string, string>, ...args: ReadonlyArray<string>) =>
  Effect.suspend(() => execute([], environment, args))

/** The same, printing into a list: for a command that does not end. */
export const invokeWithInto = (
  out: Array<string>,
  environment: Record<string, string>,
  ...args: ReadonlyArray<string>
) => Effect.suspend(() => execute(out, environment, args))

/** Waits for something that another fiber or process brings about. */
export const until = (isSo: () => boolean) =>
  Effect.sync(isSo).pipe(Effect.repeat({ until: (so) => so, schedule: Schedule.spaced("10 millis") }))

const execute = (
  out: Array<string>,
  environment: Record<string, string>,
  args: ReadonlyArray<string>,
  errors: Array<string> = []
) =>
  Effect.gen(function* () {
    const console: Console.Console = {
      ...globalThis.console,
      log: (text: string) => void out.push(text),
      error: (text: string) => void errors.push(text)
    }
    const exit = yield* Effect.exit(
      runCommandLine(args).pipe(
        Effect.provide(
          Layer.mergeAll(
            NodeServices.layer,
            Screen.layerMemory(out),
            Keyboard.layer,
            ConfigProvider.layer(ConfigProvider.fromUnknown(environment))
          )
        ),
        Effect.provideService(Console.Console, console)
      )
    )
    const fault = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
    if (fault !== undefined && !(fault instanceof Failure) && !CliError.isCliError(fault))
      return yield* Effect.die(fault)
    const { exitCode, failure } = endingOf(exit, args)
    // What the program is called is not what this is about.
    const error =
      failure === undefined
        ? errors.join("\n")
        : failureText(failure, wantsJson(args)).replace(/^tropism: /, "")
    return { exitCode, out, error }
  }).pipe(Effect.map((invocation): Invocation => invocation))
