/**
 * Chance that follows from a seed: the same seed always draws the same.
 *
 * Every choice of a simulation is drawn here, so a run that failed is repeated
 * by its seed alone. `fork` gives each actor a stream of its own: what one of
 * them draws more or less moves nobody else's luck.
 */
import type { Random } from "effect"

export interface Chance {
  /** At least 0 and below 1. */
  readonly next: () => number
  /** A whole number, at least 0 and below `bound`. */
  readonly below: (bound: number) => number
  /** A whole number between both, both included. */
  readonly between: (least: number, most: number) => number
  /** True once in `n` times. */
  readonly oneIn: (n: number) => boolean
  readonly pick: <A>(items: readonly [A, ...Array<A>]) => A
  /** A stream of its own, named. */
  readonly fork: (name: string) => Chance
  /** The same stream in Effect's words. */
  readonly random: (typeof Random.Random)["Service"]
}

/** The stream of a seed. */
export const chanceOf = (seed: string): Chance => {
  let state = hashOf(seed)
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (bound: number): number => Math.floor(next() * bound)
  return {
    next,
    below,
    between: (least, most) => least + below(most - least + 1),
    oneIn: (n) => below(n) === 0,
    pick: (items) => items[below(items.length)] ?? items[0],
    fork: (name) => chanceOf(`${seed}/${name}`),
    random: { nextDoubleUnsafe: next, nextIntUnsafe: () => below(Number.MAX_SAFE_INTEGER) }
  }
}

/** Spreads the letters of a seed over 32 bits. */
const hashOf = (text: string): number => {
  let hash = 2_166_136_261
  for (const letter of text) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 16_777_619)
  return hash
}
