/**
 * Resolves a secret to its principal.
 *
 * **Invariant**: only hashes are stored, so the database contains no usable credential. A one-time code becomes a session once; the
 * database decides between two browsers. A token reaches those of its projects whose member its user is now, so a change of membership
 * applies from the next request on. A JWT is verified by its issuer's key (`jwt.ts`) and reaches whatever its person does.
 */
import { createHash } from "node:crypto"
import { type Principal, type Role, lesser } from "@tropism/api/authorization"
import { type Token, tokenBounds } from "@tropism/api/members-api"
import { ProjectId, UserId, type TokenId } from "@tropism/domain/ids"
import { Clock, Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, ProjectTransaction, retryTransaction } from "../database/database.ts"
import { makeLookups } from "../database/group-commit.ts"
import { Ids } from "../ids.ts"
import { digestOf } from "../review/task-digest.ts"
import type { KeyHolder } from "../tenancy/idempotency-keys.ts"
import { isJwt, type Issuer, subjectOf, TrustedIssuer } from "./jwt.ts"
import { tokenLimits } from "./limits.ts"
import { CurrentRequest } from "./request-context.ts"

export const adminUser = UserId.make("admin")

export class Tokens extends Context.Service<
  Tokens,
  {
    /** The principal of a token or session; undefined when it is unknown, expired or revoked. */
    readonly find: (secret: Redacted.Redacted) => Effect.Effect<Principal | undefined>
    /**
     * The server's admin, for the secret last admitted here. It does not query the database, so it may not know that the token has ended.
     */
    readonly findOwn: (secret: Redacted.Redacted) => Effect.Effect<Principal | undefined>
    /** The principal of the token with this SHA-256 (hexadecimal), for work that goes on after a request. */
    readonly findByHash: (hash: string) => Effect.Effect<Principal | undefined>
    /** The holder of a valid secret for idempotency keys and rate limits: stable when a JWT is renewed. */
    readonly holderOf: (secret: Redacted.Redacted) => KeyHolder
    /**
     * Admits a secret as the server's admin while this server runs. If no other server can exist, the secrets of earlier servers end now.
     */
    readonly admit: (secret: Redacted.Redacted, isAlone: boolean) => Effect.Effect<void>
    /** Renews the lease of this server's secret, ends secrets whose lease has run out, and returns their number. */
    readonly hold: Effect.Effect<number>
    /** A code that one browser may exchange for an admin session, which ends with the credential that made the code. */
    readonly loginCode: (maker: Redacted.Redacted) => Effect.Effect<Redacted.Redacted>
    /**
     * A code that one browser may exchange for a session of a member of this transaction's project; undefined when there is no such member.
     */
    readonly memberCode: (
      userId: UserId
    ) => Effect.Effect<
      { readonly code: Redacted.Redacted; readonly expiresAt: string } | undefined,
      never,
      ProjectTransaction
    >
    /** The roles of a user in all projects, by project id. */
    readonly memberships: (userId: UserId) => Effect.Effect<Readonly<Record<string, Role>>>
    /** The user of a code; undefined when it was used or has expired. */
    readonly userOfCode: (code: Redacted.Redacted) => Effect.Effect<UserId | undefined>
    /** Exchanges a code for a session's secret, in a browser of this name; undefined when it was used or has expired. */
    readonly exchange: (
      code: Redacted.Redacted,
      browser: string | undefined
    ) => Effect.Effect<Redacted.Redacted | undefined>
    /** Opens a session that ends with this token; undefined when the token is not valid. */
    readonly openSession: (
      secret: Redacted.Redacted,
      browser: string | undefined
    ) => Effect.Effect<Redacted.Redacted | undefined>
    /** Ends a session; has no effect on other tokens. */
    readonly endSession: (secret: Redacted.Redacted) => Effect.Effect<void>
    /** Deletes one batch of tokens and codes that ended long ago and returns their number. */
    readonly forget: Effect.Effect<number>
  }
>()("@tropism/server/http/Tokens") {
  static readonly layer = Layer.effect(
    Tokens,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const issuer = yield* TrustedIssuer
      const hash = (secret: Redacted.Redacted) => digestOf(Redacted.value(secret))
      /** The digest of the admin's secret at this server. */
      let own: string | undefined
      // A server that has just started, or could not renew for a while, cannot know whether others could.
      let [heldSinceMs, heldAtMs] = [-Infinity, -Infinity]

      // Each request reads state from after its arrival; concurrent requests share one query.
      const lookUp = yield* makeLookups((digests) =>
        sql<StoredPrincipal>`
          select digest, user_id, role, roles, is_seen from unnest(${digests}::text[]) digest, kb.find_principal(digest)`.pipe(
          Effect.map((rows) => new Map(rows.map((row) => [row.digest, row]))),
          orDie
        )
      )

      const findByHash = Effect.fn("Tokens.findByHash")(function* (digest: string) {
        const row = yield* lookUp(digest)
        if (!row) return undefined
        if (!row.isSeen) yield* sql`select kb.see_token(${digest})`
        const visit = yield* CurrentRequest
        if (visit !== undefined) visit.admitted = { credential: digest, holder: digest }
        return toPrincipal(row)
      }, orDie)

      const holderOf = (secret: Redacted.Redacted): KeyHolder => {
        const person = issuer !== undefined && isJwt(secret) ? subjectOf(secret) : undefined
        return person === undefined
          ? { id: sha256(Redacted.value(secret)), secret, isRenewed: false }
          : { id: sha256(JSON.stringify(["jwt", issuer?.name, person])), secret, isRenewed: true }
      }

      const find = Effect.fn("Tokens.find")(function* (secret: Redacted.Redacted) {
        if (issuer === undefined || !isJwt(secret)) return yield* Effect.flatMap(hash(secret), findByHash)
        const found = yield* findBearer(issuer, secret)
        const visit = yield* CurrentRequest
        if (found !== undefined && visit?.admitted !== undefined)
          visit.admitted = { ...visit.admitted, holder: holderOf(secret).id }
        return found
      })

      /** A valid JWT gets a row at its first request, so that it can be found by its hash and revoked. */
      const findBearer = Effect.fnUntraced(function* (trusted: Issuer, jwt: Redacted.Redacted) {
        const bearer = yield* trusted.verify(jwt)
        if (bearer === undefined) return undefined
        const digest = yield* hash(jwt)
        const found = yield* findByHash(digest)
        if (found !== undefined) return found.projectIds === null && !bearer.isServerAdmin ? undefined : found
        const { expiresAt, isServerAdmin, userId } = bearer
        yield* sql`select kb.admit_person(${yield* ids.next}::uuid, ${digest}, ${userId}, ${isServerAdmin}, ${expiresAt})`
        return yield* findByHash(digest)
      }, orDie)

      const holdAs = Effect.fnUntraced(function* (digest: string, othersSeconds: number) {
        const { ended } = yield* Effect.flatMap(
          sql<{ ended: number }>`
            select kb.hold_admin_token(${yield* ids.next}::uuid, ${digest}, ${adminUser}, ${othersSeconds}::float8) as ended`,
          onlyRow
        )
        return ended
      }, orDie)

      const admit = Effect.fn("Tokens.admit")(function* (secret: Redacted.Redacted, isAlone: boolean) {
        const digest = yield* hash(secret)
        yield* holdAs(digest, isAlone ? 0 : endsNone)
        own = digest
      })

      // In a transaction, so that the clock is read after any wait for a connection. A decision from before an outage would end tokens
      // whose servers could not renew either.
      const hold = Effect.gen(function* () {
        if (own === undefined) return 0
        const nowMs = yield* Clock.currentTimeMillis
        const patienceMs = 2 * tokenLimits.holdIntervalMs
        if (nowMs - heldAtMs > patienceMs) heldSinceMs = nowMs
        const ended = yield* holdAs(
          own,
          nowMs - heldSinceMs >= patienceMs ? tokenLimits.unheldKeepSeconds : endsNone
        )
        heldAtMs = nowMs
        return ended
      }).pipe(sql.withTransaction, orDie)

      const findOwn = Effect.fn("Tokens.findOwn")(function* (secret: Redacted.Redacted) {
        const digest = yield* hash(secret)
        if (digest !== own) return undefined
        const visit = yield* CurrentRequest
        if (visit !== undefined) visit.admitted = { credential: digest, holder: digest }
        return serverAdmin
      })

      const loginCode = Effect.fn("Tokens.loginCode")(function* (maker: Redacted.Redacted) {
        const code = Redacted.make(yield* ids.secret)
        yield* sql`select kb.save_login_code(${yield* hash(code)}, ${adminUser}, ${tokenLimits.loginCodeMaxAgeSeconds}::int, ${yield* hash(maker)})`
        return code
      }, orDie)

      const memberCode = Effect.fn("Tokens.memberCode")(function* (userId: UserId) {
        yield* ProjectTransaction
        const code = Redacted.make(yield* ids.secret)
        const [row] = yield* sql<{ expiresAt: Date | null }>`
          select kb.save_member_code(${yield* hash(code)}, ${userId}, ${tokenLimits.memberCodeMaxAgeSeconds}::int) as expires_at`
        return row?.expiresAt ? { code, expiresAt: row.expiresAt.toISOString() } : undefined
      }, orDie)

      const memberships = Effect.fn("Tokens.memberships")(function* (userId: UserId) {
        const { roles } = yield* Effect.flatMap(
          sql<{ roles: Readonly<Record<string, Role>> }>`select kb.find_memberships(${userId}) as roles`,
          onlyRow
        )
        return roles
      }, orDie)

      const userOfCode = Effect.fn("Tokens.userOfCode")(function* (code: Redacted.Redacted) {
        const [row] = yield* sql<{ userId: UserId | null }>`
          select kb.find_login_code(${yield* hash(code)}) as user_id`
        return row?.userId ?? undefined
      }, orDie)

      const named = Effect.fnUntraced(function* (session: Redacted.Redacted, browser: string | undefined) {
        const name = browser?.replace(/[^\x20-\x7e]/g, "").slice(0, tokenLimits.browserNameMaxChars)
        if (name) yield* sql`select kb.name_browser(${yield* hash(session)}, ${name})`
        return session
      })

      const exchange = Effect.fn("Tokens.exchange")(function* (
        code: Redacted.Redacted,
        browser: string | undefined
      ) {
        const session = Redacted.make(yield* ids.secret)
        const [row] = yield* sql<{ exchanged: boolean }>`
          select kb.exchange_login_code(${yield* hash(code)}, ${yield* ids.next}::uuid, ${yield* hash(session)}, ${tokenLimits.sessionMaxAgeSeconds}::int) as exchanged`
        return row?.exchanged === true ? yield* named(session, browser) : undefined
      }, orDie)

      const openSession = Effect.fn("Tokens.openSession")(function* (
        secret: Redacted.Redacted,
        browser: string | undefined
      ) {
        // `find` stores the row of a JWT that was not seen before.
        if ((yield* find(secret)) === undefined) return undefined
        const session = Redacted.make(yield* ids.secret)
        const [row] = yield* sql<{ opened: boolean }>`
          select kb.open_session(${yield* hash(secret)}, ${yield* ids.next}::uuid, ${yield* hash(session)}, ${tokenLimits.sessionMaxAgeSeconds}::int) as opened`
        return row?.opened === true ? yield* named(session, browser) : undefined
      }, orDie)

      const endSession = Effect.fn("Tokens.endSession")(function* (secret: Redacted.Redacted) {
        yield* sql`select kb.end_session(${yield* hash(secret)})`
      }, orDie)

      const forget = sql<{ count: number }>`
        select kb.forget_tokens(${tokenLimits.endedTokensKeepMs / 1_000}::float8, ${tokenLimits.forgetBatchTokens}::int) as count`.pipe(
        Effect.map(([row]) => row?.count ?? 0),
        orDie
      )

      return Tokens.of({
        find,
        findOwn,
        findByHash,
        holderOf,
        admit,
        hold,
        loginCode,
        memberCode,
        memberships,
        userOfCode,
        exchange,
        openSession,
        endSession,
        forget
      })
    })
  )
}

/** An age in seconds that no lease reaches. */
const endsNone = 3_000_000_000

const serverAdmin: Principal = { userId: adminUser, role: "admin", projectIds: null, roles: null }

interface StoredPrincipal {
  readonly digest: string
  readonly userId: UserId
  readonly role: Role
  readonly roles: Readonly<Record<string, Role>> | null
  readonly isSeen: boolean
}

const sha256 = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex")

const toPrincipal = ({ role, roles, userId }: StoredPrincipal): Principal => ({
  userId,
  role,
  projectIds: roles === null ? null : Object.keys(roles).map((id) => ProjectId.make(id)),
  roles
})

// Tokens that people make: for a project's members or for the whole server.
//
// A secret leaves this program once, in the answer to its maker; only its hash is stored. Browser sessions are not such tokens.

/** The properties of a new token. */
export interface TokenWish {
  readonly name: string
  readonly userId: UserId
  readonly role: Role
  /** Null is every project of the server. */
  readonly projectIds: ReadonlyArray<ProjectId> | null
  readonly expiresAt: string | null
}

export interface IssuedToken {
  readonly token: Token
  readonly secret: Redacted.Redacted
}

/** The tokens of one scope; `R` is what its statements require. */
interface Kept<R> {
  /** Makes a token with its secret; undefined when the maximum is reached. */
  readonly make: (wish: TokenWish, by: UserId) => Effect.Effect<IssuedToken | undefined, never, R>
  /** Tokens newest first, of one user or all. */
  readonly list: (
    of: UserId | null,
    before: string | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<Token>, never, R>
  /** Revokes a token here, of one user or any; false when there is none. */
  readonly end: (of: UserId | null, id: TokenId) => Effect.Effect<boolean, never, R>
}

export class IssuedTokens extends Context.Service<
  IssuedTokens,
  {
    /** Tokens of this transaction's project. */
    readonly ofProject: Kept<ProjectTransaction> & {
      /** The rights of a token here, of one user or any; undefined when there is none. */
      readonly find: (
        of: UserId | null,
        id: TokenId
      ) => Effect.Effect<{ readonly role: Role } | undefined, never, ProjectTransaction>
    }
    /** Tokens that reach every project. */
    readonly ofServer: Kept<never>
  }
>()("@tropism/server/http/IssuedTokens") {
  static readonly layer = Layer.effect(
    IssuedTokens,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids

      const list = Effect.fn("IssuedTokens.list")(
        (of: UserId | null, before: string | undefined, limit: number) =>
          sql<StoredToken>`
            select * from kb.tokens_here
            where (${of}::text is null or user_id = ${of})
              and (${before ?? null}::uuid is null or id < ${before ?? null}::uuid)
            order by id desc limit ${limit}`.pipe(
            Effect.map((rows) => rows.map(toToken)),
            orDie
          )
      )

      const make = Effect.fn("IssuedTokens.make")(function* (wish: TokenWish, by: UserId) {
        const { made } = yield* Effect.flatMap(
          sql<{ made: number }>`select count(*)::integer as made from kb.tokens_here`,
          onlyRow
        )
        if (made >= tokenBounds.perProjectMax) return undefined
        const [id, secret] = [yield* ids.next, Redacted.make(`tropism_${yield* ids.secret}`)]
        const hash = yield* digestOf(Redacted.value(secret))
        const { isMade } = yield* Effect.flatMap(
          sql<{ isMade: boolean }>`
            select kb.make_token(${id}::uuid, ${hash}, ${wish.userId}, ${wish.role}, ${wish.projectIds}::uuid[],
              ${wish.name}, ${by}, ${wish.expiresAt}::timestamptz) as is_made`,
          onlyRow
        )
        // Its member was removed since that was checked.
        if (!isMade) return yield* retryTransaction
        const row = yield* Effect.flatMap(
          sql<StoredToken>`select * from kb.tokens_here where id = ${id}::uuid`,
          onlyRow
        )
        return { token: toToken(row), secret }
      }, orDie)

      const find = Effect.fn("IssuedTokens.find")(function* (of: UserId | null, id: TokenId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ readonly tokenRole: Role; readonly memberRole: Role | null }>`
          select token.role as token_role, member.role as member_role from kb.tokens_here token
          left join kb.members member on member.project_id = ${projectId} and member.user_id = token.user_id
          where token.id = ${id} and (${of}::text is null or token.user_id = ${of})`
        return row && { role: lesser(row.tokenRole, row.memberRole ?? row.tokenRole) }
      }, orDie)

      const end = Effect.fn("IssuedTokens.end")(function* (of: UserId | null, id: TokenId) {
        const { ended } = yield* Effect.flatMap(
          sql<{ ended: number }>`select kb.end_tokens(${id}::uuid, ${of}) as ended`,
          onlyRow
        )
        return ended > 0
      }, orDie)

      const lockProject = Effect.flatMap(ProjectTransaction, ({ projectId }) =>
        orDie(sql`select 1 from kb.projects where id = ${projectId} for no key update`)
      )
      const lockServer = orDie(
        sql`select pg_advisory_xact_lock(hashtextextended('tropism.server_tokens', 0))`
      )
      // Serializes concurrent makers, so that the maximum holds.
      return IssuedTokens.of({
        ofProject: {
          find,
          make: (wish, by) => Effect.andThen(lockProject, make(wish, by)),
          list: (of, before, limit) => Effect.andThen(ProjectTransaction, list(of, before, limit)),
          end: (of, id) => Effect.andThen(ProjectTransaction, end(of, id))
        },
        ofServer: {
          make: (wish, by) => orDie(sql.withTransaction(Effect.andThen(lockServer, make(wish, by)))),
          list,
          end
        }
      })
    })
  )
}

interface StoredToken extends Omit<Token, "createdAt" | "expiresAt" | "lastUsedAt"> {
  readonly createdAt: Date
  readonly expiresAt: Date | null
  readonly lastUsedAt: Date | null
}

const toToken = (row: StoredToken): Token => ({
  ...row,
  createdAt: row.createdAt.toISOString(),
  expiresAt: row.expiresAt?.toISOString() ?? null,
  lastUsedAt: row.lastUsedAt?.toISOString() ?? null
})
