/**
 * What a caller knows of a thing: told as its ETag, taken as If-None-Match, If-Match or the version in a body.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * Who reads what they know is told 304; who changes what has moved since is told 412,
 * or 409 where the body named the version. What has no version of its own
 * is known by the digest of what is told of it, which is compared under the lock
 * of the transaction that changes it.
 */
import { createHash } from "node:crypto"
import { Conflict, PreconditionFailed } from "@tropism/api/problems"
import type { Digest } from "@tropism/domain/attachment"
import { canonicalJson } from "@tropism/domain/json"
import { Effect } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { invalid } from "./refusals.ts"

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
