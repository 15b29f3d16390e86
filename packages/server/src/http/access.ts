/**
 * Authorizes the principal of a request for a project, then opens the project's transaction.
 *
 * **Invariant**: a missing project and one that the principal may not see give the same 404. Every handler that touches a project comes
 * through here; no transaction is open before authorization.
 */
import { CurrentPrincipal, includesRole, type Principal, type Role, roleIn } from "@tropism/api/authorization"
import { Forbidden, NotFound } from "@tropism/api/problems"
import type { Digest } from "@tropism/domain/attachment"
import type { ContextName } from "@tropism/domain/context-event"
import type { ProjectId, RunId, UserId } from "@tropism/domain/ids"
import type { Run } from "@tropism/domain/run"
import { Effect, identity, Context, Layer, Redacted, type Scope } from "effect"
import { BroughtContexts, Conversations } from "../chat/conversations.ts"
import { Attachments } from "../contexts/attachments.ts"
import { Contexts } from "../contexts/contexts.ts"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { digestOf } from "../review/task-digest.ts"
import { Runs } from "../runs/run-store.ts"
import { Projects } from "../tenancy/projects.ts"
import { CurrentCredential } from "./authentication.ts"
import { CurrentKey, inPart, inTurn, keeping, once, recalled } from "./idempotency.ts"
import { streamLimits } from "./limits.ts"
import { orNotFound } from "./problems.ts"
import { Tokens } from "./tokens.ts"

/** Fails with 403 unless the principal has at least this role. */
export const requireRole = (principal: Principal, role: Role): Effect.Effect<void, Forbidden> =>
  includesRole(principal.role, role)
    ? Effect.void
    : Effect.fail(new Forbidden({ detail: `This needs the role ${role}; yours is ${principal.role}` }))

export const noProject = () => new NotFound({ detail: "There is no such project" })

/** Advice for a principal who is not a member of any project yet; undefined for all others. */
export const howToGetIn = ({ projectIds, userId }: Principal): string | undefined =>
  projectIds?.length === 0
    ? `You are not a member of any project yet: ask an admin of one to add the user id ${userId} under its members`
    : undefined

/**
 * Runs an effect in one transaction of a project that the principal may see, with a sufficient role.
 *
 * A request with an Idempotency-Key runs once and its result is stored as JSON, so a handler calls this once per request, or once per named
 * part (`inPart`). Reads use `looking` or `reading`.
 */
export const inProject = <A, E, R>(
  projectId: ProjectId,
  role: Role,
  work: (principal: Principal) => Effect.Effect<A, E, R>
) => inTurn(looking(projectId, role, (principal) => once(principal, work(principal))))

/** Returns the stored result of a repeated request; otherwise runs work that leaves the transaction before its result is stored. */
export const unlessRecalled = <A, E, R>(
  projectId: ProjectId,
  role: Role,
  work: Effect.Effect<A, E, R>,
  asking: Asking = identity
) =>
  Effect.flatMap(asking(looking(projectId, role, recalled)), (found) =>
    found === undefined ? work : Effect.succeed(found as A)
  )

/**
 * Stores an answer that was made after the request's transaction, so that every repeat gets the same one.
 *
 * A request without a key skips this: its role was checked with its work, and it is answered even if the database is away.
 */
export const keepingAnswer = <A, E, R>(
  projectId: ProjectId,
  role: Role,
  part: string,
  answer: Effect.Effect<A, E, R>,
  asking: Asking = identity
) => {
  const kept = Effect.flatMap(answer, (made) =>
    asking(inTurn(looking(projectId, role, (principal) => keeping(principal, made))))
  )
  const told = unlessRecalled(projectId, role, kept, asking)
  return inPart(
    part,
    Effect.flatMap(CurrentKey, (key) => (key === undefined ? answer : told))
  )
}

/** Wraps the statements that read and store the result of a keyed request. */
type Asking = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** The principal of the request in a project that it may see, with a sufficient role. */
export const permitted = Effect.fnUntraced(function* (projectId: ProjectId, role: Role) {
  const principal = yield* principalIn(yield* CurrentPrincipal, projectId)
  yield* requireRole(principal, role)
  return principal
})

/** Runs a read, or work that may safely run twice, in one transaction of a project with a sufficient role. */
export const looking = Effect.fn("http.inProject")(function* <A, E, R>(
  projectId: ProjectId,
  role: Role,
  effect: (principal: Principal) => Effect.Effect<A, E, R>
) {
  const principal = yield* permitted(projectId, role)
  const database = yield* Database
  const projects = yield* Projects
  const known: Effect.Effect<void, NotFound, ProjectTransaction> = Effect.flatMap(projects.find, (project) =>
    project ? Effect.void : Effect.fail(noProject())
  )
  const work = Effect.provideService(effect(principal), CurrentPrincipal, principal)
  return yield* database.inProject(projectId, Effect.andThen(known, work))
})

/** Like `inProject`, for handlers that only read: any role is enough, and 403 cannot happen. */
export const reading = <A, E, R>(projectId: ProjectId, effect: Effect.Effect<A, E, R>) =>
  looking(projectId, "viewer", () => effect).pipe(
    Effect.catchTag("Forbidden", () => Effect.fail(noProject()))
  )

/** Whether the principal may see the project. */
export const sees = (principal: Principal, projectId: ProjectId): boolean =>
  roleIn(principal, projectId) !== undefined

/** A principal with its role in one project. */
export const principalIn = (
  principal: Principal,
  projectId: ProjectId
): Effect.Effect<Principal, NotFound> => {
  const role = roleIn(principal, projectId)
  if (role !== undefined) return Effect.succeed({ ...principal, role })
  const detail = howToGetIn(principal)
  return Effect.fail(detail === undefined ? noProject() : new NotFound({ detail }))
}

/** Fails with 403 unless the principal is an admin of the whole server. */
export const requireServerAdmin = (principal: Principal): Effect.Effect<void, Forbidden> =>
  principal.projectIds === null
    ? requireRole(principal, "admin")
    : Effect.fail(
        new Forbidden({
          detail: "This is for the server's admin: your token reaches only some of its projects"
        })
      )

// Ownership of contexts, checked in one place for every endpoint that reads or writes one.
//
// Only the owner and admins can read a private context; everybody else gets the answer for a missing one. Only the owner writes to it, so
// its runs work for the owner. Others see that its runs exist, without their text.

/** Whether a principal may read a context of this owner. */
export const mayRead = ({ role, userId }: Principal, owner: UserId | null): boolean =>
  owner === null || owner === userId || role === "admin"

/** Turns a value whose owner the principal may not read into a missing one. */
const readable = <A extends { readonly owner: UserId | null }, E, R>(
  found: Effect.Effect<A | undefined, E, R>
) =>
  Effect.flatMap(CurrentPrincipal, (principal) =>
    Effect.map(found, (it) => (it !== undefined && mayRead(principal, it.owner) ? it : undefined))
  )

/** A context that the principal may read. */
export const readableContext = (name: ContextName) =>
  Effect.flatMap(Contexts, (contexts) => readable(contexts.get(name))).pipe(orNotFound("context"))

/** A run whose context the principal may read. */
export const readableRun = (id: RunId) =>
  Effect.flatMap(Runs, (runs) => readable(runs.get(id))).pipe(orNotFound("run"))

/** A context that the principal may write to. Its row stays locked, so it cannot be deleted or purged meanwhile. */
export const spokenContext = Effect.fnUntraced(function* (name: ContextName, isSpokenIn = false) {
  const context = yield* readableContext(name)
  yield* speaking(context.name, context.owner, isSpokenIn)
  return context
})

/** A run of a context that the principal may write to. */
export const spokenRun = Effect.fnUntraced(function* (id: RunId) {
  const run = yield* readableRun(id)
  yield* speaking(run.contextName as ContextName, run.owner, true)
  return run
})

const speaking = Effect.fnUntraced(function* (name: ContextName, owner: UserId | null, isSpokenIn: boolean) {
  if (owner === null) return
  const { userId } = yield* CurrentPrincipal
  if (owner !== userId)
    return yield* new Forbidden({ detail: `This is a conversation of ${owner}: only they speak in it` })
  const conversations = yield* Conversations
  const held = yield* conversations.hold(name, isSpokenIn)
  if (held?.isDeleted) return yield* new NotFound({ detail: "This conversation is deleted: begin another" })
  const brought = yield* BroughtContexts
  if (held === undefined && !(yield* brought.hold(name, isSpokenIn)))
    return yield* new NotFound({ detail: "What was said here is forgotten: begin another conversation" })
})

/** A run as the principal sees it; a run of another user's private context has no text. */
export const shownRun = (principal: Principal, run: Run): Run => {
  if (mayRead(principal, run.owner)) return run
  const { input: _input, ...trigger } = run.trigger
  return { ...run, trigger, summary: null, isSummaryTruncated: false, errorMessage: null }
}

/** A file that the principal uploaded, or that is in a context it may read. */
export const readableFile = Effect.fnUntraced(function* <A, R>(
  digest: Digest,
  file: Effect.Effect<A | undefined, never, R>
) {
  const attachments = yield* Attachments
  const { role, userId } = yield* CurrentPrincipal
  const isReadable = role === "admin" || (yield* attachments.isReadable(digest, userId))
  return isReadable ? yield* file : undefined
})

// Re-checks a long-lived caller's authorization every 30 s and closes the stream when it is gone.
//
// Everyone who watches a log, waits for an answer, uploads a file or reads a project or a conversation registers here. Callers with the
// same permit share one check.

/** The authorization of a long-lived request. */
export interface Permit {
  /** Equal for all callers with the same authorization, so that one check covers them. */
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
    /** Calls `cut` when the permit is no longer valid, until the scope ends. */
    readonly attend: (permit: Permit, cut: () => void) => Effect.Effect<void, never, Scope.Scope>
    /** Completes when the permit is no longer valid. */
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

/** Closes the streams whose permit is no longer valid; each permit is checked once. */
const dismiss = Effect.fnUntraced(function* (attendants: ReadonlyArray<Attendant>) {
  const verdicts = new Map<string, boolean>()
  for (const { cut, permit } of attendants) {
    // While the database is away nothing is known about a permit, so nobody is cut off.
    const holds =
      verdicts.get(permit.key) ?? (yield* Effect.catchDefect(permit.holds, () => Effect.succeed(true)))
    verdicts.set(permit.key, holds)
    if (!holds) cut()
  }
})

/** A permit that holds while the request's credential is valid and `may` still allows it; `what` names the permission. */
const permitFor = Effect.fnUntraced(function* (what: string, may: (principal: Principal) => boolean) {
  const tokens = yield* Tokens
  const credential = yield* CurrentCredential
  const permit: Permit = {
    key: `${what} ${yield* digestOf(Redacted.value(credential))}`,
    holds: Effect.map(tokens.find(credential), (principal) => principal !== undefined && may(principal))
  }
  return permit
})

/** A permit that holds while the request's credential is valid and has at least its original access to the project. */
export const currentPermit = Effect.fnUntraced(function* (projectId: ProjectId) {
  const role = roleIn(yield* CurrentPrincipal, projectId)
  return yield* permitFor(`${projectId} ${role}`, (principal) => roleIn(principal, projectId) === role)
})

/** Completes when the request's credential loses its original access to the project. */
export const currentLoss = Effect.fnUntraced(function* (projectId: ProjectId) {
  const { lost } = yield* Permits
  return lost(yield* currentPermit(projectId))
})

/** Completes when the request's credential is no longer an admin of the server. */
export const currentServerLoss = Effect.gen(function* () {
  const { lost } = yield* Permits
  return lost(
    yield* permitFor("server", ({ projectIds, role }) => projectIds === null && includesRole(role, "admin"))
  )
})
