/**
 * Many things to do, with a few hands: the server has something else to do at each moment, and never too much.
 */

/** Requests that are under way at once. */
const handCount = 8

/** Does something for each item, in their order, a few at a time, until the time is up; answers for how many. */
export const inTurns = async <A>(
  items: ReadonlyArray<A>,
  untilMs: number,
  act: (item: A, index: number) => Promise<void>
): Promise<number> => {
  let next = 0
  const hand = async () => {
    while (next < items.length && performance.now() < untilMs) {
      const index = next++
      await act(items[index] as A, index)
    }
  }
  await Promise.all(Array.from({ length: handCount }, hand))
  return next
}
