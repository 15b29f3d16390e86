/**
 * Turns a secret into the principal it stands for.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * Only hashes are kept, so the database gives nobody a login. A one-time code
 * becomes a session, once: the database decides which of two browsers gets it.
 */
import type { Principal } from "@tropism/api/authorization"
import { UserId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { orDie } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { httpLimits } from "../limits.ts"
import { digestOf } from "../task/digest.ts"

export const adminUser = UserId.make("admin")

export class Tokens extends Context.Service<
  Tokens,
  {
    /** The principal of a token or session; undefined when it is unknown, expired or revoked. */
    readonly find: (secret: Redacted.Redacted) => Effect.Effect<Principal | undefined>
    /** The principal of the token whose SHA-256 this is, hexadecimal: for what goes on after a request. */
    readonly findByHash: (hash: string) => Effect.Effect<Principal | undefined>
    /** Lets a secret act as the server's admin. */
    readonly admit: (secret: Redacted.Redacted) => Effect.Effect<void>
    /** A code that one browser may exchange for a session of the admin. */
    readonly loginCode: Effect.Effect<Redacted.Redacted>
    /** Exchanges a code for a session's secret; undefined when it was used or has expired. */
    readonly exchange: (code: Redacted.Redacted) => Effect.Effect<Redacted.Redacted | undefined>
  }
>()("@tropism/server/http/Tokens") {
  static readonly layer = Layer.effect(
    Tokens,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const hash = (secret: Redacted.Redacted) => digestOf(Redacted.value(secret))

      const findByHash = Effect.fn("Tokens.findByHash")(function* (digest: string) {
        const [row] = yield* sql<Principal>`select user_id, role, project_ids from kb.find_token(${digest})`
        return row && { userId: row.userId, role: row.role, projectIds: row.projectIds }
      }, orDie)

      const find = Effect.fn("Tokens.find")((secret: Redacted.Redacted) =>
        Effect.flatMap(hash(secret), findByHash)
      )

      const admit = Effect.fn("Tokens.admit")(function* (secret: Redacted.Redacted) {
        yield* sql`select kb.save_admin_token(${yield* ids.next}::uuid, ${yield* hash(secret)}, ${adminUser})`
      }, orDie)

      const loginCode = Effect.gen(function* () {
        const code = Redacted.make(yield* ids.secret)
        yield* sql`select kb.save_login_code(${yield* hash(code)}, ${adminUser}, ${httpLimits.loginCodeMaxAgeSeconds}::int)`
        return code
      }).pipe(orDie)

      const exchange = Effect.fn("Tokens.exchange")(function* (code: Redacted.Redacted) {
        const session = Redacted.make(yield* ids.secret)
        const [row] = yield* sql<{ exchanged: boolean }>`
          select kb.exchange_login_code(${yield* hash(code)}, ${yield* ids.next}::uuid, ${yield* hash(session)}, ${httpLimits.sessionMaxAgeSeconds}::int) as exchanged`
        return row?.exchanged === true ? session : undefined
      }, orDie)

      return Tokens.of({ find, findByHash, admit, loginCode, exchange })
    })
  )
}
