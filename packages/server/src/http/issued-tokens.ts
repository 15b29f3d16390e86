/**
 * The tokens that people have made: for a project's members, or for the server as a whole.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * A secret leaves this program once, in the answer to whoever asked for it; only
 * its hash is kept. Sessions of browsers are no tokens that somebody made.
 */
import { lesser, type Role } from "@tropism/api/authorization"
import { type Token, tokenBounds } from "@tropism/api/members-api"
import type { ProjectId, TokenId, UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie, outpaced, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { digestOf } from "../task/digest.ts"

/** A token as it is to be. */
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

/** The tokens of one place, whose statements need `R`. */
interface Kept<R> {
  /** Makes a token with its secret; undefined when there are as many as there may be. */
  readonly make: (wish: TokenWish, by: UserId) => Effect.Effect<IssuedToken | undefined, never, R>
  /** Tokens newest first; those of one user, or of all. */
  readonly list: (
    of: UserId | null,
    before: string | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<Token>, never, R>
  /** Ends a token here, one user's or anybody's; false when there is none. */
  readonly end: (of: UserId | null, id: TokenId) => Effect.Effect<boolean, never, R>
}

export class IssuedTokens extends Context.Service<
  IssuedTokens,
  {
    /** Those of the project of this transaction. */
    readonly ofProject: Kept<ProjectTransaction> & {
      /** What a token may do here, one user's or anybody's; undefined when there is none. */
      readonly find: (
        of: UserId | null,
        id: TokenId
      ) => Effect.Effect<{ readonly role: Role } | undefined, never, ProjectTransaction>
    }
    /** Those that reach every project. */
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
        // Whoever it is for was removed since that was judged.
        if (!isMade) return yield* outpaced
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
      // Whoever makes another meanwhile waits, so that the bound holds.
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
