/**
 * What the doors of what has versions have in common: a user's change,
 * the version that the caller knows, and the moment of which it asks.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 */
import type { Principal, Role } from "@tropism/api/authorization"
import { direct } from "@tropism/domain/actor"
import type { Change } from "@tropism/domain/change"
import type { ProjectId } from "@tropism/domain/ids"
import type { Properties } from "@tropism/domain/json"
import { untrustedNames, type UntrustedWords } from "@tropism/domain/untrusted"
import { Effect, Result } from "effect"
import { HttpEffect, HttpServerResponse } from "effect/http"
import { CrashPoint } from "../crash-point.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { Gateway } from "../graph/gateway.ts"
import type { Applied, Author } from "../graph/recording.ts"
import type { ChangeRefused } from "../graph/refused.ts"
import { inProject } from "./access.ts"
import { changeProblem, invalid } from "./refusals.ts"

type Write<A> = Effect.Effect<A, ChangeRefused, ProjectTransaction>

/** Lets a user write, directly, in a transaction of its own. */
export const write = Effect.fn("http.write")(function* <A>(
  projectId: ProjectId,
  role: Role,
  act: (gateway: Gateway["Service"], author: Author, principal: Principal) => Write<A>
) {
  const gateway = yield* Gateway
  const done = yield* inProject(projectId, role, (principal) => {
    const author: Author = { actor: { actorType: "user", actorId: principal.userId }, cause: direct }
    return Effect.mapError(act(gateway, author, principal), changeProblem)
  })
  yield* CrashPoint.hit("graph.afterCommit")
  return done
})

/** Makes a user's change. */
export const change = (projectId: ProjectId, wanted: Change) =>
  write(projectId, "editor", (gateway, author) => gateway.apply(wanted, author))

export const objectOf = ({ entity }: Applied) =>
  entity.kind === "object"
    ? tagged(entity.object)
    : Effect.die(new Error("A change of an object answered a relationship"))

export const relationshipOf = ({ entity }: Applied) =>
  entity.kind === "relationship"
    ? tagged(entity.relationship)
    : Effect.die(new Error("A change of a relationship answered an object"))

/** Answers what has a version with it as its ETag. */
export const tagged = Effect.fnUntraced(function* <A extends { readonly version: number }>(entity: A) {
  yield* HttpEffect.appendPreResponseHandler((_request, response) =>
    Effect.succeed(HttpServerResponse.setHeader(response, "etag", `"${entity.version}"`))
  )
  return entity
})

/** The version that the caller expects, from the body, the header If-Match, or both alike; a part of a change. */
export const expectation = Effect.fnUntraced(function* (
  headers: { readonly "if-match"?: string | undefined },
  inBody?: number | null
) {
  const header = headers["if-match"]?.trim() ?? "*"
  const [, digits] = /^(?:W\/)?"?(\d{1,15})"?$/.exec(header) ?? []
  if (header !== "*" && digits === undefined)
    return yield* Effect.fail(
      invalid("if-match", `If-Match takes one version as the ETag gives it, e.g. "3", and not ${header}`)
    )
  const inHeader = digits === undefined ? undefined : Number(digits)
  if (inHeader !== undefined && typeof inBody === "number" && inHeader !== inBody)
    return yield* Effect.fail(
      invalid("/expectedVersion", `The body expects version ${inBody} and If-Match ${inHeader}: say one`)
    )
  const expectedVersion = inBody ?? inHeader
  return expectedVersion === undefined ? {} : { expectedVersion }
})

/** What of a write is untrusted, from the body; a part of a change. */
export const marksOf = Effect.fnUntraced(function* (
  words: UntrustedWords | null | undefined,
  written: Properties
) {
  const names = untrustedNames(words, written)
  if (Result.isFailure(names)) return yield* invalid(names.failure.pointer, names.failure.message)
  return names.success.length === 0 ? {} : { untrusted: names.success }
})

/** Reads an entity as it is, as a version left it or as it was at an instant. */
export const readAt = Effect.fnUntraced(function* <A, E1, R1, E2, R2, E3, R3>(
  { version, asOf }: { readonly version?: number | undefined; readonly asOf?: string | undefined },
  read: {
    readonly now: Effect.Effect<A, E1, R1>
    readonly atVersion: (version: number) => Effect.Effect<A, E2, R2>
    readonly asOf: (moment: Date) => Effect.Effect<A, E3, R3>
  }
) {
  if (version !== undefined && asOf !== undefined)
    return yield* Effect.fail(invalid("asOf", "Ask for a version or for an instant, not for both"))
  if (version !== undefined) return yield* read.atVersion(version)
  return yield* asOf === undefined ? read.now : read.asOf(new Date(asOf))
})

/** The instant of a query. */
export const momentOf = (asOf: string | undefined): Date | undefined =>
  asOf === undefined ? undefined : new Date(asOf)
