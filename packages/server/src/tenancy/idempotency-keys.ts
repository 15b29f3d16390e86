/**
 * What came of a request, found again by whoever sends it again under the same key.
 *
 * The key's row is written in the transaction that does the work, so one is never
 * there without the other. Of many who come at once with one key, one works and
 * the others wait for its end, with no connection, and are told of what it did. A refusal is not
 * kept: it is judged anew. What is kept is sealed with the caller's own secret,
 * which is not in the database: only whoever sends it again can read it. Whose
 * secret is renewed from time to time has it sealed with the server's key.
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

/** Every bound of keys, with its unit in its name. */
export const keyLimits = {
  /** What came of a request is told again for this long. */
  keepMs: 2_592_000_000,
  /** Of what is kept for one key, as JSON: more than one transaction comes to. Sealed, in base64, it is a third more, and one row. */
  outcomeMaxBytes: 16_777_216,
  /** A repeat waits this long for the first, which is at work: less than programs between a client and a server are wont to wait. */
  waitMs: 25_000,
  /** Between two looks at whether the first is done, where that is at work at another server and no ring told of its end. */
  lookIntervalMs: 1_000,
  retryAfterSeconds: 2,
  /** Keys removed in one transaction, transactions in one look, and between two looks for old ones. */
  forgetBatchKeys: 10_000,
  forgetMaxBatches: 1_000,
  forgetIntervalMs: 3_600_000
} as const

/** Of what is kept for one key, as JSON, in bytes. */
export class OutcomeMaxBytes extends Context.Reference<number>("@tropism/server/database/OutcomeMaxBytes", {
  defaultValue: () => keyLimits.outcomeMaxBytes
}) {}

/** The request cannot be taken under this key. */
export class KeyRefused extends Schema.TaggedError<KeyRefused>()("KeyRefused", {
  /** Another request has come under it; the same one is at work; what came of it is too much to be kept, or cannot be opened here. */
  reason: Schema.Literals(["reused", "busy", "tooLarge", "unreadable"])
}) {}

/** The first request under the key is at work at another server. */
export class KeyElsewhere extends Schema.TaggedError<KeyElsewhere>()("KeyElsewhere", {}) {}

/** Whose a key is. */
export interface KeyHolder {
  /** Stays the same for as long as the key does; a digest, hexadecimal. */
  readonly id: string
  /** The secret that let the request in. */
  readonly secret: Redacted.Redacted
  /** Whether a repeat may come with another secret. */
  readonly isRenewed: boolean
}

/** A request that may come again. */
export interface KeyedRequest {
  readonly key: string
  readonly by: UserId
  readonly holder: KeyHolder
  /** Which door, and of what: a key is the caller's own at each. */
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

/** Does the work and keeps what came of it, plain JSON, or answers what came of it before; nothing is kept of an undefined outcome. */
type Once<R0> = <A, E, R>(
  request: KeyedRequest,
  work: Effect.Effect<A, E, R>
) => Effect.Effect<Kept<A>, E | KeyRefused | KeyElsewhere, R | R0>

export class IdempotencyKeys extends Context.Service<
  IdempotencyKeys,
  {
    /** Of a project, in its transaction. */
    readonly once: Once<ProjectTransaction>
    /** Of the server as a whole, in a transaction of its own. */
    readonly onceOnServer: Once<never>
    /** What came of a request of this transaction's project before, without waiting for one that is at work. */
    readonly recall: (request: KeyedRequest) => Effect.Effect<unknown, KeyRefused, ProjectTransaction>
    /** Does the work when no other request is at work under the same key, at any server; whoever waits has no connection. */
    readonly inTurn: <A, E, R>(
      request: Omit<KeyedRequest, "by">,
      work: Effect.Effect<A, E, R>
    ) => Effect.Effect<A, Exclude<E, KeyElsewhere> | KeyRefused, R>
    /** Removes keys that are old enough, a batch of them, and answers how many. */
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

      /** Holds the key until the transaction ends; who finds it held ends its own, to wait without one. The primary key guards what a hash cannot. */
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
        // Told as it is kept, so that no repeat is told otherwise.
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

      /** Does work until the key is not held elsewhere: again at each ring, and now and then, for a server that died rings no bell. */
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
        // Whoever was at work, however it ended: who found the key held has nothing to tell.
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
              // Who goes away while it waits is not waited for.
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

/** Where a request's row is. */
interface Rows {
  readonly place: string
  readonly digest: string
  readonly find: Statement.Statement<{ readonly digest: string; readonly outcome: string }>
  readonly keep: (outcome: string) => Statement.Statement<object>
}

const hashOf = (text: string): string => createHash("sha256").update(text, "utf8").digest("hex")

/** What the caller's secret seals with; it does not follow from the hash of it that the database has. */
const keyOf = ({ secret }: KeyHolder): SealingKey => ({
  id: "000000000000",
  bytes: Redacted.make(
    new Uint8Array(
      createHash("sha256").update("tropism idempotency key\n").update(Redacted.value(secret)).digest()
    )
  )
})

// The port by which whoever waits under a key hears that the work under it has ended.
//
// A ring says nothing of what came of the work and may be lost: whoever hears it
// asks the database.

export class KeyNotifications extends Context.Service<
  KeyNotifications,
  {
    /** Tells whoever waits for this key, here and at other servers. */
    readonly ring: (keyHash: string) => Effect.Effect<void>
    /** A mailbox that holds at most one ring, until the scope ends. */
    readonly listen: (keyHash: string) => Effect.Effect<Queue.Dequeue<void>, never, Scope.Scope>
  }
>()("@tropism/server/database/KeyNotifications") {}
