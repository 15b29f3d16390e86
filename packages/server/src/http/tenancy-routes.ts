/**
 * Endpoints for the members of a project.
 *
 * A sign-in link is valid for this project only, whatever else the member belongs to: an admin here has no rights there. Only the server's
 * admin can give out the name of the server's admin.
 */
import { Api } from "@tropism/api/api"
import {
  CurrentPrincipal,
  type Principal,
  includesRole,
  lesser,
  type Role,
  roleIn
} from "@tropism/api/authorization"
import type { Token, TokenInput } from "@tropism/api/members-api"
import { Conflict, Forbidden, Unavailable } from "@tropism/api/problems"
import type { UserId, ProjectId } from "@tropism/domain/ids"
import { findFault } from "@tropism/domain/json"
import { Effect, Redacted, Clock } from "effect"
import { HttpServerRequest } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { TodoAssistants } from "../agents/todo-assistants.ts"
import { Database } from "../database/database.ts"
import { KillSwitches } from "../runs/kill-switches.ts"
import { type LastAdmin, Members, Projects } from "../tenancy/projects.ts"
import { inProject, reading, requireRole, looking, requireServerAdmin, sees, howToGetIn } from "./access.ts"
import { CurrentCredential, Sessions } from "./authentication.ts"
import { onceOnServer } from "./idempotency.ts"
import { tokenLimits } from "./limits.ts"
import { Readiness } from "./listener.ts"
import { originOf } from "./origins.ts"
import { pageByPlace, pageById, onTag, taggedByDigest } from "./paging.ts"
import { invalid, keepable, orNotFound } from "./problems.ts"
import { adminUser, Tokens, type IssuedToken, IssuedTokens, type TokenWish } from "./tokens.ts"

const knownMember = orNotFound("member")
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
      return yield* reading(params.projectId, knownMember(members.get(params.userId)))
    }),
    change: Effect.fn("http.members.change")(function* ({ params, payload }) {
      const members = yield* Members
      return yield* inProject(params.projectId, "admin", ({ userId }) =>
        knownMember(orLastAdmin(members.change(params.userId, payload.role, userId)))
      )
    }),
    remove: Effect.fn("http.members.remove")(function* ({ params }) {
      const members = yield* Members
      const { userId } = yield* CurrentPrincipal
      const isOwn = userId === params.userId
      const removed = inProject(params.projectId, isOwn ? "viewer" : "admin", (principal) =>
        Effect.gen(function* () {
          // Leaving requires the member's own role: a read-only token cannot lock its owner out.
          if (isOwn) yield* requireRole(principal, (yield* knownMember(members.get(userId))).role)
          return yield* orLastAdmin(members.remove(params.userId))
        })
      )
      yield* knownMember(Effect.map(removed, (done) => done || undefined))
    }),
    invite: Effect.fn("http.members.invite")(function* ({ params }) {
      const tokens = yield* Tokens
      const origin = originOf(yield* HttpServerRequest.HttpServerRequest)
      return yield* inProject(params.projectId, "admin", (principal) =>
        Effect.andThen(
          giveName(principal, params.userId),
          Effect.map(knownMember(tokens.memberCode(params.userId)), ({ code, expiresAt }) => ({
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

/** Only the server's admin can add a member with the admin's name. */
const giveName = (principal: Principal, userId: UserId) =>
  userId === adminUser && principal.projectIds !== null && principal.userId !== adminUser
    ? Effect.fail(invalid("/userId", `${adminUser} is the server's own admin: take another id`))
    : Effect.void

// Endpoints for tokens, of a project's members or of the server.
//
// **Invariant**: a token never exceeds its maker: its role is at most the maker's, and it reaches only projects that both its maker and its
// member see.

const knownToken = orNotFound("token")

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
          const token = yield* knownToken(ofProject.find(whose(principal), params.tokenId))
          if (!includesRole(principal.role, token.role))
            return yield* new Forbidden({
              detail: `A token ends those that may do at most what it may: yours is ${principal.role} here, not ${token.role}`
            })
          return yield* ofProject.end(whose(principal), params.tokenId)
        })
      )
      yield* knownToken(Effect.map(ended, (done) => done || undefined))
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
      yield* knownToken(Effect.map(ofServer.end(null, params.tokenId), (done) => done || undefined))
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

/** The link signs in under the admin's name, so only the admin may create it. */
const requireAdminsName = ({ userId }: Principal): Effect.Effect<void, Forbidden> =>
  userId === adminUser
    ? Effect.void
    : Effect.fail(new Forbidden({ detail: `This is for ${adminUser}: your token is ${userId}'s` }))

/** The answer to the maker of a token; a repeat under the same key gets the stored one. */
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

/** The user whose tokens a principal may list and revoke; null is all users. */
const whose = ({ role, userId }: Principal): UserId | null => (role === "admin" ? null : userId)

const shownTo =
  (principal: Principal) =>
  (token: Token): Token => ({ ...token, projectIds: token.projectIds.filter((id) => sees(principal, id)) })

const judgeEnd = Effect.fnUntraced(function* (expiresAt: string | null) {
  if (expiresAt !== null && Date.parse(expiresAt) <= (yield* Clock.currentTimeMillis))
    return yield* invalid("/expiresAt", "This instant is over: give one that is to come")
  return expiresAt
})

/** Checks the token to be made; `principal` is the caller in this project. */
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

// Endpoints for a user's browser sessions.

export const sessionsHandlers = HttpApiBuilder.group(Api, "sessions", (handlers) =>
  handlers.handleAll({
    list: Effect.fn("http.sessions.list")(function* ({ query }) {
      const sessions = yield* Sessions
      const credential = yield* CurrentCredential
      return yield* pageById(query, (before, limit) => sessions.list(credential, before, limit))
    }),
    endOthers: Effect.fn("http.sessions.endOthers")(function* () {
      const sessions = yield* Sessions
      return { ended: yield* sessions.endOthers(yield* CurrentCredential) }
    }),
    end: Effect.fn("http.sessions.end")(function* ({ params }) {
      const sessions = yield* Sessions
      const ended = sessions.end(yield* CurrentCredential, params.sessionId)
      yield* orNotFound("session")(Effect.map(ended, (done) => done || undefined))
    })
  })
)

// Endpoints for the server: health, the caller, and projects.

export const version = "0.1.0"

const unready = {
  away: {
    reason: "databaseAway",
    detail:
      "The database does not answer in time, or everything that this server may ask it at once is being asked"
  },
  full: {
    reason: "databaseFull",
    detail:
      "The database has no connection left for this server: others hold them. Let them hold fewer, or let the database take more"
  },
  readOnly: {
    reason: "databaseReadOnly",
    detail: "The database takes nothing that is written: it is a replica, or was set to read only"
  }
} as const

export const systemHandlers = HttpApiBuilder.group(Api, "system", (handlers) =>
  handlers.handleAll({
    health: () => Effect.succeed({ status: "ok" as const, version }),
    ready: Effect.fn("http.ready")(function* () {
      const { look } = yield* Readiness
      const unfit = yield* look
      if (unfit !== undefined) return yield* new Unavailable(unfit)
      const database = yield* Database
      const seen = yield* database.ping
      if (seen !== "writable") return yield* new Unavailable(unready[seen])
      return { status: "ok" as const, version }
    })
  })
)

export const projectsHandlers = HttpApiBuilder.group(Api, "projects", (handlers) =>
  handlers.handleAll({
    me: Effect.fn("http.projects.me")(function* () {
      const principal = yield* CurrentPrincipal
      const advice = howToGetIn(principal)
      return advice === undefined ? principal : { ...principal, advice }
    }),
    list: Effect.fn("http.projects.list")(function* ({ query }) {
      const projects = yield* Projects
      const { projectIds } = yield* CurrentPrincipal
      return yield* pageById(query, (before, limit) => projects.list(projectIds, before, limit))
    }),
    create: Effect.fn("http.projects.create")(function* ({ payload }) {
      const principal = yield* CurrentPrincipal
      yield* requireServerAdmin(principal)
      const fault = findFault(payload.name)
      if (fault) return yield* invalid("/name", fault.message)
      const { seed } = yield* TodoAssistants
      const projects = yield* Projects
      return yield* onceOnServer(principal, projects.create(payload.name, principal.userId, seed))
    }),
    get: Effect.fn("http.projects.get")(function* ({ params }) {
      const projects = yield* Projects
      const switches = yield* KillSwitches
      return yield* reading(
        params.projectId,
        Effect.gen(function* () {
          const project = yield* orNotFound("project")(projects.find)
          return { ...project, stopped: (yield* switches.find) ?? null }
        })
      )
    }),
    rename: Effect.fn("http.projects.rename")(function* ({ params, payload }) {
      const fault = findFault(payload.name)
      if (fault) return yield* invalid("/name", fault.message)
      const projects = yield* Projects
      return yield* inProject(params.projectId, "admin", () =>
        orNotFound("project")(projects.rename(payload.name))
      )
    }),
    settings: Effect.fn("http.projects.settings")(function* ({ params }) {
      const projects = yield* Projects
      return yield* Effect.flatMap(reading(params.projectId, projects.settings), taggedByDigest)
    }),
    changeSettings: Effect.fn("http.projects.changeSettings")(function* ({ params, headers, payload }) {
      const projects = yield* Projects
      const changed = inProject(params.projectId, "admin", () =>
        onTag(headers, projects.holdSettings, projects.changeSettings(payload))
      )
      return yield* Effect.flatMap(changed, taggedByDigest)
    })
  })
)
