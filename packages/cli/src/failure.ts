/**
 * What a command says when it cannot do what it was asked: one sentence for a person.
 *
 * Everything a person can mend becomes a `Failure` before it reaches `main.ts`,
 * which prints its message on standard error and ends with exit code 1. What is
 * left is a fault of the program.
 */
import { failureSentence, isUnreachable, statusOf } from "@tropism/client/failure-sentence"
import { Schema } from "effect"

export class Failure extends Schema.TaggedError<Failure>()("Failure", {
  message: Schema.String,
  exitCode: Schema.Int
}) {}

export const failure = (message: string, exitCode = 1): Failure => new Failure({ message, exitCode })

/** Says why a request to the server failed and what to do about it. */
export const requestFailure = (error: unknown, url: string): Failure => {
  if (error instanceof Failure) return error
  if (isUnreachable(error)) {
    return failure(
      `No Tropism server answers at ${url}. Start one with "tropism start", or name another with --url.`
    )
  }
  if (statusOf(error) === 401) {
    return failure(
      `The server at ${url} does not accept this token. Set TROPISM_TOKEN or --token, or set TROPISM_DATA to the data folder of that server.`
    )
  }
  return failure(failureSentence(error))
}
