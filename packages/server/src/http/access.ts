/**
 * May this principal do this in this project?
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A project that is missing and one that the principal may not see give the same
 * 404. Every handler that touches a project goes through `inProject`, which
 * opens the transaction only after the question is answered.
 */
import { CurrentPrincipal, includesRole, type Principal, type Role } from "@tropism/api/authorization"
import { Forbidden, NotFound } from "@tropism/api/problems"
import type { ProjectId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Database, type ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"

/** What a role must be at least to do something. */
export const requireRole = (principal: Principal, role: Role): Effect.Effect<void, Forbidden> =>
  includesRole(principal.role, role)
    ? Effect.void
    : Effect.fail(new Forbidden({ detail: `This needs the role ${role}; yours is ${principal.role}` }))

export const noProject = () => new NotFound({ detail: "There is no such project" })

/** Runs an effect in one transaction of a project that the principal may see, with a role that is enough. */
export const inProject = Effect.fn("http.inProject")(function* <A, E, R>(
  projectId: ProjectId,
  role: Role,
  effect: (principal: Principal) => Effect.Effect<A, E, R>
) {
  const principal = yield* CurrentPrincipal
  yield* requireProject(principal, projectId)
  yield* requireRole(principal, role)
  const database = yield* Database
  const projects = yield* Projects
  const known: Effect.Effect<void, NotFound, ProjectTransaction> = Effect.flatMap(projects.find, (project) =>
    project ? Effect.void : Effect.fail(noProject())
  )
  return yield* database.inProject(projectId, Effect.andThen(known, effect(principal)))
})

/** Like `inProject`, for handlers that only read: any role is enough, and 403 cannot happen. */
export const reading = <A, E, R>(projectId: ProjectId, effect: Effect.Effect<A, E, R>) =>
  inProject(projectId, "viewer", () => effect).pipe(
    Effect.catchTag("Forbidden", () => Effect.fail(noProject()))
  )

/** Whether a project is among those that a principal may see. */
export const sees = (principal: Principal, projectId: ProjectId): boolean =>
  principal.projectIds === null || principal.projectIds.includes(projectId)

const requireProject = (principal: Principal, projectId: ProjectId): Effect.Effect<void, NotFound> =>
  sees(principal, projectId) ? Effect.void : Effect.fail(noProject())
