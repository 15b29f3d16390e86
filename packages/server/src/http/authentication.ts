/**
 * Reads the credential of a request and puts its principal before the handler.
 *
 * A cookie is believed only from our own pages (`own-pages.ts`), so no other site
 * can act for a person who is signed in.
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

/** The secret that let a request in, for what goes on after the request was judged. */
export class CurrentCredential extends Context.Reference<Redacted.Redacted>(
  "@tropism/server/http/CurrentCredential",
  { defaultValue: () => Redacted.make("") }
) {}

/** Whose keys a request's are, by the credential that let it in. */
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
      // Whoever watches the server is told how it fares also while nobody can ask the database who that is.
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
      // Who sends a token asks as its holder: a session beside one that is not good lets nobody in.
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

// The sessions of whoever a credential is of.
//
// The database finds them by the credential's hash, and none that reaches further
// than the credential itself. They are opened and known in `tokens.ts`.

export class Sessions extends Context.Service<
  Sessions,
  {
    /** Sessions newest first. */
    readonly list: (
      credential: Redacted.Redacted,
      before: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<Session>>
    /** Ends one; false when there is none. */
    readonly end: (credential: Redacted.Redacted, id: TokenId) => Effect.Effect<boolean>
    /** Ends all but the credential itself, and answers how many. */
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

// The cookie by which a signed-in browser is known.
//
// Out of reach of scripts and of other sites. Where the server is reached by
// https the cookie has a name that browsers take from no other host, path or
// connection, and no other name is believed there.

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

/** The answer that keeps a session in the browser. */
export const signedIn = (
  request: Request,
  session: Redacted.Redacted,
  response: HttpServerResponse.HttpServerResponse
) => withCookie(request, response, Redacted.value(session), tokenLimits.sessionMaxAgeSeconds)

/** The answer that takes the session out of the browser. */
export const signedOut = (request: Request, response: HttpServerResponse.HttpServerResponse) =>
  withCookie(request, response, "", 0)

// The role with which somebody comes to an address, before anything else reads it.
//
// A token's own role is a bound only; what counts is the role in the project.
// Whoever read the one for the other would show a viewer what an admin sees.

const inPath = /^\/api\/projects\/(?<projectId>[0-9a-f-]{36})(?:[/?#]|$)/i

/**
 * A principal as it is at an address: in a project's with the role that it has there.
 *
 * **Details** At the root of OpenAI's door a token of one project is in that project. Elsewhere a role is what the token may at most.
 */
export const principalAt = (principal: Principal, url: string): Principal => {
  const [only, ...others] = principal.projectIds ?? []
  const atRoot = /^\/v1(?:[/?#]|$)/.test(url) && others.length === 0 ? only : undefined
  const projectId = inPath.exec(url)?.groups?.["projectId"]?.toLowerCase() ?? atRoot
  const role = projectId === undefined ? undefined : roleIn(principal, ProjectId.make(projectId))
  return role === undefined ? principal : { ...principal, role }
}
