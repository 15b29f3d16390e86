/**
 * May this principal do this in this project?
 *
 * A project that is missing and one that the principal may not see give the same
 * 404. Every handler that touches a project comes through here: the transaction is
 * opened only after the question is answered.
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

/** What a role must be at least to do something. */
export const requireRole = (principal: Principal, role: Role): Effect.Effect<void, Forbidden> =>
  includesRole(principal.role, role)
    ? Effect.void
    : Effect.fail(new Forbidden({ detail: `This needs the role ${role}; yours is ${principal.role}` }))

export const noProject = () => new NotFound({ detail: "There is no such project" })

/** What somebody does who is nobody's member yet; undefined for everybody else. */
export const howToGetIn = ({ projectIds, userId }: Principal): string | undefined =>
  projectIds?.length === 0
    ? `You are not a member of any project yet: ask an admin of one to add the user id ${userId} under its members`
    : undefined

/**
 * Does work in one transaction of a project that the principal may see, with a role that is enough.
 *
 * **Details** Of a request that has an Idempotency-Key it is done once, and what comes of it is kept as JSON: so a request
 * comes here once, or in parts that have names (`inPart`). What only looks comes through `looking` or `reading`.
 */
export const inProject = <A, E, R>(
  projectId: ProjectId,
  role: Role,
  work: (principal: Principal) => Effect.Effect<A, E, R>
) => inTurn(looking(projectId, role, (principal) => once(principal, work(principal))))

/** Answers what the request came to before; else does what reaches outside a transaction before its work is kept. */
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
 * Keeps an answer that was made behind the request's work, so that every repeat is told the same.
 *
 * **Details** Nothing is asked for a request without a key: its role was judged with its work, and it is told the answer whatever
 * the database does by then.
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

/** How the database is asked for what came of a request before, and to keep what comes of it. */
type Asking = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>

/** The principal of the request in a project that it may see, with a role that is enough. */
export const permitted = Effect.fnUntraced(function* (projectId: ProjectId, role: Role) {
  const principal = yield* principalIn(yield* CurrentPrincipal, projectId)
  yield* requireRole(principal, role)
  return principal
})

/** Runs in one transaction of a project that the principal may see, with a role that is enough, what looks or may be done twice. */
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

/** Whether a project is there for a principal. */
export const sees = (principal: Principal, projectId: ProjectId): boolean =>
  roleIn(principal, projectId) !== undefined

/** A principal with the role that it has in a project. */
export const principalIn = (
  principal: Principal,
  projectId: ProjectId
): Effect.Effect<Principal, NotFound> => {
  const role = roleIn(principal, projectId)
  if (role !== undefined) return Effect.succeed({ ...principal, role })
  const detail = howToGetIn(principal)
  return Effect.fail(detail === undefined ? noProject() : new NotFound({ detail }))
}

/** Refuses whoever is not an admin of the server as a whole. */
export const requireServerAdmin = (principal: Principal): Effect.Effect<void, Forbidden> =>
  principal.projectIds === null
    ? requireRole(principal, "admin")
    : Effect.fail(
        new Forbidden({
          detail: "This is for the server's admin: your token reaches only some of its projects"
        })
      )

// Whose a context is, asked in one place for every door that tells of one or writes into one.
//
// What stands in somebody's own context is read by them and by admins; to
// everybody else it is not there, in the words in which a missing one is told.
// Only they speak in it, so its runs work for them. Of its runs others see that
// they are there, and no word.

/** Whether a principal may read what stands in a context of this owner. */
export const mayRead = ({ role, userId }: Principal, owner: UserId | null): boolean =>
  owner === null || owner === userId || role === "admin"

/** What is there for the principal, where it has an owner. */
const readable = <A extends { readonly owner: UserId | null }, E, R>(
  found: Effect.Effect<A | undefined, E, R>
) =>
  Effect.flatMap(CurrentPrincipal, (principal) =>
    Effect.map(found, (it) => (it !== undefined && mayRead(principal, it.owner) ? it : undefined))
  )

/** A context that the principal may read. */
export const readableContext = (name: ContextName) =>
  Effect.flatMap(Contexts, (contexts) => readable(contexts.get(name))).pipe(orNotFound("context"))

/** A run of whose context the principal may read. */
export const readableRun = (id: RunId) =>
  Effect.flatMap(Runs, (runs) => readable(runs.get(id))).pipe(orNotFound("run"))

/** A context in which the principal may speak, held: nobody deletes or forgets it meanwhile. */
export const spokenContext = Effect.fnUntraced(function* (name: ContextName, isSpokenIn = false) {
  const context = yield* readableContext(name)
  yield* speaking(context.name, context.owner, isSpokenIn)
  return context
})

/** A run of a context in which the principal may speak. */
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

/** A run as the principal sees it: of somebody else's own it says no word. */
export const shownRun = (principal: Principal, run: Run): Run => {
  if (mayRead(principal, run.owner)) return run
  const { input: _input, ...trigger } = run.trigger
  return { ...run, trigger, summary: null, isSummaryTruncated: false, errorMessage: null }
}

/** A file that the principal sent, or that is in a context which it may read. */
export const readableFile = Effect.fnUntraced(function* <A, R>(
  digest: Digest,
  file: Effect.Effect<A | undefined, never, R>
) {
  const attachments = yield* Attachments
  const { role, userId } = yield* CurrentPrincipal
  const isReadable = role === "admin" || (yield* attachments.isReadable(digest, userId))
  return isReadable ? yield* file : undefined
})

// By what somebody is told what comes after the request was judged: looked at again twice a minute.
//
// Whoever watches a log, waits for an answer, sends a file or reads a project or a
// conversation attends here, and is cut off at the next look once the permit holds no more. A
// permit of many is looked at once for all of them.

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
