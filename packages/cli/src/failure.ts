/**
 * What a command says when it cannot do what it was asked: one sentence for a person.
 *
 * Everything a person can mend becomes a `Failure` before it reaches `main.ts`,
 * which prints its message on standard error and ends with its exit code. What is
 * left is a fault of the program.
 */
import { failureSentence, isAbsent, problemOf, statusOf } from "@tropism/client/failure-sentence"
import { Effect, Option, Schema } from "effect"
import { type ExitCode, exitCodes } from "./exit-codes.ts"

export class Failure extends Schema.TaggedError<Failure>()("Failure", {
  message: Schema.String,
  exitCode: Schema.Literals(Object.values(exitCodes)),
  /** What the server said, where it was the server that refused (RFC 9457). */
  problem: Schema.optionalKey(Schema.Unknown)
}) {}

export const failure = (message: string, exitCode: ExitCode = exitCodes.failed): Failure =>
  new Failure({ message, exitCode })

/** The same refusal in another sentence: what the server said goes with it. */
export const retold = (error: Failure, message: string, exitCode: ExitCode = error.exitCode): Failure =>
  new Failure({
    message,
    exitCode,
    ...(error.problem === undefined ? {} : { problem: error.problem })
  })

/**
 * Fails with what several had to say, if any had; a wrong call is only what changed nothing.
 *
 * **Details** Of several refusals the first is the problem.
 */
export const failTogether = (
  failures: ReadonlyArray<Failure>,
  isUnchanged: boolean
): Effect.Effect<void, Failure> => {
  const first = failures.find(({ problem }) => problem !== undefined) ?? failures[0]
  if (first === undefined) return Effect.void
  const isWrongCall = isUnchanged && failures.every(({ exitCode }) => exitCode === exitCodes.usage)
  const message = failures.map((one) => one.message).join("\n")
  return Effect.fail(retold(first, message, isWrongCall ? exitCodes.usage : exitCodes.failed))
}

const Coded = Schema.Struct({ code: Schema.String })
const decodeCoded = Schema.decodeUnknownOption(Schema.Union([Coded, Schema.Struct({ cause: Coded })]))

/** The system's word for why something could not be written. */
export const systemCode = (error: unknown): string =>
  Option.match(decodeCoded(error), {
    onNone: () => "unknown",
    onSome: (coded) => ("code" in coded ? coded.code : coded.cause.code)
  })

/** Standard output did not take what was said: the work may be done, and what it came to is lost. */
export const outputLost = (error: unknown): Failure =>
  failure(
    `Standard output could not be written (${systemCode(error)}), so output is lost. The command may have completed.`
  )

/** Whoever stops a server did not want to wait for what it had in hand. */
export const stoppedAtOnce: Failure = failure("Stopped immediately: the next start resumes open work.")

/** A failure that says one thing more. */
export const sayingAlso = (error: Failure, sentence: string): Failure =>
  retold(error, `${error.message} ${sentence}`)

/** Says why a request to the server failed and what to do about it. */
export const requestFailure = (error: unknown, url: string): Failure => {
  if (error instanceof Failure) return error
  if (isAbsent(error)) {
    return failure(
      `No Tropism server responds at ${url}. Start one with "tropism start", or set another URL with --url.`
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
