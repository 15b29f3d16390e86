/**
 * Idempotency keys: returns the stored outcome of a request when it is repeated under the same key.
 *
 * **Invariant** The key's row is written in the transaction that does the work, so neither exists without the other. Of
 * concurrent requests under one key one works; the others wait without a connection and return its outcome. A refusal is
 * not stored, so a repeat is judged again. Outcomes are sealed with the caller's secret, which the database does not
 * have, so only the caller can read them. Where that secret rotates, the server's key seals them.
 */
import { createHash } from "node:crypto"
import type { UserId } from "@tropism/domain/ids"
import { canonicalJson } from "@tropism/domain/json"
import {
  Cause,
  Clock,
  Context,
  Effect,
  Exit,
  Layer,
  Option,
  Queue,
  Redacted,
  Schema,
  Semaphore,
  type Scope
} from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { opened, sealed, type SealingKey, SealingKeys } from "../database/sealing.ts"

/** Limits of idempotency keys, with units in their names. */
export const keyLimits = {
  /** How long an outcome is kept. */
  keepMs: 2_592_000_000,
  /** Stored outcome of one key, as JSON: more than any transaction returns. Sealed in base64 it is a third larger, and one row. */
  outcomeMaxBytes: 16_777_216,
  /** How long a repeat waits for the running request: less than the usual timeout of proxies. */
  waitMs: 25_000,
  /** Interval at which a waiting repeat checks again, in case the notification from another server was lost. */
  lookIntervalMs: 1_000,
  retryAfterSeconds: 2,
  /** Keys deleted per transaction, transactions per sweep, and the interval between sweeps. */
  forgetBatchKeys: 10_000,
  forgetMaxBatches: 1_000,
  forgetIntervalMs: 3_600_000
} as const

/** Maximum size of a stored outcome as JSON, in bytes. */
export class OutcomeMaxBytes extends Context.Reference<number>("@tropism/server/database/OutcomeMaxBytes", {
  defaultValue: () => keyLimits.outcomeMaxBytes
}) {}

/** The request is refused under this key. */
export class KeyRefused extends Schema.TaggedError<KeyRefused>()("KeyRefused", {
  /** The key was used for another request; the request is still running; its outcome is too large, or cannot be decrypted here. */
  reason: Schema.Literals(["reused", "busy", "tooLarge", "unreadable"])
}) {}

/** The first request under the key is running at another server. */
export class KeyElsewhere extends Schema.TaggedError<KeyElsewhere>()("KeyElsewhere", {}) {}

/** The owner of a key. */
export interface KeyHolder {
  /** Stable for the lifetime of the key; a hexadecimal digest. */
  readonly id: string
  /** The secret that authenticated the request. */
  readonly secret: Redacted.Redacted
  /** Whether a repeat may come with another secret. */
  readonly isRenewed: boolean
}

/** A request that may be repeated. */
export interface KeyedRequest {
  readonly key: string
  readonly by: UserId
  readonly holder: KeyHolder
  /** The endpoint and its target; a key is unique per caller and route. */
  readonly route: string
  /** The content of the request; a key is valid for one. */
  readonly asked: Schema.Json
}

/** The outcome of a request. */
export interface Kept<A> {
  readonly outcome: A
  /** The outcome is stored from an earlier request. */
  readonly isRepeat: boolean
}

/** Does the work and stores its outcome as plain JSON, or returns the stored outcome. An undefined outcome is not stored. */
type Once<R0> = <A, E, R>(
  request: KeyedRequest,
  work: Effect.Effect<A, E, R>
) => Effect.Effect<Kept<A>, E | KeyRefused | KeyElsewhere, R | R0>

export class IdempotencyKeys extends Context.Service<
  IdempotencyKeys,
  {
    /** For a request of a project, in its transaction. */
    readonly once: Once<ProjectTransaction>
    /** For a request of the whole server, in a transaction of its own. */
    readonly onceOnServer: Once<never>
    /** Returns a stored outcome for this transaction's project, without waiting for a running request. */
    readonly recall: (request: KeyedRequest) => Effect.Effect<unknown, KeyRefused, ProjectTransaction>
    /** Does the work while no other request runs under the same key, at any server; waiters hold no connection. */
    readonly inTurn: <A, E, R>(
      request: Omit<KeyedRequest, "by">,
      work: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, Exclude<E, KeyElsewhere> | KeyRefused, R>
    /** Deletes a batch of expired keys and returns how many. */
    readonly forget: Effect.Effect<number>
  }
>()("@tropism/server/database/IdempotencyKeys") {
  static readonly layer = Layer.effect(
    IdempotencyKeys,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      const bells = yield* KeyNotifications
      const serverKeys = yield* SealingKeys
      const outcomeMaxBytes = yield* OutcomeMaxBytes

      /**
       * Locks the key until the transaction ends; a request that finds it locked ends its own transaction and waits without one. The
       * primary key covers hash collisions of the lock.
       */
      const takeTurn = Effect.fnUntraced(function* (place: string) {
        const [row] = yield* orDie(sql<{ taken: boolean }>`
          select pg_try_advisory_xact_lock(hashtextextended(${place}, 1)) as taken`)
        if (row?.taken !== true) return yield* new KeyElsewhere()
      })

      const rowsOf = (projectId: string | null, request: KeyedRequest): Rows => {
        const { asked, by, holder, key, route } = request
        const token = holder.id
        const digest = hashOf(canonicalJson(asked))
        const place = JSON.stringify([projectId, by, token, route, key])
        return {
          place,
          digest,
          find:
            projectId === null
              ? sql`select digest, outcome from kb.find_server_request(${by}, ${token}, ${route}, ${key})`
              : sql`
                  select digest, outcome from kb.idempotency_keys
                  where project_id = ${projectId} and user_id = ${by} and token = ${token} and route = ${route} and key = ${key}`,
          keep: (outcome) =>
            projectId === null
              ? sql`select kb.keep_server_request(${by}, ${token}, ${route}, ${key}, ${digest}, ${JSON.stringify(outcome)}::text::jsonb)`
              : sql`
                  insert into kb.idempotency_keys (project_id, user_id, token, route, key, digest, outcome)
                  values (${projectId}, ${by}, ${token}, ${route}, ${key}, ${digest}, ${JSON.stringify(outcome)}::text::jsonb)`
        }
      }

      const sealingKeyOf = (holder: KeyHolder): SealingKey =>
        (holder.isRenewed ? serverKeys[0] : undefined) ?? keyOf(holder)

      const find = Effect.fnUntraced(function* (rows: Rows, { holder }: KeyedRequest) {
        const [row] = yield* orDie(rows.find)
        if (row && row.digest !== rows.digest) return yield* new KeyRefused({ reason: "reused" })
        if (!row) return undefined
        const text = opened([...serverKeys, keyOf(holder)], rows.place, row.outcome)
        if (text === undefined) return yield* new KeyRefused({ reason: "unreadable" })
        return JSON.parse(text) as unknown
      })

      const doOnce = Effect.fnUntraced(function* <A, E, R>(
        rows: Rows,
        request: KeyedRequest,
        work: Effect.Effect<A, E, R>
      ) {
        yield* takeTurn(rows.place)
        const found = yield* find(rows, request)
        if (found !== undefined) {
          const repeated: Kept<A> = { outcome: found as A, isRepeat: true }
          return repeated
        }
        const done = yield* work
        if (done === undefined) {
          const nothing: Kept<A> = { outcome: done, isRepeat: false }
          return nothing
        }
        const text = JSON.stringify(done)
        if (Buffer.byteLength(text) > outcomeMaxBytes) return yield* new KeyRefused({ reason: "tooLarge" })
        yield* orDie(rows.keep(sealed(sealingKeyOf(request.holder), rows.place, text)))
        // Returned as stored, so that a repeat returns the same.
        const kept: Kept<A> = { outcome: JSON.parse(text) as A, isRepeat: false }
        return kept
      })

      const once: Once<ProjectTransaction> = Effect.fn("IdempotencyKeys.once")(function* (request, work) {
        const { projectId } = yield* ProjectTransaction
        return yield* doOnce(rowsOf(projectId, request), request, work)
      })

      const onceOnServer: Once<never> = Effect.fn("IdempotencyKeys.onceOnServer")((request, work) =>
        orDie(sql.withTransaction(doOnce(rowsOf(null, request), request, work)))
      )

      const turns = new Map<string, { readonly one: Semaphore.Semaphore; count: number }>()

      /**
       * Does work until no other server holds the key. Retries on each notification and at an interval, because a crashed server
       * sends none.
       */
      const untilFree = <A, E, R>(keyHash: string, untilMs: number, work: Effect.Effect<A, E, R>) =>
        Effect.gen(function* () {
          const rings = yield* bells.listen(keyHash)
          while (true) {
            const done = yield* Effect.map(work, Option.some).pipe(
              Effect.catchIf(isElsewhere, () => Effect.succeedNone)
            )
            if (Option.isSome(done)) return done.value
            const leftMs = untilMs - (yield* Clock.currentTimeMillis)
            if (leftMs <= 0) return yield* new KeyRefused({ reason: "busy" })
            yield* Effect.timeoutOption(Queue.take(rings), Math.min(leftMs, keyLimits.lookIntervalMs))
          }
        }).pipe(Effect.scoped)

      const inTurn = <A, E, R>(
        { holder, key, route }: Omit<KeyedRequest, "by">,
        work: Effect.Effect<A, E, R>
      ): Effect.Effect<A, Exclude<E, KeyElsewhere> | KeyRefused, R> => {
        const place = JSON.stringify([holder.id, route, key])
        const keyHash = hashOf(place)
        const enter = Effect.sync(() => {
          const turn = turns.get(place) ?? { one: Semaphore.makeUnsafe(1), count: 0 }
          turn.count += 1
          turns.set(place, turn)
          return turn
        })
        const leave = (turn: { count: number }) =>
          Effect.sync(() => {
            turn.count -= 1
            if (turn.count === 0) turns.delete(place)
          })
        const taken = (one: Semaphore.Semaphore) =>
          Effect.timeoutOrElse(one.take(1), {
            duration: keyLimits.waitMs,
            orElse: () => Effect.fail(new KeyRefused({ reason: "busy" }))
          })
        // Notifies however the work ended, except when the key was held elsewhere: then there is nothing to announce.
        const told = Effect.onExit(work, (exit) =>
          Exit.isFailure(exit) && isElsewhere(Option.getOrUndefined(Cause.findErrorOption(exit.cause)))
            ? Effect.void
            : bells.ring(keyHash)
        )
        return Effect.flatMap(Clock.currentTimeMillis, (nowMs) => {
          const first = Effect.catchIf(told, isElsewhere, () =>
            untilFree(keyHash, nowMs + keyLimits.waitMs, told)
          ) as Effect.Effect<A, Exclude<E, KeyElsewhere> | KeyRefused, R>
          return Effect.acquireUseRelease(
            enter,
            ({ one }) =>
              // The wait itself stays interruptible.
              Effect.uninterruptibleMask((restore) =>
                Effect.andThen(restore(taken(one)), Effect.ensuring(restore(first), one.release(1)))
              ),
            leave
          )
        })
      }

      const recall = Effect.fn("IdempotencyKeys.recall")(function* (request: KeyedRequest) {
        const { projectId } = yield* ProjectTransaction
        return yield* find(rowsOf(projectId, request), request)
      })

      const forget = sql<{ count: number }>`
        select kb.forget_idempotency_keys(${keyLimits.keepMs / 1_000}::float8, ${keyLimits.forgetBatchKeys}::int) as count`.pipe(
        Effect.map(([row]) => row?.count ?? 0),
        orDie
      )

      return IdempotencyKeys.of({ once, onceOnServer, inTurn, recall, forget })
    })
  )
}

const isElsewhere = (error: unknown): error is KeyElsewhere => error instanceof KeyElsewhere

/** The table and scope of a request's row. */
interface Rows {
  readonly place: string
  readonly digest: string
  readonly find: Statement.Statement<{ readonly digest: string; readonly outcome: string }>
  readonly keep: (outcome: string) => Statement.Statement<object>
}

const hashOf = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex")

/** The sealing key from the caller's secret; the hash stored in the database does not reveal it. */
const keyOf = ({ secret }: KeyHolder): SealingKey => ({
  id: "000000000000",
  bytes: Redacted.make(
    new Uint8Array(
      createHash("sha256").update("tropism idempotency key\n").update(Redacted.value(secret)).digest()
    )
  )
})

// Port that notifies waiters when the work under a key ends.
//
// A notification carries no outcome and may be lost; the receiver reads the database.

export class KeyNotifications extends Context.Service<
  KeyNotifications,
  {
    /** Notifies the waiters for this key, here and at other servers. */
    readonly ring: (keyHash: string) => Effect.Effect<void>
    /** A queue that holds at most one notification, until the scope ends. */
    readonly listen: (keyHash: string) => Effect.Effect<Queue.Dequeue<void>, never, Scope.Scope>
  }
>()("@tropism/server/database/KeyNotifications") {}
