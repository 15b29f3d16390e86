/**
 * Cursors and pages: one row more is read than is shown, to know whether there are more.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import { clampLimit, type Page, type PageRequest } from "@tropism/api/page"
import type { InvalidInput } from "@tropism/api/problems"
import { Effect } from "effect"
import { invalid } from "./refusals.ts"

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** A page of rows whose ids are cursors. */
export const pageById = Effect.fn("pageById")(function* <A extends { readonly id: string }, E, R>(
  request: PageRequest,
  read: (before: string | undefined, limit: number) => Effect.Effect<ReadonlyArray<A>, E, R>
) {
  const before = yield* cursorId(request)
  return yield* paged(
    request,
    (limit) => read(before, limit),
    (item) => item.id
  )
})

/** The id that a cursor is, where ids are cursors. */
export const cursorId = ({ cursor }: PageRequest): Effect.Effect<string | undefined, InvalidInput> =>
  cursor === undefined || uuid.test(cursor) ? Effect.succeed(cursor) : badCursor

/** A page of rows whose numbers are cursors. */
export const pageByNumber = Effect.fn("pageByNumber")(function* <A, E, R>(
  request: PageRequest,
  number: (item: A) => number,
  read: (cursor: number | undefined, limit: number) => Effect.Effect<ReadonlyArray<A>, E, R>
) {
  const cursor = request.cursor === undefined ? undefined : Number(request.cursor)
  if (cursor !== undefined && !(Number.isSafeInteger(cursor) && cursor >= 0)) return yield* badCursor
  return yield* paged(
    request,
    (limit) => read(cursor, limit),
    (item) => String(number(item))
  )
})

/** A page of items whose place in the list's order is the cursor; a cursor of another order is none. */
export const pageByPlace = Effect.fn("pageByPlace")(function* <A, E, R>(
  request: PageRequest,
  places: RegExp,
  read: (
    after: string | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<{ readonly item: A; readonly place: string }>, E, R>
) {
  if (request.cursor !== undefined && !places.test(request.cursor)) return yield* badCursor
  const page = yield* paged(
    request,
    (limit) => read(request.cursor, limit),
    ({ place }) => place
  )
  return { ...page, items: page.items.map(({ item }) => item) }
})

const badCursor: Effect.Effect<never, InvalidInput> = Effect.fail(
  invalid("cursor", "The cursor is not one that a page gave as nextCursor")
)

const paged = <A, E, R>(
  request: PageRequest,
  read: (limit: number) => Effect.Effect<ReadonlyArray<A>, E, R>,
  cursorOf: (item: A) => string
): Effect.Effect<Page<A>, E, R> => {
  const limit = clampLimit(request.limit)
  return Effect.map(read(limit + 1), (rows) => {
    const items = rows.slice(0, limit)
    const last = items.at(-1)
    return { items, nextCursor: rows.length > limit && last !== undefined ? cursorOf(last) : null }
  })
}
