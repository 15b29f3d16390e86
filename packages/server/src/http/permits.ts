/**
 * By what somebody is told what comes after the request was judged: looked at again twice a minute.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * Whoever watches a log, waits for an answer, sends a file or reads a project or a
 * conversation attends here, and is cut off at the next look once the permit holds no more. A
 * permit of many is looked at once for all of them.
 */
import { CurrentPrincipal, includesRole, type Principal, roleIn } from "@tropism/api/authorization"
import type { ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import { digestOf } from "../task/digest.ts"
import { CurrentCredential } from "./authorization.ts"
import { streamLimits } from "./stream-limits.ts"
import { Tokens } from "./tokens.ts"

/** By what somebody may be told something. */
export interface Permit {
  /** The same for all who may by the same. */
  readonly key: string
  readonly holds: Effect.Effect<boolean>
}

interface Attendant {
  readonly permit: Permit
  readonly cut: () => void
}

export class Permits extends Context.Service<
  Permits,
  {
    /** Cuts somebody off whose permit holds no more, until the scope ends. */
    readonly attend: (permit: Permit, cut: () => void) => Effect.Effect<void, never, Scope.Scope>
    /** Done once the permit holds no more. */
    readonly lost: (permit: Permit) => Effect.Effect<void>
  }
>()("@tropism/server/http/Permits") {
  static readonly layer = Layer.effect(
    Permits,
    Effect.gen(function* () {
      const attendants = new Set<Attendant>()
      const enter = (attendant: Attendant) =>
        Effect.sync(() => {
          attendants.add(attendant)
          return attendant
        })
      const leave = (attendant: Attendant) => Effect.sync(() => void attendants.delete(attendant))

      yield* Effect.forkScoped(
        Effect.forever(
          Effect.delay(
            Effect.suspend(() => dismiss([...attendants])),
            streamLimits.permitIntervalMs
          )
        )
      )

      return Permits.of({
        attend: (permit, cut) => Effect.asVoid(Effect.acquireRelease(enter({ permit, cut }), leave)),
        lost: (permit) =>
          Effect.callback((resume) => {
            const attendant: Attendant = { permit, cut: () => resume(leave(attendant)) }
            attendants.add(attendant)
            return leave(attendant)
          })
      })
    })
  )
}

/** Cuts off those who may be told nothing more; each permit is looked at once. */
const dismiss = Effect.fnUntraced(function* (attendants: ReadonlyArray<Attendant>) {
  const verdicts = new Map<string, boolean>()
  for (const { cut, permit } of attendants) {
    // A database that is away says nothing of anybody's permit.
    const holds =
      verdicts.get(permit.key) ?? (yield* Effect.catchDefect(permit.holds, () => Effect.succeed(true)))
    verdicts.set(permit.key, holds)
    if (!holds) cut()
  }
})

/** That the request's credential is known still, and may what `what` names. */
const permitFor = Effect.fnUntraced(function* (what: string, may: (principal: Principal) => boolean) {
  const tokens = yield* Tokens
  const credential = yield* CurrentCredential
  const permit: Permit = {
    key: `${what} ${yield* digestOf(Redacted.value(credential))}`,
    holds: Effect.map(tokens.find(credential), (principal) => principal !== undefined && may(principal))
  }
  return permit
})

/** That the request's credential is known still, and may in the project what it might when it came. */
export const currentPermit = Effect.fnUntraced(function* (projectId: ProjectId) {
  const role = roleIn(yield* CurrentPrincipal, projectId)
  return yield* permitFor(`${projectId} ${role}`, (principal) => roleIn(principal, projectId) === role)
})

/** Done once the request's credential may in the project no more what it might when it came. */
export const currentLoss = Effect.fnUntraced(function* (projectId: ProjectId) {
  const { lost } = yield* Permits
  return lost(yield* currentPermit(projectId))
})

/** Done once the request's credential is no more one of the server's admin. */
export const currentServerLoss = Effect.gen(function* () {
  const { lost } = yield* Permits
  return lost(
    yield* permitFor("server", ({ projectIds, role }) => projectIds === null && includesRole(role, "admin"))
  )
})
