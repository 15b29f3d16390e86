/**
 * The order of texts by code point: the database's, in its collation "C".
 *
 * JavaScript orders by code unit, so to it a character of two units comes before
 * U+E000 and what follows. Names that both sides put in order must be in one.
 */

/** Negative, zero or positive, as `toSorted` asks. */
export const byCodePoint = (a: string, b: string): number => {
  const length = Math.min(a.length, b.length)
  for (let index = 0; index < length; index++) {
    const difference = rankOf(a.charCodeAt(index)) - rankOf(b.charCodeAt(index))
    if (difference !== 0) return difference
  }
  return a.length - b.length
}

/** Where a code unit stands when the halves of pairs, U+D800 to U+DFFF, come last. */
const rankOf = (unit: number): number =>
  unit < 0xd8_00 ? unit : unit < 0xe0_00 ? unit + 0x20_00 : unit - 0x08_00
