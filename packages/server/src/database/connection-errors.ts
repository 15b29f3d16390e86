/** Classifies database errors: unavailable, contended or transient. */
import { PgProtocol } from "@effect/sql-pg"
import { type Cause, Effect } from "effect"
import { SqlError } from "effect/sql"
import { errorCode } from "./postgres-access.ts"

/**
 * SQLSTATEs of a PostgreSQL that starts or stops, is full, has no connection left, or takes no writes: classes 08, 53 and 57P, and 25006;
 * and 25P03, after it aborted a transaction whose server was frozen.
 */
const awayStates = /^(?:08|53|57P|25006|25P03)/

/**
 * Whether the database is unreachable or unavailable: not the request's fault, and possibly over for the next one. A database whose answer
 * cannot be parsed is available.
 */
export const isDatabaseAway = (defect: unknown): boolean =>
  defect instanceof SqlError.SqlError &&
  (awayStates.test(errorCode(defect) ?? "") ||
    (defect.reason._tag === "ConnectionError" && !(defect.reason.cause instanceof PgProtocol.ParseError)))

/** Whether a transaction was aborted in favour of others as often as allowed, and wrote nothing. */
export const isContended = (defect: unknown): boolean =>
  defect instanceof SqlError.SqlError &&
  ["LockTimeoutError", "DeadlockError", "SerializationError"].includes(defect.reason._tag)

/** Whether PostgreSQL cancelled the statement: by a timeout, or on request. */
const isBrokenOff = (defect: unknown): boolean =>
  defect instanceof SqlError.SqlError && defect.reason._tag === "StatementTimeoutError"

/** The message for a caller about a transient defect; undefined for any other. */
export const passingFault = (defect: unknown): string | undefined => {
  if (isDatabaseAway(defect)) return "The database does not answer: try again in a moment"
  if (isBrokenOff(defect)) return "The database broke off what it was asked: try again in a moment"
  return isContended(defect) ? heldByOthers : undefined
}

/** Whether a read about work that has already begun failed transiently: the caller must not start the work again. */
export const isPassing = (defect: unknown): boolean => passingFault(defect) !== undefined

export const heldByOthers =
  "Somebody else holds what this needs, and has for a while: nothing was done, try again in a moment"

/** Whether an effect failed because the database is unavailable. */
export const isBrokenByAway = <E>(cause: Cause.Cause<E>): boolean =>
  cause.reasons.map(brokenBy).some(isDatabaseAway)

/** Whether a read failed transiently. */
export const isBrokenInPassing = <E>(cause: Cause.Cause<E>): boolean =>
  cause.reasons.map(brokenBy).some(isPassing)

/** Maps an unavailable database to `failure`, whether it arrives as a failure or as a defect. */
export const orAway =
  <E2>(failure: (sentence: string) => E2) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | E2, R> =>
    Effect.catchCause(effect, (cause): Effect.Effect<never, E | E2> => {
      const broken = cause.reasons.map(brokenBy).find(isDatabaseAway)
      return broken instanceof SqlError.SqlError
        ? Effect.fail(failure(broken.message))
        : Effect.failCause(cause)
    })

const brokenBy = <E>(reason: Cause.Reason<E>): unknown => {
  if (reason._tag === "Die") return reason.defect
  return reason._tag === "Fail" ? reason.error : undefined
}
