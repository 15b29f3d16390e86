/**
 * May this principal do this in this project?
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A project that is missing and one that the principal may not see give the same
 * 404. Every handler that touches a project comes through here: the transaction is
 * opened only after the question is answered.
 */
import { CurrentPrincipal, includesRole, type Principal, type Role, roleIn } from "@tropism/api/authorization"
import { Forbidden, NotFound } from "@tropism/api/problems"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect, identity } from "effect"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { CurrentKey, inPart, inTurn, keeping, once, recalled } from "./request-keys.ts"

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
