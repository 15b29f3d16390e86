/**
 * The faults of one run, in an order that the seed decides.
 */
export type Fault = "kill" | "freeze" | "database stop" | "cut" | "silence" | "terminate" | "restart"

export interface Planned {
  readonly fault: Fault
  /** Which of the servers, from 0. */
  readonly server: number
  /** How long nothing is done before it. */
  readonly pauseMs: number
}

/** Numbers from 0 up to 1 that a seed repeats. */
export const chanceOf = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** Draws the order, the servers and the pauses. */
export const planOf = (
  seed: number,
  counts: Readonly<Record<Fault, number>>,
  servers: number
): ReadonlyArray<Planned> => {
  const chance = chanceOf(seed)
  const faults = (Object.keys(counts) as Array<Fault>).flatMap((fault) =>
    Array.from({ length: counts[fault] }, () => ({ fault, rank: chance() }))
  )
  return faults
    .toSorted((one, other) => one.rank - other.rank)
    .map(({ fault }) => ({
      fault,
      server: Math.floor(chance() * servers),
      pauseMs: 500 + Math.floor(chance() * 2_000)
    }))
}
