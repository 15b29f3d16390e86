/**
 * Answers for the members of a project.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A link signs somebody in to this project and to no other, whatever else they
 * belong to: an admin here is nobody there. The name under which the server's
 * admin acts is only the server's to give.
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal, type Principal } from "@tropism/api/authorization"
import { Conflict } from "@tropism/api/problems"
import type { UserId } from "@tropism/domain/ids"
import { Effect, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { type LastAdmin, Members } from "../database/members.ts"
import { inProject, reading, requireRole } from "./access.ts"
import { originOf } from "./origins.ts"
import { pageByPlace } from "./paging.ts"
import { invalid, keepable, orNotFound } from "./refusals.ts"
import { adminUser, Tokens } from "./tokens.ts"

const known = orNotFound("member")
const anyId = /^[^]{1,200}$/

export const membersHandlers = HttpApiBuilder.group(Api, "members", (handlers) =>
  handlers.handleAll({
    list: Effect.fn("http.members.list")(function* ({ params, query }) {
      const members = yield* Members
      const read = (after: string | undefined, limit: number) =>
        Effect.map(members.list(after, limit), (found) =>
          found.map((item) => ({ item, place: item.userId as string }))
        )
      return yield* reading(params.projectId, pageByPlace(query, anyId, read))
    }),
    add: Effect.fn("http.members.add")(function* ({ params, payload }) {
      yield* keepable(payload)
      const members = yield* Members
      return yield* inProject(params.projectId, "admin", (principal) =>
        Effect.gen(function* () {
          yield* giveName(principal, payload.userId)
          const added = yield* members.add(payload, principal.userId)
          if (added) return added
          return yield* new Conflict({
            reason: "idTaken",
            detail: `${payload.userId} is a member already: change the role instead`
          })
        })
      )
    }),
    get: Effect.fn("http.members.get")(function* ({ params }) {
      const members = yield* Members
      return yield* reading(params.projectId, known(members.get(params.userId)))
    }),
    change: Effect.fn("http.members.change")(function* ({ params, payload }) {
      const members = yield* Members
      return yield* inProject(params.projectId, "admin", ({ userId }) =>
        known(orLastAdmin(members.change(params.userId, payload.role, userId)))
      )
    }),
    remove: Effect.fn("http.members.remove")(function* ({ params }) {
      const members = yield* Members
      const { userId } = yield* CurrentPrincipal
      const isOwn = userId === params.userId
      const removed = inProject(params.projectId, isOwn ? "viewer" : "admin", (principal) =>
        Effect.gen(function* () {
          // Whoever leaves may do what the member may: a token that only reads locks nobody out.
          if (isOwn) yield* requireRole(principal, (yield* known(members.get(userId))).role)
          return yield* orLastAdmin(members.remove(params.userId))
        })
      )
      yield* known(Effect.map(removed, (done) => done || undefined))
    }),
    invite: Effect.fn("http.members.invite")(function* ({ params }) {
      const tokens = yield* Tokens
      const origin = originOf(yield* HttpServerRequest.HttpServerRequest)
      return yield* inProject(params.projectId, "admin", (principal) =>
        Effect.andThen(
          giveName(principal, params.userId),
          Effect.map(known(tokens.memberCode(params.userId)), ({ code, expiresAt }) => ({
            url: `${origin}/login?code=${Redacted.value(code)}`,
            expiresAt
          }))
        )
      )
    })
  })
)

const orLastAdmin = <A, R>(work: Effect.Effect<A, LastAdmin, R>) =>
  Effect.catchTag(work, "LastAdmin", ({ userId }) =>
    Effect.fail(
      new Conflict({
        reason: "lastAdmin",
        detail: `${userId} is the only admin of this project: make somebody else an admin first`
      })
    )
  )

/** Under the name of the server's admin acts nobody whom the server's admin has not let in. */
export const giveName = (principal: Principal, userId: UserId) =>
  userId === adminUser && principal.projectIds !== null && principal.userId !== adminUser
    ? Effect.fail(invalid("/userId", `${adminUser} is the server's own admin: take another id`))
    : Effect.void
