/**
 * Reads the credential of a request and provides its principal to the handler.
 *
 * A cookie counts only for requests from our own pages (`origins.ts`), so no other site can act for a signed-in person.
 */
import { Authorization, CurrentPrincipal, type Principal, roleIn } from "@tropism/api/authorization"
import { Unauthorized } from "@tropism/api/problems"
import type { Session } from "@tropism/api/sessions-api"
import { type TokenId, ProjectId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Redacted } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie } from "../database/database.ts"
import { digestOf } from "../review/task-digest.ts"
import type { KeyHolder } from "../tenancy/idempotency-keys.ts"
import { tokenLimits } from "./limits.ts"
import { judgePage, isByHttps } from "./origins.ts"
import { Tokens } from "./tokens.ts"

/** The secret that authenticated the request, for work that goes on after the request was checked. */
export class CurrentCredential extends Context.Reference<Redacted.Redacted>(
  "@tropism/server/http/CurrentCredential",
  { defaultValue: () => Redacted.make("") }
) {}

/** The holder of the request's idempotency keys, from the credential that authenticated it. */
export class CurrentHolder extends Context.Reference<KeyHolder>("@tropism/server/http/CurrentHolder", {
  defaultValue: () => ({ id: "", secret: Redacted.make(""), isRenewed: false })
}) {}

export const layerAuthorization = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const tokens = yield* Tokens
    const principalOf = Effect.fnUntraced(function* (secret: Redacted.Redacted) {
      const principal = Redacted.value(secret) === "" ? undefined : yield* tokens.find(secret)
      return (
        principal ??
        (yield* new Unauthorized({
          detail: "Send a valid token: Authorization: Bearer …, or open the login link that the server prints"
        }))
      )
    })
    const letIn = Effect.fnUntraced(function* <A, E, R>(
      httpEffect: Effect.Effect<A, E, R>,
      credential: Redacted.Redacted,
      judge: typeof judgePage | Effect.Effect<void> = Effect.void
    ) {
      const { url } = yield* HttpServerRequest.HttpServerRequest
      // Metrics stay readable while the database cannot identify the caller.
      const own = isScrape(url) ? yield* tokens.findOwn(credential) : undefined
      const principal = own ?? (yield* principalOf(credential))
      yield* judge
      return yield* httpEffect.pipe(
        Effect.provideService(CurrentPrincipal, principalAt(principal, url)),
        Effect.provideService(CurrentCredential, credential),
        Effect.provideService(CurrentHolder, tokens.holderOf(credential))
      )
    })
    return Authorization.of({
      bearer: (httpEffect, { credential }) => letIn(httpEffect, credential),
      // A request with a token acts as the token's holder: a session cookie does not rescue an invalid token.
      cookie: (httpEffect) =>
        Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
          letIn(
            httpEffect,
            Redacted.value(bearerOf(request)) === "" ? sessionOf(request) : Redacted.make(""),
            judgePage
          )
        )
    })
  })
)

const isScrape = (url: string): boolean => /^\/metrics(?:[?#]|$)/.test(url)

/** The token after `Authorization: Bearer`; empty without one. */
export const bearerOf = ({ headers }: HttpServerRequest.HttpServerRequest): Redacted.Redacted => {
  const [scheme, token] = (headers["authorization"] ?? "").split(" ", 2)
  return Redacted.make(scheme?.toLowerCase() === "bearer" ? (token ?? "") : "")
}

// The sessions of a credential's holder.
//
// The database finds them by the credential's hash, and returns none that reaches further than the credential itself. `tokens.ts` opens and
// resolves sessions.

export class Sessions extends Context.Service<
  Sessions,
  {
    /** Sessions newest first. */
    readonly list: (
      credential: Redacted.Redacted,
      before: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<Session>>
    /** Ends one session; false when there is none. */
    readonly end: (credential: Redacted.Redacted, id: TokenId) => Effect.Effect<boolean>
    /** Ends all sessions but the credential itself and returns their number. */
    readonly endOthers: (credential: Redacted.Redacted) => Effect.Effect<number>
  }
>()("@tropism/server/http/Sessions") {
  static readonly layer = Layer.effect(
    Sessions,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const hash = (credential: Redacted.Redacted) => digestOf(Redacted.value(credential))

      const list = Effect.fn("Sessions.list")(function* (
        credential: Redacted.Redacted,
        before: string | undefined,
        limit: number
      ) {
        const rows = yield* sql<StoredSession>`
          select * from kb.list_sessions(${yield* hash(credential)}, ${before ?? null}::uuid, ${limit}::int)`
        return rows.map(toSession)
      }, orDie)

      const end = Effect.fnUntraced(function* (credential: Redacted.Redacted, id: TokenId | null) {
        const { ended } = yield* Effect.flatMap(
          sql<{ ended: number }>`select kb.end_sessions(${yield* hash(credential)}, ${id}::uuid) as ended`,
          onlyRow
        )
        return ended
      }, orDie)

      return Sessions.of({
        list,
        end: (credential, id) => Effect.map(end(credential, id), (ended) => ended > 0),
        endOthers: (credential) => end(credential, null)
      })
    })
  )
}

interface StoredSession extends Omit<Session, "createdAt" | "expiresAt" | "lastUsedAt"> {
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly lastUsedAt: Date | null
}

const toSession = (row: StoredSession): Session => ({
  ...row,
  createdAt: row.createdAt.toISOString(),
  expiresAt: row.expiresAt?.toISOString() ?? null,
  lastUsedAt: row.lastUsedAt?.toISOString() ?? null
})

// The session cookie of a signed-in browser.
//
// Scripts and other sites cannot read it. On an https server the cookie has a `__Host-` name, which browsers take from no other host, path
// or connection; no other name is accepted there.

type Request = HttpServerRequest.HttpServerRequest

const nameFor = (request: Request): string =>
  isByHttps(request) ? "__Host-tropism_session" : "tropism_session"

/** The session of the browser that sent a request; empty without one. */
export const sessionOf = (request: Request): Redacted.Redacted =>
  Redacted.make(request.cookies[nameFor(request)] ?? "")

const withCookie = (
  request: Request,
  response: HttpServerResponse.HttpServerResponse,
  value: string,
  maxAgeSeconds: number
) =>
  Effect.orDie(
    HttpServerResponse.setCookie(response, nameFor(request), value, {
      httpOnly: true,
      sameSite: "strict",
      secure: isByHttps(request),
      path: "/",
      maxAge: `${maxAgeSeconds} seconds`
    })
  )

/** Sets the session cookie on an answer. */
export const signedIn = (
  request: Request,
  session: Redacted.Redacted,
  response: HttpServerResponse.HttpServerResponse
) => withCookie(request, response, Redacted.value(session), tokenLimits.sessionMaxAgeSeconds)

/** Clears the session cookie on an answer. */
export const signedOut = (request: Request, response: HttpServerResponse.HttpServerResponse) =>
  withCookie(request, response, "", 0)

// The role of a principal at an address, for everything that reads a role afterwards.
//
// A token's own role is only an upper bound; the role in the project counts. Confusing the two would show a viewer what an admin sees.

const inPath = /^\/api\/projects\/(?<projectId>[0-9a-f-]{36})(?:[/?#]|$)/i

/**
 * A principal at an address: inside a project with its role there.
 *
 * At the root of the OpenAI endpoint a token of one project is in that project. Elsewhere the role is the token's upper bound.
 */
export const principalAt = (principal: Principal, url: string): Principal => {
  const [only, ...others] = principal.projectIds ?? []
  const atRoot = /^\/v1(?:[/?#]|$)/.test(url) && others.length === 0 ? only : undefined
  const projectId = inPath.exec(url)?.groups?.["projectId"]?.toLowerCase() ?? atRoot
  const role = projectId === undefined ? undefined : roleIn(principal, ProjectId.make(projectId))
  return role === undefined ? principal : { ...principal, role }
}
