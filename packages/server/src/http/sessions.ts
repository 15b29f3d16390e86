/**
 * The sessions of whoever a credential is of.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * The database finds them by the credential's hash, and none that reaches further
 * than the credential itself. They are opened and known in `tokens.ts`.
 */
import type { Session } from "@tropism/api/sessions-api"
import type { TokenId } from "@tropism/domain/ids"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { onlyRow, orDie } from "../database/database.ts"
import { digestOf } from "../task/digest.ts"

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
