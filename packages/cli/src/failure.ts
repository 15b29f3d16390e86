/**
 * What a command says when it cannot do what it was asked: one sentence for a person.
 *
 * Everything a person can mend becomes a `Failure` before it reaches `main.ts`,
 * which prints its message on standard error and ends with its exit code. What is
 * left is a fault of the program.
 */
import { failureSentence, isUnreachable, problemOf, statusOf } from "@tropism/client/failure-sentence"
import { Option, Schema } from "effect"
import { type ExitCode, exitCodes } from "./exit-codes.ts"

export class Failure extends Schema.TaggedError<Failure>()("Failure", {
  message: Schema.String,
  exitCode: Schema.Literals(Object.values(exitCodes)),
  /** What the server said, where it was the server that refused (RFC 9457). */
  problem: Schema.optionalKey(Schema.Unknown)
}) {}

export const failure = (message: string, exitCode: ExitCode = exitCodes.failed): Failure =>
  new Failure({ message, exitCode })

/** Says why a request to the server failed and what to do about it. */
export const requestFailure = (error: unknown, url: string): Failure => {
  if (error instanceof Failure) return error
  if (isUnreachable(error)) {
    return failure(
      `No Tropism server answers at ${url}. Start one with "tropism start", or name another with --url.`
    )
  }
  const message =
    statusOf(error) === 401
      ? `The server at ${url} does not accept this token. Set TROPISM_TOKEN or --token, or set TROPISM_DATA to the data folder of that server.`
      : failureSentence(error)
  return new Failure({
    message,
    exitCode: exitCodes.failed,
    ...Option.match(problemOf(error), { onNone: () => ({}), onSome: (problem) => ({ problem }) })
  })
}
