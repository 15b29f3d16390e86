/**
 * Carries wake-ups between the servers on one database.
 *
 * Flow: graph → **outbox** → dispatch → run → tool → task
 *
 * PostgreSQL is the messenger, after the commit and from a connection of this
 * file's own: NOTIFY inside a write would take a lock that all writers share.
 * What is said within a moment goes out together. A courier that lost its
 * connection does not know what it missed, so once it is back it wakes everybody
 * here, and they read. Without a courier the lookout finds everything a little later.
 */
import { PgConnection } from "@effect/sql-pg"
import { Effect, Queue, type Redacted, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { Ids } from "../ids.ts"
import { goneClients } from "../database/pool.ts"
import { outboxLimits } from "../limits.ts"
import { poolLimits } from "../database/pool-limits.ts"
import { type Topic, WakeUps } from "./wake-ups.ts"

const channel = "tropism_wake_ups"

/** Some topics, and the server that says them; `*` is every topic. */
const Letter = Schema.fromJsonString(
  Schema.Struct({ from: Schema.String, topics: Schema.Array(Schema.String) })
)
const readLetter = Schema.decodeUnknownOption(Letter)

/** Carries wake-ups to and fro for ever; a broken connection is opened again. */
export const carryWakeUps = Effect.fn("carryWakeUps")(function* (options: {
  readonly url: Redacted.Redacted
  readonly startupParameters: Readonly<Record<string, string>>
}) {
  const wakeUps = yield* WakeUps
  const from = yield* (yield* Ids).next

  const journey = Effect.gen(function* () {
    const opened = yield* PgConnection.make({
      url: options.url,
      startupParameters: { ...options.startupParameters, ...goneClients },
      applicationName: "tropism wake-ups",
      keepAlive: poolLimits.keepAliveMs
    })
    const connection = yield* opened.pin
    const letters = yield* connection.listen(channel)
    yield* wakeUps.hear(["*"])
    yield* Effect.raceFirst(receive(letters), send(connection))
  }).pipe(Effect.scoped)

  const receive = (letters: Queue.Dequeue<PgConnection.Notification, SqlError.SqlError>) =>
    Effect.gen(function* () {
      const letter = readLetter((yield* Queue.take(letters)).payload)
      if (letter._tag === "Some" && letter.value.from !== from) yield* wakeUps.hear(letter.value.topics)
    }).pipe(Effect.forever)

  const send = (connection: PgConnection.PgConnection) =>
    Effect.gen(function* () {
      const topics = yield* Effect.raceFirst(wakeUps.untold, nothingToSay)
      const payloads = pack(topics).map((some) => JSON.stringify({ from, topics: some }))
      yield* connection
        .query(`select pg_notify('${channel}', payload) from unnest($1::text[]) payload`, [payloads])
        .pipe(Effect.timeout(poolLimits.silentMs))
      yield* Effect.sleep(outboxLimits.tellIntervalMs)
    }).pipe(Effect.forever)

  return yield* journey.pipe(
    Effect.catch((error) =>
      Effect.logWarning("Other servers are not heard for a moment: the connection for wake-ups broke", error)
    ),
    Effect.andThen(Effect.sleep(outboxLimits.reconnectDelayMs)),
    Effect.forever
  )
})

/** A letter without a topic, which no one gets: its answer shows that the connection is heard. */
const nothingToSay = Effect.as(Effect.sleep(poolLimits.silentMs), [] as ReadonlyArray<Topic>)

/** Topics in letters that are short enough for NOTIFY, which takes less than 8,000 bytes. */
const pack = (topics: ReadonlyArray<Topic>): ReadonlyArray<ReadonlyArray<Topic>> => {
  const size = outboxLimits.letterTopics
  return Array.from({ length: Math.ceil(topics.length / size) }, (_, index) =>
    topics.slice(index * size, (index + 1) * size)
  )
}
