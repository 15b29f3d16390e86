/**
 * Cursors and pages: one row more is read than is shown, to know whether there are more.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A cursor is a place in a list and the mark of that list: in another one the
 * same place would show other rows without a word, so there it is refused.
 */
import { createHash } from "node:crypto"
import { clampLimit, type Page, type PageRequest } from "@tropism/api/page"
import type { InvalidInput } from "@tropism/api/problems"
import { Effect, Option } from "effect"
import { HttpServerRequest } from "effect/http"
import { invalid } from "./refusals.ts"

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** A page of rows whose ids are cursors. */
export const pageById = Effect.fn("pageById")(function* <A extends { readonly id: string }, E, R>(
  request: PageRequest,
  read: (before: string | undefined, limit: number) => Effect.Effect<ReadonlyArray<A>, E, R>
) {
  const mark = yield* markOf(request)
  const before = yield* cursorId(request, mark)
  return yield* paged(
    request,
    mark,
    (limit) => read(before, limit),
    (item) => item.id
  )
})

/** The id that a cursor of the marked list is, where ids are its places. */
export const cursorId = (
  { cursor }: PageRequest,
  mark: string
): Effect.Effect<string | undefined, InvalidInput> =>
  Effect.flatMap(placeIn(cursor, mark), (place) =>
    place === undefined || uuid.test(place) ? Effect.succeed(place) : badCursor
  )

/** What tells a list from all others: its address and its order, or what it is called where it has none of its own. */
export const markOf = ({ list }: PageRequest): Effect.Effect<string> =>
  Effect.map(Effect.serviceOption(HttpServerRequest.HttpServerRequest), (asked) => {
    const name = list ?? Option.match(asked, { onNone: () => "", onSome: ({ url }) => nameAt(url) })
    return createHash("sha256").update(name).digest("hex").slice(0, markChars)
  })

/** Filters may stay what they like: they leave rows away and move none. */
const nameAt = (url: string): string => {
  const { pathname, searchParams } = new URL(url, "http://server")
  const path = pathname.toLowerCase().replace(/\/+$/, "")
  return `${path} ${searchParams.get("order") ?? ""} ${searchParams.get("sort") ?? ""}`
}

const markChars = 8

/** A place as a cursor of the marked list. */
export const cursorAt = (place: string, mark: string): string => `${place}~${mark}`

const placeIn = (cursor: string | undefined, mark: string): Effect.Effect<string | undefined, InvalidInput> =>
  cursor === undefined
    ? Effect.succeed(undefined)
    : cursor.endsWith(`~${mark}`)
      ? Effect.succeed(cursor.slice(0, -mark.length - 1))
      : badCursor

/** A page of rows whose numbers are their places; a number alone is a place that the caller knows by itself. */
export const pageByNumber = Effect.fn("pageByNumber")(function* <A, E, R>(
  request: PageRequest,
  number: (item: A) => number,
  read: (cursor: number | undefined, limit: number) => Effect.Effect<ReadonlyArray<A>, E, R>
) {
  const mark = yield* markOf(request)
  const place = /^\d+$/.test(request.cursor ?? "") ? request.cursor : yield* placeIn(request.cursor, mark)
  const cursor = place === undefined ? undefined : Number(place)
  if (cursor !== undefined && !(Number.isSafeInteger(cursor) && cursor >= 0)) return yield* badCursor
  return yield* paged(
    request,
    mark,
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
  const mark = yield* markOf(request)
  const after = yield* placeIn(request.cursor, mark)
  if (after !== undefined && !places.test(after)) return yield* badCursor
  const page = yield* paged(
    request,
    mark,
    (limit) => read(after, limit),
    ({ place }) => place
  )
  return { ...page, items: page.items.map(({ item }) => item) }
})

const badCursor: Effect.Effect<never, InvalidInput> = Effect.fail(
  invalid("cursor", "The cursor is not one that a page of this list gave as nextCursor")
)

const paged = <A, E, R>(
  request: PageRequest,
  mark: string,
  read: (limit: number) => Effect.Effect<ReadonlyArray<A>, E, R>,
  placeOf: (item: A) => string
): Effect.Effect<Page<A>, E, R> => {
  const limit = clampLimit(request.limit)
  return Effect.map(read(limit + 1), (rows) => {
    const items = rows.slice(0, limit)
    const last = items.at(-1)
    return {
      items,
      nextCursor: rows.length > limit && last !== undefined ? cursorAt(placeOf(last), mark) : null
    }
  })
}
