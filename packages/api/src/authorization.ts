/**
 * Who is asking: the credential of a request and the principal it stands for.
 *
 * A bearer token or the console's cookie gives a principal; nothing in a path,
 * a body or a header besides does. The server implements the middleware.
 */
import { UserId, ProjectId } from "@tropism/domain/ids"
import { Context, Schema } from "effect"
import { HttpApiMiddleware, HttpApiSecurity, OpenApi } from "effect/http-api"
import {
  BodyTooLarge,
  Conflict,
  ForeignPage,
  MalformedRequest,
  InvalidInput,
  NotFound,
  ServerFault,
  TooManyRequests,
  Unauthorized,
  Unavailable
} from "./problems.ts"

export const Role = Schema.Literals(["viewer", "editor", "reviewer", "admin"])
export type Role = typeof Role.Type

const rank: Readonly<Record<Role, number>> = { viewer: 0, editor: 1, reviewer: 2, admin: 3 }

/** Whether a role may do what another may. */
export const includesRole = (role: Role, needed: Role): boolean => rank[role] >= rank[needed]

/** That of two roles which may do less. */
export const lesser = (one: Role, other: Role): Role => (includesRole(one, other) ? other : one)

export const Principal = Schema.Struct({
  userId: UserId,
  /** What the credential may do at most; in a project its member's role may allow less. */
  role: Role,
  /** The projects the credential reaches; null is every project of this server. */
  projectIds: Schema.NullOr(Schema.Array(ProjectId)),
  /** The role in each of these projects; null where it is `role` in all. */
  roles: Schema.NullOr(Schema.Record(Schema.String, Role))
}).annotate({ identifier: "Principal" })
export type Principal = typeof Principal.Type

/** The role of a principal in a project; undefined where the project is not there for them. */
export const roleIn = ({ projectIds, role, roles }: Principal, projectId: ProjectId): Role | undefined => {
  if (roles !== null) return roles[projectId]
  return projectIds === null || projectIds.includes(projectId) ? role : undefined
}

export class CurrentPrincipal extends Context.Service<CurrentPrincipal, Principal>()(
  "@tropism/api/CurrentPrincipal"
) {}

const browserSession: HttpApiSecurity.ApiKey = HttpApiSecurity.annotate(
  HttpApiSecurity.apiKey({ key: "tropism_session", in: "cookie" }),
  OpenApi.Description,
  "The session of a browser that is signed in; by https its name is `__Host-tropism_session`. What changes something has to come from a page of this server."
)

/** Turns a credential into a principal; without one every route behind it answers 401. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentPrincipal }>()(
  "@tropism/api/Authorization",
  {
    error: [Unauthorized, ForeignPage],
    security: {
      bearer: HttpApiSecurity.bearer,
      cookie: browserSession
    }
  }
) {}

/**
 * Refuses a body or a parameter that could not be kept as it was sent.
 *
 * A group names it before `Authorization`, so that nothing is read of whoever has no token.
 */
export class RequestJudgement extends HttpApiMiddleware.Service<RequestJudgement>()(
  "@tropism/api/RequestJudgement",
  {
    error: [MalformedRequest, InvalidInput, BodyTooLarge, Conflict]
  }
) {}

/** Turns a request that cannot be decoded into a problem that says where the fault lies. */
export class RequestProblems extends HttpApiMiddleware.Service<RequestProblems>()(
  "@tropism/api/RequestProblems",
  {
    error: [MalformedRequest, InvalidInput, BodyTooLarge, NotFound, TooManyRequests, ServerFault, Unavailable]
  }
) {}
