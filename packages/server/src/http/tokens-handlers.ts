/**
 * Answers for the tokens that people make, for a project's members or for the server.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * Nobody gives away more than they have: a token's role is at most its maker's,
 * and it reaches only projects that both its maker and its member see.
 */
import { Api } from "@tropism/api/api"
import {
  CurrentPrincipal,
  includesRole,
  lesser,
  type Principal,
  type Role,
  roleIn
} from "@tropism/api/authorization"
import type { Token, TokenInput } from "@tropism/api/members-api"
import { Conflict, Forbidden } from "@tropism/api/problems"
import type { ProjectId, UserId } from "@tropism/domain/ids"
import { Clock, Effect, Redacted } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { tokenLimits } from "./token-limits.ts"
import { CurrentCredential } from "./authorization.ts"
import { inProject, looking, reading, requireServerAdmin, sees } from "./access.ts"
import { type IssuedToken, IssuedTokens, type TokenWish } from "./issued-tokens.ts"
import { giveName } from "./members-handlers.ts"
import { originOf } from "./origins.ts"
import { pageById } from "./paging.ts"
import { onceOnServer } from "./request-keys.ts"
import { invalid, keepable, orNotFound } from "./refusals.ts"
import { adminUser, Tokens } from "./tokens.ts"

const known = orNotFound("token")

export const tokensHandlers = HttpApiBuilder.group(Api, "tokens", (handlers) =>
  handlers.handleAll({
    list: Effect.fn("http.tokens.list")(function* ({ params, query }) {
      const { ofProject } = yield* IssuedTokens
      const caller = yield* CurrentPrincipal
      const page = yield* reading(
        params.projectId,
        Effect.flatMap(CurrentPrincipal, (principal) =>
          pageById(query, (before, limit) => ofProject.list(whose(principal), before, limit))
        )
      )
      return { ...page, items: page.items.map(shownTo(caller)) }
    }),
    create: Effect.fn("http.tokens.create")(function* ({ params, payload }) {
      yield* keepable(payload)
      const { ofProject } = yield* IssuedTokens
      const caller = yield* CurrentPrincipal
      const made = yield* inProject(params.projectId, "viewer", (principal) =>
        Effect.flatMap(judge(principal, caller, params.projectId, payload), (wish) =>
          Effect.map(orTooMany(ofProject.make(wish, principal.userId)), toldOnce)
        )
      )
      return { ...shownTo(caller)(made), token: made.token }
    }),
    revoke: Effect.fn("http.tokens.revoke")(function* ({ params }) {
      const { ofProject } = yield* IssuedTokens
      const ended = looking(params.projectId, "viewer", (principal) =>
        Effect.gen(function* () {
          const token = yield* known(ofProject.find(whose(principal), params.tokenId))
          if (!includesRole(principal.role, token.role))
            return yield* new Forbidden({
              detail: `A token ends those that may do at most what it may: yours is ${principal.role} here, not ${token.role}`
            })
          return yield* ofProject.end(whose(principal), params.tokenId)
        })
      )
      yield* known(Effect.map(ended, (done) => done || undefined))
    })
  })
)

export const serverTokensHandlers = HttpApiBuilder.group(Api, "serverTokens", (handlers) =>
  handlers.handleAll({
    list: Effect.fn("http.serverTokens.list")(function* ({ query }) {
      const { ofServer } = yield* IssuedTokens
      yield* requireServerAdmin(yield* CurrentPrincipal)
      return yield* pageById(query, (before, limit) => ofServer.list(null, before, limit))
    }),
    create: Effect.fn("http.serverTokens.create")(function* ({ payload }) {
      yield* keepable(payload)
      const { ofServer } = yield* IssuedTokens
      const principal = yield* serverAdmin
      const { name, role, userId } = payload
      const making = Effect.flatMap(judgeEnd(payload.expiresAt ?? null), (expiresAt) => {
        const wish = { name, role, userId, expiresAt, projectIds: null }
        return Effect.map(orTooMany(ofServer.make(wish, principal.userId)), toldOnce)
      })
      return yield* onceOnServer(principal, making)
    }),
    revoke: Effect.fn("http.serverTokens.revoke")(function* ({ params }) {
      const { ofServer } = yield* IssuedTokens
      yield* serverAdmin
      yield* known(Effect.map(ofServer.end(null, params.tokenId), (done) => done || undefined))
    }),
    loginLink: Effect.fn("http.serverTokens.loginLink")(function* () {
      const tokens = yield* Tokens
      const origin = originOf(yield* HttpServerRequest.HttpServerRequest)
      const principal = yield* serverAdmin
      yield* requireAdminsName(principal)
      const making = Effect.gen(function* () {
        const now = yield* Clock.currentTimeMillis
        const code = yield* tokens.loginCode(yield* CurrentCredential)
        return {
          url: `${origin}/login?code=${Redacted.value(code)}`,
          expiresAt: new Date(now + tokenLimits.loginCodeMaxAgeSeconds * 1_000).toISOString()
        }
      })
      return yield* onceOnServer(principal, making)
    })
  })
)

const serverAdmin = Effect.tap(CurrentPrincipal, requireServerAdmin)

/** The link signs in under this name, so nobody else is given it. */
const requireAdminsName = ({ userId }: Principal): Effect.Effect<void, Forbidden> =>
  userId === adminUser
    ? Effect.void
    : Effect.fail(new Forbidden({ detail: `This is for ${adminUser}: your token is ${userId}'s` }))

/** What whoever made a token is told; a repeat is told from what is kept under its key. */
const toldOnce = ({ secret, token }: IssuedToken) => ({ ...token, token: Redacted.value(secret) })

const orTooMany = <R>(made: Effect.Effect<IssuedToken | undefined, never, R>) =>
  Effect.flatMap(made, (issued) =>
    issued === undefined
      ? Effect.fail(
          new Conflict({
            reason: "state",
            detail: "There are as many tokens as there may be: end some first"
          })
        )
      : Effect.succeed(issued)
  )

/** Whose tokens a principal sees and ends; null is everybody's. */
const whose = ({ role, userId }: Principal): UserId | null => (role === "admin" ? null : userId)

const shownTo =
  (principal: Principal) =>
  (token: Token): Token => ({ ...token, projectIds: token.projectIds.filter((id) => sees(principal, id)) })

const judgeEnd = Effect.fnUntraced(function* (expiresAt: string | null) {
  if (expiresAt !== null && Date.parse(expiresAt) <= (yield* Clock.currentTimeMillis))
    return yield* invalid("/expiresAt", "This instant is over: give one that is to come")
  return expiresAt
})

/** The token that somebody may make: `principal` is the caller in this project. */
const judge = Effect.fnUntraced(function* (
  principal: Principal,
  caller: Principal,
  projectId: ProjectId,
  input: TokenInput
) {
  const userId = input.userId ?? principal.userId
  const expiresAt = yield* judgeEnd(input.expiresAt ?? null)
  yield* giveName(caller, userId)
  const memberships = yield* (yield* Tokens).memberships(userId)
  const role = input.role ?? lesser(principal.role, memberships[projectId] ?? principal.role)
  const places = [
    { id: projectId, pointer: "/userId" },
    ...(input.projectIds ?? []).map((id, index) => ({ id, pointer: `/projectIds/${index}` }))
  ]
  for (const { id, pointer } of places) {
    const own = roleIn(caller, id)
    if (own === undefined) return yield* invalid(pointer, "There is no such project")
    yield* mayMake(own, caller.userId, { userId, role })
    if (memberships[id] === undefined)
      return yield* invalid(pointer, `${userId} is no member of the project: add them under members first`)
  }
  const projectIds = [...new Set(places.map(({ id }) => id))]
  return { name: input.name, userId, role, projectIds, expiresAt } satisfies TokenWish
})

const mayMake = (own: Role, by: UserId, wish: { readonly userId: UserId; readonly role: Role }) => {
  if (wish.userId !== by && own !== "admin")
    return Effect.fail(new Forbidden({ detail: "Only admins make tokens for others" }))
  return includesRole(own, wish.role)
    ? Effect.void
    : Effect.fail(
        new Forbidden({
          detail: `A token may do at most what you may: your role is ${own}, not ${wish.role}`
        })
      )
}
