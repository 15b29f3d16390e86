/**
 * A list of the server: one by one over all its pages, or page by page.
 */
import { Effect, Option, Stream } from "effect"
import { type Asked, ask, type Line, valueOf } from "./asking.ts"
import { iterated, promised } from "./running.ts"

/** One page; `nextCursor` is null on the last. */
export interface Page<A> {
  readonly items: ReadonlyArray<A>
  readonly nextCursor: string | null
}

/** `for await` goes over all items and asks for each page when it is needed. */
export interface Listing<A> extends AsyncIterable<A> {
  /** One page: the first, or that behind a cursor. */
  readonly page: (cursor?: string | null) => Promise<Page<A>>
  /** All items, in memory. */
  readonly all: () => Promise<ReadonlyArray<A>>
}

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
