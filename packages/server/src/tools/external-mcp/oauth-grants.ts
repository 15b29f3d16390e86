/**
 * Grants for foreign MCP servers: tokens stored sealed, renewed by one program at a time, and ended with a reason.
 *
 * **Invariant** A renewal is claimed in the database by the tokens' version, and only tokens of that version are
 * replaced. A crash in between leaves working tokens, or a sign-in marked as ended.
 */
import { randomUUID } from "node:crypto"
import type { McpServerId, ProjectId, UserId } from "@tropism/domain/ids"
import { type McpServerConfig, type McpTransport, oauthOf, signedOutText } from "@tropism/domain/mcp-server"
import { Context, Effect, Fiber, Layer, Queue, Redacted, Schema, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../../database/database.ts"
import { Sealing } from "../../database/sealing.ts"
import { Notifier } from "../../outbox/notifier.ts"
import { type ExternalFault, signedOut, unmade } from "./faults.ts"
import { externalLimits } from "./limits.ts"
import { AuthorizationServer, type Given, OAuthClient, renew, type SignInFault } from "./oauth-protocol.ts"
import { revealSecrets } from "./secrets.ts"

/** The server and member of a connection; each definition, and each member who signs in, has its own. */
export interface Whom {
  readonly id: McpServerId
  readonly projectId: ProjectId
  readonly config: Pick<McpServerConfig, "name" | "transport" | "authorization">
  /** The member the run works for; null for none. */
  readonly member: UserId | null
}

/** A token for one request. */
export interface BearerToken {
  readonly value: Redacted.Redacted
  readonly version: number
}

/** The tokens of one sign-in, for one connection. */
export interface Bearer {
  /** The token for the next request, renewed when it is about to expire. */
  readonly token: Effect.Effect<BearerToken, ExternalFault>
  /** A new token in place of a refused one. */
  readonly renewed: (refused: BearerToken) => Effect.Effect<BearerToken, ExternalFault>
  /** Stores the scopes that the server requests, for the next sign-in. */
  readonly wantScopes: (scopes: string) => Effect.Effect<void>
}

/** What a connection needs: nothing, or the tokens of a sign-in. */
export interface Access {
  /** Changes with each sign-in. */
  readonly key: string
  readonly bearer: Bearer | undefined
}

const KeptTokens = Schema.Struct({
  accessToken: Schema.String,
  refreshToken: Schema.optionalKey(Schema.String),
  client: OAuthClient,
  server: AuthorizationServer,
  resource: Schema.String
})
export type KeptTokens = typeof KeptTokens.Type

const textOf = Schema.encodeEffect(Schema.fromJsonString(KeptTokens))
const tokensOf = Schema.decodeUnknownEffect(Schema.fromJsonString(KeptTokens))

type HttpTransport = Extract<McpTransport, { readonly type: "http" }>

/** The owner of a grant; the empty text for all runs. */
export interface Holder {
  readonly projectId: ProjectId
  readonly serverId: McpServerId
  readonly userId: string
  readonly transport: HttpTransport
}

interface GrantRow {
  readonly id: string
  readonly version: number
  readonly sealed: string | null
  readonly detail: string | null
  readonly isExpired: boolean
  readonly isDue: boolean
}

interface Grant extends GrantRow {
  readonly tokens: KeptTokens
}

/** The sealing context: a grant opens only for the address it was given for. */
const placeOf = (projectId: string, serverId: string, userId: string, url: string): string =>
  `mcp grant ${projectId} ${serverId} ${userId} ${url}`

export class OAuthGrants extends Context.Service<
  OAuthGrants,
  {
    /** Returns the access to a server; fails when a person has to sign in first. */
    readonly accessOf: (whom: Whom) => Effect.Effect<Access, ExternalFault>
    /** Replaces the tokens by those of a new sign-in; undefined when this program cannot seal. */
    readonly keep: (
      holder: Holder,
      by: UserId,
      tokens: KeptTokens,
      given: Given
    ) => Effect.Effect<"kept" | "unsealable", never, ProjectTransaction>
    /** Deletes a sign-in's tokens and returns them. */
    readonly remove: (holder: Holder) => Effect.Effect<KeptTokens | undefined, never, ProjectTransaction>
    /** Scopes that the server has requested since the last sign-in. */
    readonly wantedScopes: (holder: Holder) => Effect.Effect<string | undefined>
    /** Reseals with the current key what is sealed with an older one. */
    readonly sealAgain: Effect.Effect<void>
  }
>()("@tropism/server/tool/OAuthGrants") {
  static readonly layer = Layer.effect(
    OAuthGrants,
    Effect.gen(function* () {
      const rows = yield* makeGrantRows
      const { renewed } = yield* makeRenewals(rows)

      /** The token for a request of a connection opened with this grant. */
      const tokenFor = Effect.fnUntraced(function* (whom: Whom, holder: Holder, grantId: string) {
        const grant = yield* usable(yield* rows.read(holder), grantId)
        if (!grant.isDue) return grant
        if (grant.tokens.refreshToken === undefined && !grant.isExpired) return grant
        return yield* renewed(whom, holder, grant).pipe(
          // A token that could not be renewed is used until it expires.
          Effect.catchIf(
            ({ isSignedOut = false }) => !isSignedOut && !grant.isExpired,
            () => Effect.succeed(grant)
          )
        )
      })

      const bearerOf = (whom: Whom, holder: Holder, grantId: string): Bearer => ({
        token: Effect.map(tokenFor(whom, holder, grantId), bearerToken),
        renewed: ({ version }) => Effect.map(renewed(whom, holder, { id: grantId, version }), bearerToken),
        wantScopes: (scopes) => rows.wantScopes(holder, grantId, scopes)
      })

      const accessOf = Effect.fn("OAuthGrants.accessOf")(function* (whom: Whom) {
        const { authorization, name, transport } = whom.config
        const oauth = oauthOf(whom.config)
        if (oauth === undefined || transport.type !== "http") return noAccess
        if (oauth.per === "member" && whom.member === null) return yield* forNobody(name)
        const userId = oauth.per === "member" ? (whom.member ?? "") : ""
        const holder = { projectId: whom.projectId, serverId: whom.id, userId, transport }
        const found = yield* rows.read(holder)
        // A server without any sign-in data may be public.
        if (found === undefined && authorization === undefined) return noAccess
        const { id } = yield* usable(found, found?.id)
        return { key: id, bearer: bearerOf(whom, holder, id) }
      })

      return OAuthGrants.of({
        accessOf,
        keep: rows.keep,
        remove: rows.remove,
        wantedScopes: rows.wantedScopes,
        sealAgain: rows.sealAgain
      })
    })
  )
}

const noAccess: Access = { key: "", bearer: undefined }

const bearerToken = ({ tokens, version }: Grant): BearerToken => ({
  value: Redacted.make(tokens.accessToken),
  version
})

const forNobody = (name: string): ExternalFault =>
  signedOut(
    `Signed in to by each member for themselves, and this run works for nobody: it needs a server-wide sign-in, which an admin allows with authorization.per "server" of ${name}`
  )

type Found = Grant | GrantRow | undefined

/** Returns a usable grant, if it is the one that the connection was opened with. */
const usable = Effect.fnUntraced(function* (
  found: Found,
  grantId: string | undefined
): Effect.fn.Return<Grant, ExternalFault> {
  if (found === undefined) return yield* signedOut(`${signedOutText} first`)
  if (found.sealed === null)
    return yield* signedOut(`${signedOutText} again${found.detail === null ? "" : `. ${found.detail}`}`)
  if (!("tokens" in found))
    return yield* signedOut(
      `${signedOutText} again. Its tokens are sealed with a key that this server does not have (TROPISM_ENCRYPTION_KEY)`
    )
  if (found.id !== grantId) return yield* unmade("Somebody has signed in anew since this connection was made")
  return found
})

/** The condition that matches one grant. */
const grantOf =
  (sql: SqlClient.SqlClient) =>
  ({ projectId, serverId, transport, userId }: Holder) =>
    sql`project_id = ${projectId} and server_id = ${serverId} and user_id = ${userId} and url = ${transport.url}`

/** Reads and writes the rows of grants. */
const makeGrantRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const sealing = yield* Sealing
  const notifier = yield* Notifier
  const place = ({ projectId, serverId, transport, userId }: Holder) =>
    placeOf(projectId, serverId, userId, transport.url)
  const of = grantOf(sql)

  const opened = Effect.fnUntraced(function* (holder: Holder, row: GrantRow): Effect.fn.Return<Found> {
    const text = row.sealed === null ? undefined : sealing.open(place(holder), row.sealed)
    if (text === undefined) return row
    return { ...row, tokens: yield* Effect.orDie(tokensOf(text)) }
  })

  const read = Effect.fnUntraced(function* (holder: Holder) {
    const [row] = yield* database.ask(
      holder.projectId,
      sql<GrantRow>`
        select id, version, sealed, detail, coalesce(expires_at <= now(), false) as is_expired,
          coalesce(expires_at <= now() + make_interval(secs => ${externalLimits.renewAheadMs / 1_000}), false) as is_due
        from kb.mcp_grants where ${of(holder)}`
    )
    return row === undefined ? undefined : yield* opened(holder, row)
  })

  const sealed = (holder: Holder, tokens: KeptTokens) =>
    Effect.orDie(textOf(tokens)).pipe(
      Effect.flatMap((text) => sealing.seal(place(holder), text)),
      Effect.catchTag("SealingRefused", ({ reason }) =>
        Effect.as(
          Effect.logError(
            "Tokens of an MCP server cannot be kept: set the same TROPISM_ENCRYPTION_KEY at all servers",
            {
              code: reason
            }
          ),
          undefined
        )
      )
    )

  const keep = Effect.fnUntraced(function* (holder: Holder, by: UserId, tokens: KeptTokens, given: Given) {
    const text = yield* sealed(holder, tokens)
    if (text === undefined) return "unsealable" as const
    yield* sql`
      insert into kb.mcp_grants (project_id, server_id, user_id, url, id, sealed, issuer, scopes, has_refresh_token, expires_at, signed_in_by)
      values (${holder.projectId}, ${holder.serverId}, ${holder.userId}, ${holder.transport.url}, ${randomUUID()}, ${text},
        ${tokens.server.issuer}, ${given.scopes}, ${tokens.refreshToken !== undefined},
        now() + make_interval(secs => ${given.expiresInSeconds}::int), ${by})
      on conflict (project_id, server_id, user_id) do update set url = excluded.url, id = excluded.id, version = 1,
        sealed = excluded.sealed, detail = null, issuer = excluded.issuer, scopes = excluded.scopes, wanted_scopes = null,
        has_refresh_token = excluded.has_refresh_token, expires_at = excluded.expires_at,
        signed_in_by = excluded.signed_in_by, signed_in_at = now(), claim_token = null, claimed_until = null`
    yield* sql.afterCommit(notifier.signal(`server:${holder.serverId}`))
    return "kept" as const
  }, orDie)

  /** Stores renewed tokens in place of those they were issued for; false when others are stored by now. */
  const replace = Effect.fnUntraced(function* (
    holder: Holder,
    { id, version }: Pick<Grant, "id" | "version">,
    tokens: KeptTokens,
    given: Given
  ) {
    const text = yield* sealed(holder, tokens)
    if (text === undefined) return false
    const kept = yield* sql`
      update kb.mcp_grants set sealed = ${text}, version = version + 1, scopes = coalesce(${given.scopes}, scopes),
        has_refresh_token = ${tokens.refreshToken !== undefined},
        expires_at = now() + make_interval(secs => ${given.expiresInSeconds}::int), claim_token = null, claimed_until = null
      where ${of(holder)} and id = ${id} and version = ${version} and sealed is not null returning id`
    return kept.length > 0
  }, orDie)

  /** Ends a sign-in whose tokens are unusable, unless others are stored by now. */
  const endGrant = (holder: Holder, { id, version }: Pick<Grant, "id" | "version">, detail: string) =>
    database.ask(
      holder.projectId,
      sql`
        update kb.mcp_grants set sealed = null, detail = ${detail}, version = version + 1, expires_at = null,
          claim_token = null, claimed_until = null
        where ${of(holder)} and id = ${id} and version = ${version} and sealed is not null returning id`
    )

  const remove = Effect.fnUntraced(function* (holder: Holder) {
    const [row] = yield* sql<GrantRow>`
      select id, version, sealed, detail, false as is_expired, false as is_due from kb.mcp_grants where ${of(holder)} for update`
    yield* sql`
      update kb.mcp_grants set sealed = null, detail = null, version = version + 1, expires_at = null, claim_token = null,
        claimed_until = null, wanted_scopes = null
      where ${of(holder)}`
    // The next sign-in registers again, because the authorization server may have forgotten the client.
    yield* sql`delete from kb.mcp_clients where project_id = ${holder.projectId} and server_id = ${holder.serverId}`
    yield* sql`
      delete from kb.mcp_sign_ins where project_id = ${holder.projectId} and server_id = ${holder.serverId} and user_id = ${holder.userId}`
    yield* sql.afterCommit(notifier.signal(`server:${holder.serverId}`))
    const found = row === undefined ? undefined : yield* opened(holder, row)
    return found !== undefined && "tokens" in found ? found.tokens : undefined
  }, orDie)

  return {
    read,
    keep,
    remove,
    endGrant,
    replace: (...args: Parameters<typeof replace>) => database.inProject(args[0].projectId, replace(...args)),
    ...(yield* makeGrantMarks),
    sealAgain: yield* makeSealAgain
  }
})

/** Marks on a grant besides its tokens, each in one statement. */
const makeGrantMarks = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const of = grantOf(sql)
  return {
    /** Deletes a client that its authorization server does not know; the next sign-in registers again. */
    forgetClients: ({ projectId, serverId }: Holder, issuer: string) =>
      database.ask(
        projectId,
        sql`delete from kb.mcp_clients where project_id = ${projectId} and server_id = ${serverId} and issuer = ${issuer}`
      ),
    /** Claims the renewal of this version for this program; false when another has it. */
    claim: (holder: Holder, { id, version }: Pick<Grant, "id" | "version">, claim: string) =>
      Effect.map(
        database.ask(
          holder.projectId,
          sql`
            update kb.mcp_grants set claim_token = ${claim},
              claimed_until = now() + make_interval(secs => ${externalLimits.renewClaimMs / 1_000})
            where ${of(holder)} and id = ${id} and version = ${version} and sealed is not null
              and (claimed_until is null or claimed_until < now()) returning id`
        ),
        (claimed) => claimed.length > 0
      ),
    release: (holder: Holder, claim: string) =>
      database.ask(
        holder.projectId,
        sql`update kb.mcp_grants set claim_token = null, claimed_until = null where ${of(holder)} and claim_token = ${claim}`
      ),
    wantScopes: (holder: Holder, grantId: string, scopes: string) =>
      Effect.asVoid(
        database.ask(
          holder.projectId,
          sql`update kb.mcp_grants set wanted_scopes = ${scopes.slice(0, 2_000)} where ${of(holder)} and id = ${grantId}`
        )
      ),
    wantedScopes: (holder: Holder) =>
      Effect.map(
        database.ask(
          holder.projectId,
          sql<{
            readonly wanted: string | null
          }>`select wanted_scopes as wanted from kb.mcp_grants where ${of(holder)}`
        ),
        ([row]) => row?.wanted ?? undefined
      )
  }
})

type GrantRows = Effect.Success<typeof makeGrantRows>

/** Renews tokens, one program at a time. */
const makeRenewals = Effect.fnUntraced(function* (rows: GrantRows) {
  const notifier = yield* Notifier
  const context = yield* Effect.context<never>()
  /**
   * Running renewals. They finish even when their caller is interrupted, because the authorization server may have replaced the
   * refresh token.
   */
  const underWay = new Set<Fiber.Fiber<unknown, unknown>>()
  yield* Effect.addFinalizer(() => Effect.suspend(() => Fiber.awaitAll([...underWay])))

  /** Requests new tokens under the claim and stores the result. */
  const ask = Effect.fnUntraced(function* (whom: Whom, holder: Holder, grant: Grant, claim: string) {
    const { client, refreshToken = "", resource, server } = grant.tokens
    const exit = yield* Effect.result(
      Effect.flatMap(withDefinedSecret(whom, client), (known) =>
        renew(holder.transport, { resource, server }, known, refreshToken)
      )
    )
    if (exit._tag === "Success") {
      const given = exit.success
      const tokens: KeptTokens = {
        ...grant.tokens,
        accessToken: given.accessToken,
        refreshToken: given.refreshToken ?? refreshToken
      }
      yield* rows.replace(holder, grant, tokens, given)
    } else if (exit.failure._tag === "SignInFault" && exit.failure.isFinal) {
      if (exit.failure.code !== "invalid_grant") yield* rows.forgetClients(holder, server.issuer)
      yield* rows.endGrant(holder, grant, exit.failure.detail)
    } else {
      yield* rows.release(holder, claim)
      return yield* unmade(exit.failure._tag === "SignInFault" ? exit.failure.detail : exit.failure.message)
    }
    yield* notifier.signal(`server:${holder.serverId}`)
  })

  const asked = (whom: Whom, holder: Holder, grant: Grant, claim: string) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkDetach(
        Effect.provideContext(Effect.uninterruptible(ask(whom, holder, grant, claim)), context)
      )
      underWay.add(fiber)
      fiber.addObserver(() => underWay.delete(fiber))
      return yield* Effect.interruptible(Fiber.join(fiber))
    }).pipe(Effect.uninterruptible)

  const renewed = Effect.fn("OAuthGrants.renewed")(function* (
    whom: Whom,
    holder: Holder,
    old: Pick<Grant, "id" | "version">
  ): Effect.fn.Return<Grant, ExternalFault, Scope.Scope> {
    const changes = yield* notifier.listen(`server:${holder.serverId}`)
    for (let look = 0; look < externalLimits.renewLooks; look += 1) {
      const grant = yield* usable(yield* rows.read(holder), old.id)
      if (grant.version !== old.version) return grant
      if (grant.tokens.refreshToken === undefined) {
        yield* rows.endGrant(
          holder,
          grant,
          "The token has ended, and its authorization server gave none to renew it"
        )
        continue
      }
      const claim = randomUUID()
      if (yield* rows.claim(holder, grant, claim)) yield* asked(whom, holder, grant, claim)
      else yield* Effect.raceFirst(Queue.take(changes), Effect.sleep(externalLimits.renewPollMs))
    }
    return yield* unmade("Another server renews the token, and has not done so in time")
  }, Effect.scoped)

  return { renewed }
})

/** Adds the secret that the definition names to the client. */
export const withDefinedSecret = (
  { config }: Pick<Whom, "config">,
  client: OAuthClient
): Effect.Effect<OAuthClient, SignInFault | ExternalFault> => {
  const { authorization } = config
  if (!authorization?.clientSecret || authorization.clientId !== client.client_id)
    return Effect.succeed(client)
  return Effect.map(revealSecrets({ secret: authorization.clientSecret }), ({ values }) => ({
    ...client,
    client_secret: values["secret"] ?? ""
  }))
}

interface SealedRow {
  readonly serverId: string
  readonly userId: string
  readonly url: string
  readonly sealed: string
}

/** Reseals grants with the current key where this program has their older key. */
const makeSealAgain = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const sealing = yield* Sealing

  const sealBatch = Effect.fnUntraced(function* (after: SealedRow | undefined) {
    const { projectId } = yield* ProjectTransaction
    const found = yield* sql<SealedRow>`
      select server_id, user_id, url, sealed from kb.mcp_grants
      where project_id = ${projectId} and sealed is not null
        and (server_id, user_id) > (${after?.serverId ?? firstId}::uuid, ${after?.userId ?? ""})
      order by server_id, user_id limit ${externalLimits.sealedTogether} for no key update`
    for (const row of found) {
      const place = placeOf(projectId, row.serverId, row.userId, row.url)
      const text = sealing.open(place, row.sealed)
      if (text === undefined) continue
      const again = yield* Effect.orDie(sealing.seal(place, text))
      yield* sql`
        update kb.mcp_grants set sealed = ${again}
        where project_id = ${projectId} and server_id = ${row.serverId} and user_id = ${row.userId}`
    }
    // A client sealed with another key is registered again at the next sign-in.
    yield* sql`delete from kb.mcp_clients where project_id = ${projectId} and sealed not like ${`v1.${sealing.keyIds[0]}.%`}`
    return found.length < externalLimits.sealedTogether ? undefined : found.at(-1)
  }, orDie)

  return Effect.gen(function* () {
    for (const projectId of yield* sealing.unsealed) {
      let after: SealedRow | undefined
      do after = yield* database.inProject(projectId, sealBatch(after))
      while (after !== undefined)
    }
  })
})

const firstId = "00000000-0000-0000-0000-000000000000"
