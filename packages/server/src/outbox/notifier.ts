/**
 * Notifies waiting loops and callers that work may be due, here and on other servers.
 *
 * **Invariant**: a notification carries no work, and may be lost or duplicated without harm: listeners read the rows, and the work poller
 * (`cluster/work-poller.ts`) finds what a lost one was about. Pending notifications of a topic are merged into one.
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
 * What may be due.
 * - `context:…`: the context's log has grown.
 * - `run:…`: the run has paused, ended or resumed, or a person has decided something that it waited for.
 * - `taken:…`: something other than the run's attempt has changed its state.
 * - `subscribed:…`: the MCP session's resource subscriptions have changed.
 * - `server:…`: the external MCP server's row has changed.
 * - `key:…`: a request under the idempotency key has ended.
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
  /** Anything: there were too many topics, or notifications may have been missed. */
  | "*"

/** Topics that only the signalling server needs: it does the work itself at once. */
const ownBusiness: ReadonlySet<Topic> = new Set<Topic>(["events", "releases", "deliveries"])

export class Notifier extends Context.Service<
  Notifier,
  {
    /** Notifies listeners of the topic, here and on other servers. */
    readonly signal: (topic: Topic) => Effect.Effect<void>
    /** A queue with at most one pending notification of the topic, until the scope ends. */
    readonly listen: (topic: Topic) => Effect.Effect<Queue.Dequeue<void>, never, Scope.Scope>
    /** Notifies only listeners here: about another server's notification, or a finding of the work poller. */
    readonly hear: (topics: ReadonlyArray<string>) => Effect.Effect<void>
    /** Topics signalled here and not sent to other servers yet, each once; waits until there are any. */
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

      /** Without a relay, as on a single server, nothing is recorded. */
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

/** Waits for a notification, at most a number of milliseconds where there is one. */
export const nextNotification = (
  mailbox: Queue.Dequeue<void>,
  atMostMs: number | undefined
): Effect.Effect<void> =>
  atMostMs === undefined ? Queue.take(mailbox) : Effect.raceFirst(Queue.take(mailbox), Effect.sleep(atMostMs))

/** The pause of a loop whose rows the work poller checks: it has no sweep of its own. */
export const untilNotified = (): undefined => undefined

/**
 * Runs a loop's due work at once, and then at each notification, endlessly.
 *
 * A loop whose rows the work poller checks starts when that finds some, so that a starting server queries once for all loops and needs no
 * connection for each. `work` returns whether there may be more. A defect in it (such as a database outage) is logged and ends only that
 * round: the work poller or a sweep starts the next.
 */
export const drive = <R>(
  name: string,
  topic: Topic,
  /** A sweep's interval, or a function that returns the longest pause after the last round. */
  pauseMs: number | (() => number | undefined),
  work: Effect.Effect<boolean, never, R>,
  /** Identifies one of several loops with this name. */
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

/** Runs one project's share of a round: a defect is logged, and the other projects have their turn. */
export const share = <R>(
  name: string,
  projectId: string,
  work: Effect.Effect<number, never, R>
): Effect.Effect<number, never, R> => survive(name, work, 0, `project ${projectId}`)

/**
 * Runs an effect; a defect is logged and counted under the name, and replaced by another value. A database outage is reported once for all
 * and not counted.
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

// Relays notifications between the servers of one database, through PostgreSQL's NOTIFY.
//
// NOTIFY runs after the commit, on a connection of its own: inside a write it would take a lock that all writers share. Notifications
// within a moment are sent together. A relay that lost its connection does not know what it missed, so on reconnection it notifies every
// listener here. Without a relay the work poller finds everything a little later.

const channel = "tropism_wake_ups"

/** Topics and the server that sends them; `*` is every topic. */
const Letter = Schema.fromJsonString(
  Schema.Struct({ from: Schema.String, topics: Schema.Array(Schema.String) })
)
const readLetter = Schema.decodeUnknownOption(Letter)

/** Sends and receives notifications endlessly; reconnects when the connection breaks. */
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

/** A message without topics, which is ignored: its delivery proves that the connection works. */
const nothingToSay = Effect.as(Effect.sleep(poolLimits.silentMs), [] as ReadonlyArray<Topic>)

/** Groups topics so that each message fits NOTIFY's limit of less than 8,000 bytes. */
const pack = (topics: ReadonlyArray<Topic>): ReadonlyArray<ReadonlyArray<Topic>> => {
  const size = outboxLimits.letterTopics
  return Array.from({ length: Math.ceil(topics.length / size) }, (_, index) =>
    topics.slice(index * size, (index + 1) * size)
  )
}
