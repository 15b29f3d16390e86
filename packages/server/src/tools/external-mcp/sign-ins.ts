/**
 * Signs in to a foreign MCP server by a link, and signs out.
 *
 * **Invariant** The state that a browser brings back is valid once, for a short time, and only for the person who
 * requested it: using it deletes its row. A crash after that leaves no sign-in, and the person requests a new link.
 */
import { createHash, randomBytes } from "node:crypto"
import { includesRole, type Principal, type Role, roleIn } from "@tropism/api/authorization"
import { ProjectId, type UserId } from "@tropism/domain/ids"
import { oauthOf, wantsSignIn } from "@tropism/domain/mcp-server"
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { Database, orDie, ProjectTransaction } from "../../database/database.ts"
import { Sealing } from "../../database/sealing.ts"
import { lineOf } from "./faults.ts"
import { externalLimits } from "./limits.ts"
import { type Holder, OAuthGrants, withDefinedSecret } from "./oauth-grants.ts"
import {
  AuthorizationServer,
  authorizationUrl,
  checkIssuer,
  discover,
  type Discovered,
  exchange,
  OAuthClient,
  register,
  revoke,
  SignInFault
} from "./oauth-protocol.ts"
import { type KeptServer, McpServers } from "./servers.ts"

/** A link for the person's consent. */
export interface SignInLink {
  readonly url: string
  readonly expiresAt: string
}

/** Who requests a link, and whether they may define the server's tools. */
export interface Asker {
  readonly userId: UserId
  /** SHA-256 of the requester's credential. */
  readonly credential: string | undefined
  readonly mayPin: boolean
}

/** A sign-in that a browser has returned from. */
export interface Pending {
  readonly projectName: string
  readonly serverName: string
  readonly askedBy: UserId
}

/** The parameters that the authorization server sends through the browser. */
export interface Brought {
  readonly code: string | undefined
  readonly iss: string | undefined
  readonly error: string | undefined
}

/** A completed sign-in. */
export interface Done {
  readonly server: KeptServer
  readonly askedBy: UserId
  readonly mayPin: boolean
}

export class SignIns extends Context.Service<
  SignIns,
  {
    /** Discovers the authorization server and returns the effect that stores the link. */
    readonly begin: (
      server: KeptServer,
      asker: Asker,
      origin: string
    ) => Effect.Effect<Effect.Effect<SignInLink, SignInFault, ProjectTransaction>, SignInFault>
    /** The sign-in of a state; undefined when it was used or has expired. */
    readonly find: (state: string) => Effect.Effect<Pending | undefined>
    /** Uses a state once and stores the tokens; `person` is the browser's user here, if any. */
    readonly finish: (
      state: string,
      brought: Brought,
      person: Principal | undefined
    ) => Effect.Effect<Done, SignInFault>
    /** Deletes the tokens and returns the effect that revokes them. */
    readonly end: (
      server: KeptServer,
      userId: UserId
    ) => Effect.Effect<Effect.Effect<void>, never, ProjectTransaction>
  }
>()("@tropism/server/tool/SignIns") {
  static readonly layer = Layer.effect(
    SignIns,
    Effect.gen(function* () {
      const grants = yield* OAuthGrants
      const database = yield* Database
      const servers = yield* McpServers
      const rows = yield* makeSignInRows
      const context = yield* Effect.context<never>()

      /** Returns the OAuth client: the defined one, the client document, a stored registration, or a new registration. */
      const clientFor = Effect.fnUntraced(function* (server: KeptServer, found: Discovered, place: Redirect) {
        const { origin, redirectUri } = place
        const { authorization, transport } = server.config
        if (authorization?.clientId) return { client_id: authorization.clientId }
        if (found.server.client_id_metadata_document_supported === true && origin.startsWith("https:"))
          return { client_id: clientDocumentAt(origin) }
        const known = yield* rows.findClient(server, found.server.issuer, redirectUri)
        if (known !== undefined || transport.type !== "http") return known
        const made = yield* register(transport, found, origin, redirectUri)
        yield* rows.keepClient(server, found.server.issuer, redirectUri, made)
        return made
      })

      const begin = Effect.fn("SignIns.begin")(function* (server: KeptServer, asker: Asker, origin: string) {
        const holder = holderOf(server, asker.userId)
        const oauth = oauthOf(server.config)
        if (holder === undefined || oauth === undefined) return yield* notForOAuth(server)
        // A missing secret is reported before the consent and not after it.
        if (oauth.clientId) yield* knownClient(server, { client_id: oauth.clientId })
        const wanted = yield* grants.wantedScopes(holder)
        const found = yield* discover(holder.transport, oauth, wanted)
        const redirectUri = `${origin}/oauth/callback`
        const client = yield* clientFor(server, found, { origin, redirectUri })
        if (client === undefined) return yield* notForOAuth(server)
        const state = `${server.projectId}.${randomBytes(32).toString("base64url")}`
        const link = yield* authorizationUrl(found, client, state, redirectUri)
        const sign: Signing = {
          server: found.server,
          resource: found.resource,
          ...(found.scope === undefined ? {} : { scope: found.scope }),
          client,
          verifier: link.codeVerifier,
          redirectUri,
          url: holder.transport.url,
          ...(asker.credential === undefined ? {} : { credential: asker.credential })
        }
        return Effect.map(rows.keep(server, holder, asker, state, sign), (expiresAt) => ({
          url: link.authorizationUrl.href,
          expiresAt
        }))
      }, Effect.provideContext(context))

      /** Deletes the state and then exchanges the code, so that neither is used twice. */
      const finish = Effect.fn("SignIns.finish")(function* (
        state: string,
        brought: Brought,
        person: Principal | undefined
      ) {
        const taken = yield* rows.take(state)
        if (taken === undefined) return yield* overFault
        const { askedBy, mayPin, server, sign, userId } = taken
        if (person !== undefined && person.userId !== askedBy)
          return yield* fault(
            `${askedBy} asked for this sign-in, and this browser is signed in as ${person.userId}`
          )
        const role = yield* roleOf(taken, person)
        if (server !== undefined) yield* mayStill(taken, role, server)
        const transport = server?.config.transport
        if (server === undefined || transport?.type !== "http" || transport.url !== sign.url)
          return yield* fault(
            "The server was removed, or has another address than when the link was asked for"
          )
        yield* checkIssuer(sign.server, brought.iss)
        if (brought.code === undefined)
          return yield* fault(
            `The authorization server gave no leave: ${lineOf(brought.error ?? "it gave no code")}`
          )
        const client = yield* knownClient(server, sign.client)
        const found = { server: sign.server, resource: sign.resource, scope: sign.scope }
        const given = yield* exchange(transport, found, client, {
          code: brought.code,
          iss: brought.iss,
          verifier: sign.verifier,
          redirectUri: sign.redirectUri
        }).pipe(
          Effect.tapError(({ code }) =>
            code === "invalid_client" ? rows.forgetClient(server, sign.server.issuer) : Effect.void
          )
        )
        const holder: Holder = { projectId: server.projectId, serverId: server.id, userId, transport }
        const tokens = {
          accessToken: given.accessToken,
          ...(given.refreshToken === undefined ? {} : { refreshToken: given.refreshToken }),
          client: sign.client,
          server: sign.server,
          resource: sign.resource
        }
        const kept = yield* database.inProject(
          server.projectId,
          Effect.andThen(
            wantsSignIn(server) ? servers.noteError(server, null) : Effect.void,
            grants.keep(holder, askedBy, tokens, given)
          )
        )
        if (kept === "unsealable") return yield* unsealable
        return { server, askedBy, mayPin: mayPin && mayBe(role, "admin") }
      }, Effect.provideContext(context))

      /** The requester's current role: as a member, as the browser's user, or by the requesting credential while it is valid. */
      const roleOf = (taken: Taken, person: Principal | undefined): Effect.Effect<Role | undefined> => {
        const { projectId, role, sign } = taken
        const known = role ?? (person === undefined ? undefined : roleIn(person, projectId))
        return known !== undefined || sign.credential === undefined
          ? Effect.succeed(known)
          : rows.roleBy(sign.credential, projectId)
      }

      const end = Effect.fn("SignIns.end")(function* (server: KeptServer, userId: UserId) {
        const holder = holderOf(server, userId)
        const tokens = holder === undefined ? undefined : yield* grants.remove(holder)
        if (holder === undefined || tokens === undefined) return Effect.void
        return withDefinedSecret(server, tokens.client).pipe(
          Effect.flatMap((client) =>
            revoke(holder.transport, tokens.server, client, tokens.refreshToken ?? tokens.accessToken)
          ),
          Effect.catch((error) =>
            Effect.logWarning(
              "An authorization server did not revoke the token of a sign-in that has ended",
              error
            )
          ),
          Effect.provideContext(context)
        )
      })

      return SignIns.of({ begin, find: rows.find, finish, end })
    })
  )
}

interface Redirect {
  readonly origin: string
  readonly redirectUri: string
}

/** Address of this program's client document. */
export const clientDocumentAt = (origin: string): string => `${origin}/oauth/client.json`

const holderOf = ({ config, id, projectId }: KeptServer, userId: UserId): Holder | undefined => {
  const oauth = oauthOf(config)
  return oauth === undefined || config.transport.type !== "http"
    ? undefined
    : { projectId, serverId: id, userId: oauth.per === "member" ? userId : "", transport: config.transport }
}

const fault = (detail: string): SignInFault => new SignInFault({ detail, isFinal: true })

/** Returns a client with its secret; fails with the name of an unset variable. */
const knownClient = (server: KeptServer, client: OAuthClient): Effect.Effect<OAuthClient, SignInFault> =>
  Effect.catchTag(withDefinedSecret(server, client), "ExternalFault", ({ message }) =>
    Effect.fail(fault(message))
  )

const mayBe = (role: Role | undefined, needed: Role): boolean =>
  role !== undefined && includesRole(role, needed)

/** Refuses what its requester may no longer do, or when another kind of sign-in was requested. */
const mayStill = (
  { askedBy, userId }: Taken,
  role: Role | undefined,
  { config }: KeptServer
): Effect.Effect<void, SignInFault> => {
  const isPerMember = oauthOf(config)?.per === "member"
  if (isPerMember !== (userId !== ""))
    return Effect.fail(fault("Who signs in to this server has changed since the link was asked for"))
  if (role === undefined)
    return Effect.fail(
      fault(
        `${askedBy} has no access to the project any more: the token that asked for this sign-in has ended`
      )
    )
  return isPerMember || mayBe(role, "admin")
    ? Effect.void
    : Effect.fail(fault(`${askedBy} is no admin of the project any more, and this sign-in is for admins`))
}

const notForOAuth = ({ config }: KeptServer) =>
  Effect.fail(
    fault(
      config.transport.type === "http"
        ? "The definition's headers hold an Authorization of their own: leave it out to sign in instead"
        : "A program is not signed in to: OAuth is for a server at an address"
    )
  )

const overFault = Effect.fail(fault("This sign-in was used already or is too old: ask for a new link"))

const unsealable = Effect.fail(
  fault("This server cannot keep a secret, so nobody can sign in: its operator sets TROPISM_ENCRYPTION_KEY")
)

/** The stored data of a pending sign-in. */
const Signing = Schema.Struct({
  server: AuthorizationServer,
  resource: Schema.String,
  scope: Schema.optionalKey(Schema.String),
  client: OAuthClient,
  verifier: Schema.String,
  redirectUri: Schema.String,
  url: Schema.String,
  /** SHA-256 of the credential that requested the link. */
  credential: Schema.optionalKey(Schema.String)
})
type Signing = typeof Signing.Type

const signingText = Schema.encodeEffect(Schema.fromJsonString(Signing))
const readSigning = Schema.decodeUnknownEffect(Schema.fromJsonString(Signing))
const clientText = Schema.encodeEffect(Schema.fromJsonString(OAuthClient))
const readClient = Schema.decodeUnknownEffect(Schema.fromJsonString(OAuthClient))

const hashOf = (state: string): string => createHash("sha256").update(state).digest("hex")

/** The project of a state; undefined for a state that was not made here. */
const projectOf = (state: string): ProjectId | undefined => {
  const [projectId = ""] = state.split(".", 1)
  return state.length <= 200 && isProjectId(projectId) ? projectId : undefined
}

const isProjectId = Schema.is(ProjectId)

const signInPlace = (projectId: string, hash: string): string => `mcp sign-in ${projectId} ${hash}`

/** Rows of pending sign-ins and registered clients. */
const makeSignInRows = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const database = yield* Database
  const sealing = yield* Sealing
  const servers = yield* McpServers

  const keep = Effect.fnUntraced(function* (
    server: KeptServer,
    { userId }: Holder,
    asker: Asker,
    state: string,
    sign: Signing
  ) {
    const { projectId } = yield* ProjectTransaction
    const hash = hashOf(state)
    const text = yield* Effect.orDie(signingText(sign))
    const sealed = yield* Effect.catchTag(
      sealing.seal(signInPlace(projectId, hash), text),
      "SealingRefused",
      () => unsealable
    )
    yield* sql`delete from kb.mcp_sign_ins where project_id = ${projectId} and expires_at < now()`
    const [row] = yield* sql<{ readonly expiresAt: Date }>`
      insert into kb.mcp_sign_ins (project_id, state_hash, server_id, user_id, asked_by, may_pin, sealed, expires_at)
      values (${projectId}, ${hash}, ${server.id}, ${userId}, ${asker.userId}, ${asker.mayPin}, ${sealed},
        now() + make_interval(secs => ${externalLimits.signInMs / 1_000}))
      on conflict (project_id, server_id, user_id, asked_by) do update set state_hash = excluded.state_hash,
        may_pin = excluded.may_pin, sealed = excluded.sealed, expires_at = excluded.expires_at
      returning expires_at`
    return row?.expiresAt.toISOString() ?? ""
  }, orDie)

  const find = Effect.fnUntraced(function* (state: string) {
    const projectId = projectOf(state)
    if (projectId === undefined) return undefined
    const [row] = yield* database.ask(
      projectId,
      sql<Pending>`
        select project.name as project_name, server.name as server_name, pending.asked_by
        from kb.mcp_sign_ins pending join kb.mcp_servers server on server.id = pending.server_id
        join kb.projects project on project.id = pending.project_id
        where pending.project_id = ${projectId} and pending.state_hash = ${hashOf(state)} and pending.expires_at > now()`
    )
    return row
  })

  const take = Effect.fnUntraced(function* (state: string) {
    const projectId = projectOf(state)
    if (projectId === undefined) return undefined
    const hash = hashOf(state)
    const taking = Effect.gen(function* () {
      const [row] = yield* sql<TakenRow>`
        delete from kb.mcp_sign_ins where project_id = ${projectId} and state_hash = ${hash} and expires_at > now()
        returning server_id, user_id, asked_by, may_pin, sealed,
          (select role from kb.members where project_id = ${projectId} and user_id = asked_by) as role`
      return row && { ...row, server: yield* servers.find(row.serverId) }
    }).pipe(orDie)
    const taken = yield* database.inProject(projectId, taking)
    const text = taken && sealing.open(signInPlace(projectId, hash), taken.sealed)
    return text === undefined || taken === undefined
      ? undefined
      : { ...taken, projectId, sign: yield* Effect.orDie(readSigning(text)) }
  })

  const roleBy = Effect.fnUntraced(function* (credential: string, projectId: ProjectId) {
    const [found] = yield* sql<{
      readonly role: Role
      readonly roles: Readonly<Record<string, Role>> | null
    }>`select role, roles from kb.find_principal(${credential})`
    return found && (found.roles === null ? found.role : found.roles[projectId])
  }, orDie)

  const clientPlace = (server: KeptServer, issuer: string, redirectUri: string): string =>
    `mcp client ${server.projectId} ${server.id} ${issuer} ${redirectUri}`

  const findClient = Effect.fnUntraced(function* (server: KeptServer, issuer: string, redirectUri: string) {
    const [row] = yield* database.ask(
      server.projectId,
      sql<{ readonly sealed: string }>`
        select sealed from kb.mcp_clients
        where project_id = ${server.projectId} and server_id = ${server.id} and issuer = ${issuer} and redirect_uri = ${redirectUri}`
    )
    const text = row && sealing.open(clientPlace(server, issuer, redirectUri), row.sealed)
    if (text === undefined) return undefined
    const client = yield* Effect.orDie(readClient(text))
    const { client_secret_expires_at: expires = 0 } = client
    const untilMs = (yield* Clock.currentTimeMillis) + externalLimits.signInMs
    return expires === 0 || expires * 1_000 > untilMs ? client : undefined
  })

  const keepClient = (server: KeptServer, issuer: string, redirectUri: string, client: OAuthClient) =>
    database.inProject(
      server.projectId,
      Effect.gen(function* () {
        const text = yield* Effect.orDie(clientText(client))
        const sealed = yield* Effect.catchTag(
          sealing.seal(clientPlace(server, issuer, redirectUri), text),
          "SealingRefused",
          () => unsealable
        )
        yield* sql`
          insert into kb.mcp_clients (project_id, server_id, issuer, redirect_uri, sealed)
          values (${server.projectId}, ${server.id}, ${issuer}, ${redirectUri}, ${sealed})
          on conflict (project_id, server_id, issuer, redirect_uri) do update set sealed = excluded.sealed, created_at = now()`
      }).pipe(orDie)
    )

  const forgetClient = (server: KeptServer, issuer: string) =>
    Effect.asVoid(
      database.ask(
        server.projectId,
        sql`delete from kb.mcp_clients where project_id = ${server.projectId} and server_id = ${server.id} and issuer = ${issuer}`
      )
    )

  return { keep, find, take, roleBy, findClient, keepClient, forgetClient }
})

interface Taken extends TakenRow {
  readonly projectId: ProjectId
  readonly server: KeptServer | undefined
  readonly sign: Signing
}

interface TakenRow {
  readonly serverId: KeptServer["id"]
  readonly userId: string
  readonly askedBy: UserId
  readonly mayPin: boolean
  readonly sealed: string
  /** The requester's current role; null when they are not a member. */
  readonly role: Role | null
}
