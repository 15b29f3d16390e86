/**
 * How much of what repeats itself a run of the tests shows: all of it in `npm run soak`, a part in `npm test`.
 *
 * A part shows each kind of fault; only how often is less.
 */

/** Whether this is `npm run soak`, whose configuration says so. */
const isSoak = process.env["TROPISM_SOAK"] === "yes"

/** What is shown in a soak, and what otherwise. */
export const inSoak = <A>(all: A, otherwise: A): A => (isSoak ? all : otherwise)

/**
 * Every so manieth of many cases, all of them in a soak.
 *
 * **Details** Which ones is fixed; with numbers that have no divisor in common every row and column of a matrix has its turn.
 */
export const sampled = <A>(cases: ReadonlyArray<A>, every: number): ReadonlyArray<A> =>
  inSoak(
    cases,
    cases.filter((_, index) => index % every === 0)
  )
