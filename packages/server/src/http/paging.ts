/**
 * Cursors and pages. A page reads one row more than it shows, to know whether there are more.
 *
 * A cursor is a position and the mark of its list. In another list the same position would silently select other rows, so it is refused
 * there.
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

/** A page of rows with their ids as cursors. */
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

/** The id in a cursor of the marked list, where ids are the positions. */
export const cursorId = (
  { cursor }: PageRequest,
  mark: string
): Effect.Effect<string | undefined, InvalidInput> =>
  Effect.flatMap(placeIn(cursor, mark), (place) =>
    place === undefined || uuid.test(place) ? Effect.succeed(place) : badCursor
  )

/** The mark of a list: its address and its order, or a given name where it has no address. */
export const markOf = ({ list }: PageRequest): Effect.Effect<string> =>
  Effect.map(Effect.serviceOption(HttpServerRequest.HttpServerRequest), (asked) => {
    const name = list ?? Option.match(asked, { onNone: () => "", onSome: ({ url }) => nameAt(url) })
    return createHash("sha256").update(name).digest("hex").slice(0, markChars)
  })

/** Filters may change between pages: they drop rows and reorder none. */
const nameAt = (url: string): string => {
  const { pathname, searchParams } = new URL(url, "http://server")
  const path = pathname.toLowerCase().replace(/\/+$/, "")
  return `${path} ${searchParams.get("order") ?? ""} ${searchParams.get("sort") ?? ""}`
}

const markChars = 8

/** A position as a cursor of the marked list. */
export const cursorAt = (place: string, mark: string): string => `${place}~${mark}`

const placeIn = (cursor: string | undefined, mark: string): Effect.Effect<string | undefined, InvalidInput> =>
  cursor === undefined
    ? Effect.succeed(undefined)
    : cursor.endsWith(`~${mark}`)
      ? Effect.succeed(cursor.slice(0, -mark.length - 1))
      : badCursor

/** A page of rows with their numbers as positions; a bare number is also a cursor, which callers may compute. */
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

/** A page of items whose sort key is the cursor; a cursor of another order is refused. */
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

// Versions and ETags: sent as ETag, received as If-None-Match, If-Match or the version in a body.
//
// An unchanged resource answers 304; a write on a stale one fails with 412, or with 409 where the body has the version. A resource without
// a version uses the digest of its answer, which is compared under the lock of the changing transaction.

interface Headers {
  readonly "if-match"?: string | undefined
}

/** Answers a versioned resource with its version as ETag. */
export const tagged = <A extends { readonly version: number }>(entity: A) =>
  withTag(`"${entity.version}"`, entity)

/** Adds a version as ETag where the answer also changes without the version, such as an agent's next fire time; so it never answers 304. */
export const taggedLoosely = <A extends { readonly version: number }>(entity: A) =>
  withTag(`"${entity.version}"`, entity, false)

/** Answers a resource without a version, with the digest of the answer as ETag. */
export const taggedByDigest = <A extends object>(entity: A) => withTag(digestTag(entity), entity)

/** Answers a file with the digest of its bytes as ETag. */
export const taggedFile = (digest: Digest, file: HttpServerResponse.HttpServerResponse) =>
  withTag(`"${digest}"`, file)

/** Runs a change on the version that the caller knows: from If-Match, from the body, or from both if they agree. */
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
 * Changes a resource without a version if If-Match names its current state.
 *
 * `hold` reads it as the API shows it and locks it for the rest of the transaction in which `act` changes it.
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

/** Adds an ETag; where the tag covers the whole answer, a matching If-None-Match gets 304. */
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

/** A 304 that keeps the caching headers of the answer. */
const unchanged = ({ headers }: HttpServerResponse.HttpServerResponse) =>
  HttpServerResponse.empty({
    status: 304,
    ...(headers["cache-control"] === undefined
      ? {}
      : { headers: { "cache-control": headers["cache-control"] } })
  })

const digestTag = (entity: object): string =>
  `"${createHash("sha256").update(canonicalJson(entity)).digest("base64url")}"`

/** Whether a list of tags contains one; a weak tag, which a proxy may make of it, matches its strong form. */
const names = (header: string | undefined, tag: string): boolean =>
  (header ?? "").split(",").some((one) => ["*", tag].includes(one.trim().replace(/^W\//, "")))
