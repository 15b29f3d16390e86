/**
 * How much of what repeats itself a tier of the tests shows (`scripts/tiers.ts`): a few cases first, all in the night.
 *
 * A part shows each kind of case; only how often is less.
 */

const tier = process.env["TROPISM_TEST_TIER"]

/** What `npm test`, `npm run test:deep` and `npm run nightly` each show. */
export const inTier = <A>(first: A, deep: A, nightly: A): A =>
  tier === "nightly" ? nightly : tier === "deep" ? deep : first

/** What the night shows, and what the other tiers do. */
export const inNight = <A>(all: A, otherwise: A): A => inTier(otherwise, otherwise, all)

/** Every n-th of many cases in the first tier, always the same ones; all of them in the others. */
export const sampled = <A>(cases: ReadonlyArray<A>, every: number): ReadonlyArray<A> => {
  const first = cases.filter((_, index) => index % every === 0)
  return inTier(first, cases, cases)
}

/** Of a matrix, row after row, one case of each row in the first tier, each time of the next column; all in the others. */
export const diagonal = <A>(cases: ReadonlyArray<A>, columns: number): ReadonlyArray<A> => {
  const first = cases.filter((_, index) => index % columns === Math.floor(index / columns) % columns)
  return inTier(first, cases, cases)
}
