/**
 * Tells the loops of this program that something is due.
 *
 * Flow: graph → **outbox** → dispatch → run → tool → task
 *
 * A wake-up carries no work and may be lost or doubled without harm: whoever is
 * woken reads the rows, and a sweep finds what no wake-up told of. Wake-ups that
 * come while nobody looks are one.
 */
import { Cause, Context, Effect, Layer, Queue, type Scope } from "effect"

/** What may be due. `context:…` is said when that context's log has grown, `run:…` when that run has ended. */
export type Topic =
  | "events"
  | "releases"
  | "runs"
  | "schedules"
  | `feed:${string}`
  | `context:${string}`
  | `run:${string}`

export class WakeUps extends Context.Service<
  WakeUps,
  {
    /** Wakes whoever listens to the topic. */
    readonly signal: (topic: Topic) => Effect.Effect<void>
    /** A mailbox that holds at most one wake-up of the topic, until the scope ends. */
    readonly listen: (topic: Topic) => Effect.Effect<Queue.Dequeue<void>, never, Scope.Scope>
  }
>()("@tropism/server/outbox/WakeUps") {
  static readonly layer = Layer.effect(
    WakeUps,
    Effect.sync(() => {
      const listeners = new Map<Topic, Set<Queue.Queue<void>>>()
      const leave = (topic: Topic, queue: Queue.Queue<void>) =>
        Effect.sync(() => {
          const queues = listeners.get(topic)
          queues?.delete(queue)
          if (queues?.size === 0) listeners.delete(topic)
        })
      return WakeUps.of({
        signal: (topic) =>
          Effect.sync(() => {
            for (const queue of listeners.get(topic) ?? []) Queue.offerUnsafe(queue, undefined)
          }),
        listen: (topic) =>
          Effect.acquireRelease(
            Effect.map(Queue.sliding<void>(1), (queue) => {
              const queues = listeners.get(topic) ?? new Set()
              listeners.set(topic, queues.add(queue))
              return queue
            }),
            (queue) => leave(topic, queue)
          )
      })
    })
  )
}

/** Waits for a wake-up, but no longer than the sweep's interval. */
export const nextWakeUp = (mailbox: Queue.Dequeue<void>, sweepIntervalMs: number): Effect.Effect<void> =>
  Effect.raceFirst(Queue.take(mailbox), Effect.sleep(sweepIntervalMs))

/**
 * Does what is due whenever the topic is signalled, and at each sweep, for ever.
 *
 * **Details** `work` answers whether there may be more. A defect in it (the
 * database is away, say) is logged and ends only that round: the next sweep
 * tries again.
 */
export const drive = <R>(
  name: string,
  topic: Topic,
  /** A function answers how long to wait after the round that was. */
  sweepIntervalMs: number | (() => number),
  work: Effect.Effect<boolean, never, R>
) =>
  Effect.gen(function* () {
    const mailbox = yield* (yield* WakeUps).listen(topic)
    const round = survive(name, work, false)
    while (true) {
      const hasMore = yield* round
      if (!hasMore)
        yield* nextWakeUp(mailbox, typeof sweepIntervalMs === "number" ? sweepIntervalMs : sweepIntervalMs())
    }
  }).pipe(Effect.scoped, Effect.withSpan(name))

/** Does one project's share of a round: a defect in it is logged, and the other projects have their turn. */
export const share = <R>(
  name: string,
  projectId: string,
  work: Effect.Effect<number, never, R>
): Effect.Effect<number, never, R> => survive(`${name} of project ${projectId}`, work, 0)

const survive = <A, R>(name: string, work: Effect.Effect<A, never, R>, otherwise: A) =>
  Effect.catchCause(work, (cause) =>
    Cause.hasInterrupts(cause)
      ? Effect.failCause(cause)
      : Effect.as(Effect.logError(`${name} failed and will try again`, Cause.squash(cause)), otherwise)
  )
