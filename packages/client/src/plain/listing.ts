/**
 * A list of the server: one by one over all its pages, or page by page.
 */
import { Effect, Option, Stream } from "effect"
import { type Asked, ask, type Line, valueOf } from "./asking.ts"
import type { Listing, Page } from "./call-shapes.ts"
import { iterated, promised } from "./running.ts"

/** The list behind a call; nothing is asked before somebody reads. */
export const listingOf = <A>(
  line: Line,
  asked: Effect.Effect<Asked, Error>,
  signal?: AbortSignal
): Listing<A> => {
  const read = (cursor?: string | null): Effect.Effect<Page<A>, Error> =>
    Effect.flatMap(asked, (call) =>
      Effect.flatMap(
        ask(line, { ...call, query: cursor ? { ...call.query, cursor } : (call.query ?? {}) }),
        (response) => Effect.map(valueOf(response), (page) => page as Page<A>)
      )
    )
  const items = Stream.paginate(undefined as string | undefined, (cursor) =>
    Effect.map(read(cursor), ({ items, nextCursor }) => [items, Option.fromNullOr(nextCursor)] as const)
  )
  return {
    [Symbol.asyncIterator]: () => iterated(items, signal)[Symbol.asyncIterator](),
    page: (cursor) => promised(read(cursor), signal),
    all: () => promised(Stream.runCollect(items), signal)
  }
}
