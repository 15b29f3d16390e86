/**
 * Whether what broke is a database that works for nobody at the moment.
 *
 */
import { PgProtocol } from "@effect/sql-pg"
import { type Cause, Effect } from "effect"
import { SqlError } from "effect/sql"
import { errorCode } from "./postgres-access.ts"

/**
 * What PostgreSQL says that starts or stops, is full, has no connection left, or takes no writes: classes 08, 53 and 57P, and 25006;
 * and 25P03, when it has broken off a transaction in which its server stood still.
 */
const awayStates = /^(?:08|53|57P|25006|25P03)/

/** A database that cannot be reached, or works for nobody at the moment, is no fault of this request and may be back for the next one; one whose answer cannot be read is there. */
export const isDatabaseAway = (defect: unknown): boolean =>
  defect instanceof SqlError.SqlError &&
  (awayStates.test(errorCode(defect) ?? "") ||
    (defect.reason._tag === "ConnectionError" && !(defect.reason.cause instanceof PgProtocol.ParseError)))

/** Whether a transaction was broken off for the sake of others as often as it may be, and wrote nothing. */
export const isContended = (defect: unknown): boolean =>
  defect instanceof SqlError.SqlError &&
  ["LockTimeoutError", "DeadlockError", "SerializationError"].includes(defect.reason._tag)

/** Whether PostgreSQL broke off what it was asked: it took too long, or somebody wanted that. */
const isBrokenOff = (defect: unknown): boolean =>
  defect instanceof SqlError.SqlError && defect.reason._tag === "StatementTimeoutError"

/** What whoever asked is told of a defect that may have passed when he asks again; undefined for any other. */
export const passingFault = (defect: unknown): string | undefined => {
  if (isDatabaseAway(defect)) return "The database does not answer: try again in a moment"
  if (isBrokenOff(defect)) return "The database broke off what it was asked: try again in a moment"
  return isContended(defect) ? heldByOthers : undefined
}

/** Whether a look at what was begun before broke by what may pass: it has begun all the same, and nobody is to begin it again. */
export const isPassing = (defect: unknown): boolean => passingFault(defect) !== undefined

export const heldByOthers =
  "Somebody else holds what this needs, and has for a while: nothing was done, try again in a moment"

/** Whether an effect ended because its database is such a one. */
export const isBrokenByAway = <E>(cause: Cause.Cause<E>): boolean =>
  cause.reasons.map(brokenBy).some(isDatabaseAway)

/** The same of a look that broke by what may pass. */
export const isBrokenInPassing = <E>(cause: Cause.Cause<E>): boolean =>
  cause.reasons.map(brokenBy).some(isPassing)

/** Fails with what `failure` makes of a database that went away, whether it is told as a failure or as a defect. */
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
