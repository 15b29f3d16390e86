/**
 * Cursors and pages: one row more is read than is shown, to know whether there are more.
 *
 * A cursor is a place in a list and the mark of that list: in another one the
 * same place would show other rows without a word, so there it is refused.
 */
import { createHash } from "node:crypto"
import { clampLimit, type Page, type PageRequest } from "@tropism/api/page"
import { type InvalidInput, Conflict, PreconditionFailed } from "@tropism/api/problems"
import type { Digest } from "@tropism/domain/attachment"
import { canonicalJson } from "@tropism/domain/json"
import { Effect, Option } from "effect"
import { HttpServerRequest, HttpEffect, HttpServerResponse } from "effect/http"
import { invalid } from "./problems.ts"

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

// What a caller knows of a thing: told as its ETag, taken as If-None-Match, If-Match or the version in a body.
//
// Who reads what they know is told 304; who changes what has moved since is told 412,
// or 409 where the body named the version. What has no version of its own
// is known by the digest of what is told of it, which is compared under the lock
// of the transaction that changes it.

interface Headers {
  readonly "if-match"?: string | undefined
}

/** Answers what has a version with it as its ETag. */
export const tagged = <A extends { readonly version: number }>(entity: A) =>
  withTag(`"${entity.version}"`, entity)

/** Answers with its version as its ETag what moves without a version, as an agent does that fires next at another time: so nobody is told 304. */
export const taggedLoosely = <A extends { readonly version: number }>(entity: A) =>
  withTag(`"${entity.version}"`, entity, false)

/** Answers what has no version with the digest of what is told of it as its ETag. */
export const taggedByDigest = <A extends object>(entity: A) => withTag(digestTag(entity), entity)

/** Answers a file with the digest of its bytes as its ETag. */
export const taggedFile = (digest: Digest, file: HttpServerResponse.HttpServerResponse) =>
  withTag(`"${digest}"`, file)

/** Does to a version what the caller does to the one that it knows, from If-Match, from the body, or from both alike. */
export const onVersion = Effect.fnUntraced(function* <A, E, R>(
  { "if-match": header = "*" }: Headers,
  inBody: number | null | undefined,
  act: (terms: { readonly expectedVersion?: number }) => Effect.Effect<A, E, R>
) {
  const tag = header.trim()
  const [, , digits] = /^(?:W\/)?("?)(\d{1,15})\1$/.exec(tag) ?? []
  if (tag !== "*" && digits === undefined)
    return yield* invalid(
      "if-match",
      `If-Match takes one version as the ETag gives it, e.g. "3", and not ${tag}`
    )
  const inHeader = digits === undefined ? undefined : Number(digits)
  if (inHeader !== undefined && typeof inBody === "number" && inHeader !== inBody)
    return yield* invalid(
      "/expectedVersion",
      `The body expects version ${inBody} and If-Match ${inHeader}: say one`
    )
  const expectedVersion = inHeader ?? inBody ?? undefined
  const done = act(expectedVersion === undefined ? {} : { expectedVersion })
  return yield* Effect.mapError(done, (error) =>
    inHeader !== undefined && error instanceof Conflict && error.reason === "version"
      ? new PreconditionFailed({ detail: error.detail ?? "It is at another version by now: read it again" })
      : error
  )
})

/**
 * Changes what has no version, if it is what If-Match names.
 *
 * **Details** `hold` reads it as it is told, and holds it for the rest of the transaction in which `act` changes it.
 */
export const onTag = <A, E, R, E2, R2>(
  { "if-match": header = "*" }: Headers,
  hold: Effect.Effect<object, E2, R2>,
  act: Effect.Effect<A, E, R>
): Effect.Effect<A, E | E2 | PreconditionFailed, R | R2> => {
  const expecting = Effect.flatMap(hold, (present) =>
    names(header, digestTag(present))
      ? Effect.void
      : Effect.fail(new PreconditionFailed({ detail: "It has changed since you read it: read it again" }))
  )
  return header.trim() === "*" ? act : Effect.andThen(expecting, act)
}

/** Answers with an ETag; where it stands for the whole answer, a reader who names it in If-None-Match is told 304 and no more. */
const withTag = Effect.fnUntraced(function* <A>(tag: string, entity: A, isWhole = true) {
  yield* HttpEffect.appendPreResponseHandler(({ headers, method }, response) =>
    Effect.succeed(
      HttpServerResponse.setHeader(
        isWhole && (method === "GET" || method === "HEAD") && names(headers["if-none-match"], tag)
          ? unchanged(response)
          : response,
        "etag",
        tag
      )
    )
  )
  return entity
})

/** Says that an answer is what the reader has; how long it may be kept without asking stays as it was said. */
const unchanged = ({ headers }: HttpServerResponse.HttpServerResponse) =>
  HttpServerResponse.empty({
    status: 304,
    ...(headers["cache-control"] === undefined
      ? {}
      : { headers: { "cache-control": headers["cache-control"] } })
  })

const digestTag = (entity: object): string =>
  `"${createHash("sha256").update(canonicalJson(entity)).digest("base64url")}"`

/** Whether a list of tags names one; a weak one, which a proxy makes of it, names what the strong one does. */
const names = (header: string | undefined, tag: string): boolean =>
  (header ?? "").split(",").some((one) => ["*", tag].includes(one.trim().replace(/^W\//, "")))
