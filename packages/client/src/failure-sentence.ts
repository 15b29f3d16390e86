/**
 * Says in one sentence why a request failed, whatever way it failed in.
 *
 * It tells what the server said and where in the request the fault lies. What
 * to do about it depends on the program, so the caller adds that.
 */
import { InputFault } from "@tropism/api/problems"
import { placeText } from "@tropism/domain/property-filter"
import { schemaFaults } from "@tropism/domain/schema-faults"
import { Option, Predicate, Schema } from "effect"
import { HttpClientError } from "effect/http"
import { AnswerUnreadable } from "./client.ts"
import { FeedLost, FeedRefused, FeedUnreadable } from "./feed.ts"
import { retryAfterMs } from "./retrying.ts"
import { isNeverMade, isUnanswered, mayBeDone } from "./unanswered.ts"

/** Problem details as any server of this kind sends them (RFC 9457). */
const Problem = Schema.Struct({
  type: Schema.optional(Schema.String),
  status: Schema.Int,
  title: Schema.String,
  detail: Schema.optional(Schema.String),
  /** Of a conflict: which. */
  reason: Schema.optional(Schema.String),
  errors: Schema.optional(Schema.Array(InputFault))
})

const decodeProblem = Schema.decodeUnknownOption(Problem)
const decodeProblemText = Schema.decodeUnknownOption(Schema.fromJsonString(Problem))

const decodeAsking = Schema.decodeUnknownOption(Schema.Struct({ retryAfterSeconds: Schema.Int }))

/** Whether no server answered: none is there, or the connection broke. */
export const isUnreachable = (error: unknown): boolean => error instanceof FeedLost || isUnanswered(error)

/** Whether no server is there. */
export const isAbsent = (error: unknown): boolean => error instanceof FeedLost || isNeverMade(error)

/** The HTTP status of the answer, if there was one. */
export const statusOf = (error: unknown): number | undefined => {
  if (error instanceof FeedRefused) return error.status
  if (HttpClientError.isHttpClientError(error)) return error.response?.status
  return Option.getOrUndefined(Option.map(decodeProblem(error), (problem) => problem.status))
}

/** How long the server asks to be left alone, if it says so. */
export const pauseAskedMsOf = (error: unknown): number | undefined => {
  if (HttpClientError.isHttpClientError(error)) return error.response && retryAfterMs(error.response)
  const asked = Option.map(decodeAsking(error), ({ retryAfterSeconds }) => retryAfterSeconds * 1_000)
  return Option.getOrUndefined(asked)
}

/** The problem document that a server answered, if it was one. */
export const problemOf = (error: unknown): Option.Option<typeof Problem.Type> =>
  error instanceof FeedRefused ? decodeProblemText(error.answer) : decodeProblem(error)

export const failureSentence = (error: unknown): string => {
  if (isAbsent(error)) return "No server answers there."
  if (isUnreachable(error))
    return `The connection to the server broke before it answered.${mayBeDone(error) ? " What was asked for may have been done all the same: look before you ask again." : ""}`
  if (error instanceof FeedUnreadable)
    return `The server sent an event that this version does not understand: ${error.reason}`
  const problem = problemOf(error)
  if (Option.isSome(problem)) return problemSentence(problem.value)
  const status = statusOf(error)
  if (status !== undefined && status >= 400) return `The server answered with status ${status}.`
  if (error instanceof AnswerUnreadable)
    return `The server's answer is not what this version understands: ${firstLine(error.reason)}`
  if (Schema.isSchemaError(error)) return `This cannot be sent: ${faultsText(schemaFaults(error.issue))}.`
  return Predicate.hasProperty(error, "message")
    ? firstLine(String(error.message))
    : "The request failed for an unknown reason."
}

const problemSentence = (problem: typeof Problem.Type): string => {
  const faults = problem.errors ?? []
  if (faults.length === 0) return ended(problem.detail ?? problem.title)
  return ended(faultsText(faults))
}

const faultsText = (faults: ReadonlyArray<InputFault>): string => faults.map(faultText).join("; ")

/** What is wrong and where; whoever reads it wrote no JSON pointer. */
export const faultText = ({ message, pointer }: InputFault): string =>
  pointer === "" ? message : `${placeText(pointer)}: ${message}`

const ended = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)

const firstLine = (text: string): string => text.split("\n", 1)[0] ?? ""
