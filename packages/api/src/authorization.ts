/**
 * Who is asking: the credential of a request and the principal it stands for.
 *
 * A bearer token or the console's cookie gives a principal; nothing in a path,
 * a body or a header besides does. The server implements the middleware.
 */
import { UserId, ProjectId } from "@tropism/domain/ids"
import { Context, Schema } from "effect"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import {
  BodyTooLarge,
  MalformedRequest,
  InvalidInput,
  NotFound,
  ServerFault,
  Unauthorized,
  Unavailable
} from "./problems.ts"

export const Role = Schema.Literals(["viewer", "editor", "reviewer", "admin"])
export type Role = typeof Role.Type

const rank: Readonly<Record<Role, number>> = { viewer: 0, editor: 1, reviewer: 2, admin: 3 }

/** Whether a role may do what another may. */
export const includesRole = (role: Role, needed: Role): boolean => rank[role] >= rank[needed]

export const Principal = Schema.Struct({
  userId: UserId,
  role: Role,
  /** The projects the credential reaches; null is every project of this server. */
  projectIds: Schema.NullOr(Schema.Array(ProjectId))
}).annotate({ identifier: "Principal" })
export type Principal = typeof Principal.Type

export class CurrentPrincipal extends Context.Service<CurrentPrincipal, Principal>()(
  "@tropism/api/CurrentPrincipal"
) {}

/** Turns a credential into a principal; without one every route behind it answers 401. */
export class Authorization extends HttpApiMiddleware.Service<Authorization, { provides: CurrentPrincipal }>()(
  "@tropism/api/Authorization",
  {
    error: [Unauthorized],
    security: {
      bearer: HttpApiSecurity.bearer,
      cookie: HttpApiSecurity.apiKey({ key: "tropism_session", in: "cookie" })
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
    error: [MalformedRequest, InvalidInput, BodyTooLarge]
  }
) {}

/** Turns a request that cannot be decoded into a problem that says where the fault lies. */
export class RequestProblems extends HttpApiMiddleware.Service<RequestProblems>()(
  "@tropism/api/RequestProblems",
  {
    error: [MalformedRequest, InvalidInput, BodyTooLarge, NotFound, ServerFault, Unavailable]
  }
) {}
