/**
 * What the doors of the graph have in common: a user's change, what of it is
 * untrusted, and the moment of which somebody asks.
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
import { CrashPoint } from "../crash-point.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { Gateway } from "../graph/gateway.ts"
import { Moments } from "../graph/moments.ts"
import type { Applied, Author } from "../graph/recording.ts"
import type { ChangeRefused } from "../graph/refused.ts"
import { inProject, permitted } from "./access.ts"
import { tagged } from "./conditions.ts"
import { changeProblem, invalid } from "./refusals.ts"
import { CurrentKey } from "./request-keys.ts"

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

/** Makes a user's change: in a batch with those of others, or in a transaction of its own where it has a key or the batch leaves it out. */
export const change = Effect.fn("http.change")(function* (projectId: ProjectId, wanted: Change) {
  const { submit } = yield* Gateway
  if ((yield* CurrentKey) === undefined) {
    const { userId } = yield* permitted(projectId, "editor")
    const done = yield* Effect.mapError(submit(projectId, wanted, userId), changeProblem)
    if (done !== undefined) return yield* Effect.as(CrashPoint.hit("graph.afterCommit"), done)
  }
  return yield* write(projectId, "editor", (gateway, author) => gateway.apply(wanted, author))
})

export const objectOf = ({ entity }: Applied) =>
  entity.kind === "object"
    ? tagged(entity.object)
    : Effect.die(new Error("A change of an object answered a relationship"))

export const relationshipOf = ({ entity }: Applied) =>
  entity.kind === "relationship"
    ? tagged(entity.relationship)
    : Effect.die(new Error("A change of a relationship answered an object"))

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
  const moment = yield* momentOf(asOf)
  return yield* moment === undefined ? read.now : read.asOf(moment)
})

/** The instant of a query; one that is still to come is refused, for nobody knows the graph as it will be. */
export const momentOf = Effect.fnUntraced(function* (asOf: string | undefined) {
  if (asOf === undefined) return undefined
  const moment = new Date(asOf)
  const moments = yield* Moments
  const now = yield* moments.now
  if (moment <= now) return moment
  return yield* invalid(
    "asOf",
    `This instant is still to come: ask for one until now, ${now.toISOString()}, or name none to read what is now`
  )
})
