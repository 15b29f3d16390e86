/**
 * How an invocation ends: its exit code, and what is said of that on standard error.
 *
 * For a person it is one sentence; for a program (`--json`) one JSON object in
 * one line, and the problem document with it where a server refused.
 */
import { Cause, Exit } from "effect"
import { CliError } from "effect/cli"
import { type ExitCode, exitCodes } from "./exit-codes.ts"
import { Failure } from "./failure.ts"

export interface Ending {
  readonly exitCode: ExitCode
  /** What is to be told; undefined where all is said. */
  readonly failure?: Failure
}

/** Whether these arguments ask for JSON; known before they are understood. */
export const wantsJson = (args: ReadonlyArray<string>): boolean => {
  const end = args.indexOf("--")
  return args
    .slice(0, end === -1 ? args.length : end)
    .some((arg) => arg === "--json" || arg === "--json=true")
}

/** Whether these arguments ask for help. */
export const wantsHelp = (args: ReadonlyArray<string>): boolean => {
  const end = args.indexOf("--")
  return args.slice(0, end === -1 ? args.length : end).some((arg) => arg === "--help" || arg === "-h")
}

/** A failure as it is told. */
export const failureText = (
  { exitCode, message, problem }: Pick<Failure, "exitCode" | "message" | "problem">,
  isJson: boolean
): string =>
  isJson
    ? JSON.stringify({ error: { exitCode, message, ...(problem === undefined ? {} : { problem }) } })
    : `tropism: ${message}`

/** The same as the last line of a server's log, where that is one JSON object a line (`TROPISM_LOG=json`). */
export const fatalLine = ({ message }: Pick<Failure, "message">, at: Date): string =>
  JSON.stringify({ time: at.toISOString(), level: "fatal", message })

/** The ending of what came to this exit; a command that a signal interrupted ends with that signal's code. */
export const endingOf = (
  exit: Exit.Exit<unknown, unknown>,
  args: ReadonlyArray<string>,
  signal: "SIGINT" | "SIGTERM" = "SIGINT"
): Ending => {
  if (Exit.isSuccess(exit)) return { exitCode: exitCodes.done }
  if (Cause.hasInterruptsOnly(exit.cause))
    return { exitCode: signal === "SIGTERM" ? exitCodes.terminated : exitCodes.interrupted }
  const error = Cause.squash(exit.cause)
  // A wrong invocation is told where it is understood; help that was asked for is no error.
  if (CliError.isCliError(error))
    return {
      exitCode:
        error._tag === "ShowHelp" && error.errors.length === 0 && (!wantsJson(args) || wantsHelp(args))
          ? exitCodes.done
          : exitCodes.usage
    }
  const failure =
    error instanceof Failure
      ? error
      : new Failure({ message: faultText(exit.cause, args), exitCode: exitCodes.failed })
  return { exitCode: failure.exitCode, failure }
}

const faultText = (cause: Cause.Cause<unknown>, args: ReadonlyArray<string>): string =>
  args.some((arg) => /^(debug|trace|all)$/.test(arg.replace("--log-level=", "")))
    ? Cause.pretty(cause)
    : `Internal error: ${String(Cause.squash(cause)).split("\n", 1)[0]} Run it again with --log-level debug to see where.`
