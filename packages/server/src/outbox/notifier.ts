/**
 * Tells whoever waits that something is due, here and through the courier at other servers.
 *
 * A wake-up carries no work and may be lost or doubled without harm: whoever is
 * woken reads the rows, and the lookout (`cluster/lookout.ts`) finds what no
 * wake-up told of. Wake-ups that come while nobody looks are one.
 */
import { PgConnection } from "@effect/sql-pg"
import { Cause, Context, Effect, Layer, Queue, type Scope, type Redacted, Schema } from "effect"
import type { SqlError } from "effect/sql"
import { isBrokenByAway } from "../database/connection-errors.ts"
import { poolLimits } from "../database/limits.ts"
import { goneClients } from "../database/pool.ts"
import { Ids } from "../ids.ts"
import { outboxLimits } from "../limits.ts"
import { countLoopFaults } from "../telemetry/metrics.ts"
import { reportOutage } from "./outages.ts"

/**
 * What may be due. `context:…` is said when that context's log has grown, `run:…` when that run has come to rest,
 * goes on after it, or something that waited for a person was decided, `taken:…` when somebody else than its attempt has brought it there, `subscribed:…`
 * when that session of an MCP client wants to be told of other resources than before, `server:…` when that foreign server is kept otherwise,
 * `key:…` when a request under that key has ended.
 */
export type Topic =
  | "events"
  | "releases"
  | "runs"
  | "schedules"
  | "sources"
  | "backtests"
  | "deliveries"
  | "waits"
  | "providers"
  | `feed:${string}`
  | `context:${string}`
  | `run:${string}`
  | `taken:${string}`
  | `subscribed:${string}`
  | `server:${string}`
  | `key:${string}`
  /** Anything: what had to be told was too much, or nobody knows what was missed. */
  | "*"

/** What only the server that said it needs to know: it does the work itself at once. */
const ownBusiness: ReadonlySet<Topic> = new Set<Topic>(["events", "releases", "deliveries"])

export class Notifier extends Context.Service<
  Notifier,
  {
    /** Wakes whoever listens to the topic, here and at other servers. */
    readonly signal: (topic: Topic) => Effect.Effect<void>
    /** A mailbox that holds at most one wake-up of the topic, until the scope ends. */
    readonly listen: (topic: Topic) => Effect.Effect<Queue.Dequeue<void>, never, Scope.Scope>
    /** Wakes whoever listens here and nowhere else: to what another server has said, or the lookout has found. */
    readonly hear: (topics: ReadonlyArray<string>) => Effect.Effect<void>
    /** What was signalled here and no other server was told, each topic once; waits until there is any. */
    readonly untold: Effect.Effect<ReadonlyArray<Topic>>
  }
>()("@tropism/server/outbox/Notifier") {
  static readonly layer = Layer.effect(
    Notifier,
    Effect.gen(function* () {
      const listeners = new Map<string, Set<Queue.Queue<void>>>()
      const bell = yield* Queue.sliding<void>(1)
      const toTell = new Set<Topic>()
      let isTelling = false

      const wake = (topic: string) => {
        const woken = topic === "*" ? [...listeners.values()] : [listeners.get(topic) ?? []]
        for (const queues of woken) for (const queue of queues) Queue.offerUnsafe(queue, undefined)
      }

      /** Nothing is noted where nobody tells it on: a server that is alone. */
      const note = (topic: Topic) => {
        if (!isTelling || ownBusiness.has(topic) || toTell.has("*")) return
        if (toTell.size >= outboxLimits.untoldTopics) {
          toTell.clear()
          toTell.add("*")
        } else toTell.add(topic)
        Queue.offerUnsafe(bell, undefined)
      }

      const leave = (topic: Topic, queue: Queue.Queue<void>) =>
        Effect.sync(() => {
          const queues = listeners.get(topic)
          queues?.delete(queue)
          if (queues?.size === 0) listeners.delete(topic)
        })

      const untold = Effect.gen(function* () {
        isTelling = true
        while (toTell.size === 0) yield* Queue.take(bell)
        const topics = [...toTell]
        toTell.clear()
        return topics
      })

      return Notifier.of({
        signal: (topic) =>
          Effect.sync(() => {
            wake(topic)
            note(topic)
          }),
        listen: (topic) =>
          Effect.acquireRelease(
            Effect.map(Queue.sliding<void>(1), (queue) => {
              const queues = listeners.get(topic) ?? new Set()
              listeners.set(topic, queues.add(queue))
              return queue
            }),
            (queue) => leave(topic, queue)
          ),
        hear: (topics) => Effect.sync(() => topics.forEach(wake)),
        untold
      })
    })
  )
}

/** Waits for a wake-up, but no longer than so many milliseconds where there is a number. */
export const nextNotification = (
  mailbox: Queue.Dequeue<void>,
  atMostMs: number | undefined
): Effect.Effect<void> =>
  atMostMs === undefined ? Queue.take(mailbox) : Effect.raceFirst(Queue.take(mailbox), Effect.sleep(atMostMs))

/** How long a loop waits whose rows the lookout looks at: it has no sweep of its own. */
export const untilNotified = (): undefined => undefined

/**
 * Does what is due at once, and then whenever the topic is signalled, for ever.
 *
 * **Details** A loop whose rows the lookout looks at begins when that has found some, so that a server that starts asks once
 * for all of them, and needs no connection for each. `work` answers whether there may be more. A defect in it (the
 * database is away, say) is logged and ends only that round: whoever looks at
 * the rows next, the lookout or a sweep, has it done again.
 */
export const drive = <R>(
  name: string,
  topic: Topic,
  /** A sweep's interval, or what answers how long to wait at most after the round that was. */
  pauseMs: number | (() => number | undefined),
  work: Effect.Effect<boolean, never, R>,
  /** Which of many loops of the name it is. */
  whose?: string
) =>
  Effect.gen(function* () {
    const mailbox = yield* (yield* Notifier).listen(topic)
    const round = survive(name, work, false, whose)
    yield* countLoopFaults(name, 0)
    if (pauseMs === untilNotified) yield* nextNotification(mailbox, undefined)
    while (true) {
      const hasMore = yield* round
      if (!hasMore) yield* nextNotification(mailbox, typeof pauseMs === "number" ? pauseMs : pauseMs())
    }
  }).pipe(Effect.scoped, Effect.withSpan(calledOf(name, whose)))

/** Does one project's share of a round: a defect in it is logged, and the other projects have their turn. */
export const share = <R>(
  name: string,
  projectId: string,
  work: Effect.Effect<number, never, R>
): Effect.Effect<number, never, R> => survive(name, work, 0, `project ${projectId}`)

/**
 * Does it; a defect in it is logged and counted under the name, and answered for by another value. That the database is away is
 * told for all together and counted by nobody.
 */
export const survive = <A, R>(
  name: string,
  work: Effect.Effect<A, never, R>,
  otherwise: A,
  whose?: string
): Effect.Effect<A, never, R> =>
  Effect.catchCause(work, (cause) =>
    Cause.hasInterrupts(cause)
      ? Effect.failCause(cause)
      : Effect.as(
          isBrokenByAway(cause)
            ? reportOutage(Cause.squash(cause))
            : Effect.andThen(
                countLoopFaults(name, 1),
                Effect.logError(`${calledOf(name, whose)} failed and will try again`, Cause.squash(cause))
              ),
          otherwise
        )
  )

const calledOf = (name: string, whose: string | undefined): string =>
  whose === undefined ? name : `${name} of ${whose}`

// Carries wake-ups between the servers on one database.
//
// PostgreSQL is the messenger, after the commit and from a connection of this
// file's own: NOTIFY inside a write would take a lock that all writers share.
// What is said within a moment goes out together. A courier that lost its
// connection does not know what it missed, so once it is back it wakes everybody
// here, and they read. Without a courier the lookout finds everything a little later.

const channel = "tropism_wake_ups"

/** Some topics, and the server that says them; `*` is every topic. */
const Letter = Schema.fromJsonString(
  Schema.Struct({ from: Schema.String, topics: Schema.Array(Schema.String) })
)
const readLetter = Schema.decodeUnknownOption(Letter)

/** Carries wake-ups to and fro for ever; a broken connection is opened again. */
export const relayNotifications = Effect.fn("relayNotifications")(function* (options: {
  readonly url: Redacted.Redacted
  readonly startupParameters: Readonly<Record<string, string>>
}) {
  const notifier = yield* Notifier
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
    yield* notifier.hear(["*"])
    yield* Effect.raceFirst(receive(letters), send(connection))
  }).pipe(Effect.scoped)

  const receive = (letters: Queue.Dequeue<PgConnection.Notification, SqlError.SqlError>) =>
    Effect.gen(function* () {
      const letter = readLetter((yield* Queue.take(letters)).payload)
      if (letter._tag === "Some" && letter.value.from !== from) yield* notifier.hear(letter.value.topics)
    }).pipe(Effect.forever)

  const send = (connection: PgConnection.PgConnection) =>
    Effect.gen(function* () {
      const topics = yield* Effect.raceFirst(notifier.untold, nothingToSay)
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
