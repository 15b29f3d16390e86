/**
 * What came of a request, found again by whoever sends it again under the same key.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, all on **database**
 *
 * The key's row is written in the transaction that does the work, so one is never
 * there without the other. Of many who come at once with one key, one works and
 * the others wait for its commit and are told of what it did. A refusal is not
 * kept: it is judged anew.
 */
import type { UserId } from "@tropism/domain/ids"
import { canonicalJson } from "@tropism/domain/json"
import { createHash } from "node:crypto"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "./database.ts"

/** Every bound of keys, with its unit in its name. */
export const keyLimits = {
  /** What came of a request is told again for this long. */
  keepMs: 2_592_000_000,
  /** Keys removed in one transaction, and between two looks for old ones. */
  forgetBatchKeys: 10_000,
  forgetIntervalMs: 3_600_000
} as const

/** Another request has come under this key. */
export class KeyReused extends Schema.TaggedError<KeyReused>()("KeyReused", { key: Schema.String }) {}

/** A request that may come again. */
export interface KeyedRequest {
  /** Absent where the caller has said no key: then each is a request of its own. */
  readonly key: string | undefined
  readonly by: UserId
  /** Of which door; a key is the caller's own at each. */
  readonly route: string
  /** What was asked for: under one key there is one. */
  readonly asked: Schema.Json
}

/** What came of a request. */
export interface Kept<A> {
  readonly outcome: A
  /** It was done before, and not now. */
  readonly isRepeat: boolean
}

export class IdempotencyKeys extends Context.Service<
  IdempotencyKeys,
  {
    /** Does the work and keeps what came of it under the request's key, or answers what came of it before. */
    readonly once: <A extends Schema.Json, E, R>(
      request: KeyedRequest,
      work: Effect.Effect<A, E, R>
    ) => Effect.Effect<Kept<A>, E | KeyReused, R | ProjectTransaction>
    /** Removes keys that are old enough, a batch of them, and answers how many. */
    readonly forget: Effect.Effect<number>
  }
>()("@tropism/server/database/IdempotencyKeys") {
  static readonly layer = Layer.effect(
    IdempotencyKeys,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const once = Effect.fn("IdempotencyKeys.once")(function* <A extends Schema.Json, E, R>(
        { asked, by, key, route }: KeyedRequest,
        work: Effect.Effect<A, E, R>
      ) {
        const { projectId } = yield* ProjectTransaction
        if (key === undefined) {
          const made: Kept<A> = { outcome: yield* work, isRepeat: false }
          return made
        }
        const digest = createHash("sha256").update(canonicalJson(asked), "utf8").digest("hex")
        const name = JSON.stringify([projectId, by, route, key])
        // Whoever comes with the same key waits here for the commit; the primary key guards what a hash cannot.
        yield* orDie(sql`select pg_advisory_xact_lock(hashtextextended(${name}, 1))`)
        const [row] = yield* orDie(
          sql<{ digest: string; outcome: A }>`
            select digest, outcome from kb.idempotency_keys
            where project_id = ${projectId} and user_id = ${by} and route = ${route} and key = ${key}`
        )
        if (row && row.digest !== digest) return yield* new KeyReused({ key })
        if (row) {
          const found: Kept<A> = { outcome: row.outcome, isRepeat: true }
          return found
        }
        const outcome = yield* work
        yield* orDie(
          sql`
            insert into kb.idempotency_keys (project_id, user_id, route, key, digest, outcome)
            values (${projectId}, ${by}, ${route}, ${key}, ${digest}, ${JSON.stringify(outcome)}::text::jsonb)`
        )
        const kept: Kept<A> = { outcome, isRepeat: false }
        return kept
      })

      const forget = sql<{ count: number }>`
        select kb.forget_idempotency_keys(${keyLimits.keepMs / 1_000}::float8, ${keyLimits.forgetBatchKeys}::int) as count`.pipe(
        Effect.map(([row]) => row?.count ?? 0),
        orDie
      )

      return IdempotencyKeys.of({ once, forget })
    })
  )
}
