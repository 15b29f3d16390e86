/**
 * Arrays that grow at their end, and what is made of them without a look at their beginning.
 *
 * A list that became another by `grow` is remembered as its beginning, so a fold
 * over the longer one goes on where the fold over the shorter one ended: its cost
 * follows what is new. A list of which nothing is known is folded whole, so the
 * outcome never depends on what is remembered. Lists and items are never changed.
 */

/** How a list came to be; it holds what was added and no list as a whole, so the shorter ones can go. */
interface Growth {
  readonly before: Growth | undefined
  readonly added: ReadonlyArray<unknown>
}

const growths = new WeakMap<ReadonlyArray<unknown>, Growth>()

const growthOf = (items: ReadonlyArray<unknown>): Growth => {
  const known = growths.get(items)
  if (known) return known
  const growth: Growth = { before: undefined, added: items }
  growths.set(items, growth)
  return growth
}

/** The list with more at its end; without any more, the list itself. */
export const grow = <A>(items: ReadonlyArray<A>, added: ReadonlyArray<A>): ReadonlyArray<A> => {
  if (added.length === 0) return items
  const grown = items.concat(added)
  growths.set(grown, { before: growthOf(items), added })
  return grown
}

/**
 * Makes a fold that goes on where it ended on the beginning of a list.
 *
 * **Details** What was folded is handed on from the shorter list to the longer and kept for the longest only, so a step may
 * change it in place and memory does not grow with the number of requests. Whoever asks for a shorter list again, or for
 * another that grew from it, is answered by a fold of the whole.
 *
 * **Gotchas** What is answered holds until the fold is asked again.
 */
export const foldGrown = <A, B>(start: () => B, step: (folded: B, item: A) => B) => {
  const known = new WeakMap<Growth, { readonly folded: B }>()
  return (items: ReadonlyArray<A>): B => {
    const last = growthOf(items)
    const news: Array<ReadonlyArray<unknown>> = []
    let growth: Growth | undefined = last
    let found = known.get(last)
    while (growth !== undefined && found === undefined) {
      news.push(growth.added)
      growth = growth.before
      found = growth && known.get(growth)
    }
    if (news.length === 0 && found !== undefined) return found.folded
    if (growth !== undefined) known.delete(growth)
    let folded = found === undefined ? start() : found.folded
    // A list of unknown origin may be large: no spread here.
    for (const added of news.toReversed()) for (const item of added) folded = step(folded, item as A)
    known.set(last, { folded })
    return folded
  }
}

/** Makes a map whose lists grow as the mapped ones do: each item is mapped once, and folds go on over what was mapped. */
export const mapGrown = <A, B>(map: (item: A) => B) => {
  const mappedOf = foldGrown<A, { list: ReadonlyArray<B>; readonly added: Array<B> }>(
    () => ({ list: [], added: [] }),
    (mapped, item) => {
      mapped.added.push(map(item))
      return mapped
    }
  )
  return (items: ReadonlyArray<A>): ReadonlyArray<B> => {
    const mapped = mappedOf(items)
    mapped.list = grow(mapped.list, mapped.added.splice(0))
    return mapped.list
  }
}

/**
 * Makes lists with something before them that stays the same most of the time: then the whole grows as what is behind it does.
 *
 * **Details** What stands before is given as texts, of which `make` makes items.
 */
export const behindTexts = <A>(make: (text: string) => A) => {
  const wholeOf = foldGrown<
    A,
    { texts: ReadonlyArray<string>; whole: ReadonlyArray<A>; readonly added: Array<A> }
  >(
    () => ({ texts: [], whole: [], added: [] }),
    (state, item) => {
      state.added.push(item)
      return state
    }
  )
  return (texts: ReadonlyArray<string>, items: ReadonlyArray<A>): ReadonlyArray<A> => {
    const state = wholeOf(items)
    const added = state.added.splice(0)
    const isSame =
      texts.length === state.texts.length && texts.every((text, index) => text === state.texts[index])
    state.whole = isSame ? grow(state.whole, added) : [...texts.map(make), ...items]
    state.texts = texts
    return state.whole
  }
}
