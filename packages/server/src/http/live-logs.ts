/**
 * Streams logs to subscribers: each new event is read once, however many subscribers there are.
 *
 * One reader per log and process follows the log's notifications and fills a shared buffer; it starts with the first subscriber and ends
 * with the last. A subscriber that begins in the past reads pages of the log itself until it has caught up, a few subscribers at a time, so
 * it slows no other down. A subscriber never receives what was purged before it came. A connection that reads nothing for `stallMs` is
 * closed and can resume with its last id; so is one whose permit ends (`access.ts`). All streams end when the server stops.
 */
import type { ProjectId } from "@tropism/domain/ids"
import {
  Array as Arr,
  Cause,
  Context,
  Effect,
  Fiber,
  Layer,
  type Pull,
  type Scope,
  Semaphore,
  Stream
} from "effect"
import { drive, type Topic, Notifier } from "../outbox/notifier.ts"
import { type Permit, Permits } from "./access.ts"
import { streamLimits } from "./limits.ts"
import { Closing } from "./listener.ts"

/** One event of a stream; a transient one has no number. */
export interface SseEvent {
  readonly number: number | undefined
  /** Its id in its log. */
  readonly id: string
  /** The event's type. */
  readonly name: string
  readonly json: unknown
}

/** A log that can be streamed. */
export interface LiveSource {
  /** Equal for all subscribers of the same log. */
  readonly key: string
  readonly projectId: ProjectId
  readonly topic: Topic
  /** The prefix of its event ids, if these contain a number. */
  readonly name?: string
  /** The number of the log's last event. */
  readonly end: Effect.Effect<number>
  /** The next events after a number, in order. */
  readonly read: (after: number, limit: number) => Effect.Effect<ReadonlyArray<SseEvent>>
  /** Whether the log is complete. */
  readonly isOver?: Effect.Effect<boolean>
  /** Whether events may be purged from the log later; the buffer then forgets them soon. */
  readonly isPurgeable?: boolean
  /** Publishes transient events, until the scope ends. */
  readonly passing?: (show: (event: SseEvent) => void) => Effect.Effect<void, never, Scope.Scope>
}

interface Subscriber {
  readonly progress: Progress
  /** Resumes the waiting subscriber, with a text of its own or with new events. */
  wake: ((text: Uint8Array | undefined) => void) | undefined
  /** Closes its connection. */
  cut: () => void
  /** Heartbeats since the last chunk that it has not read yet. */
  held: number
  isHanded: boolean
  /** The server is stopping. */
  isEnded: boolean
  hasBegun: boolean
  /** Size of its next page. */
  pageEvents: number
}

interface LiveLog {
  readonly source: LiveSource
  readonly subscribers: Set<Subscriber>
  recent: RecentEvents | undefined
  isOver: boolean
  reader: Fiber.Fiber<void> | undefined
}

export class LiveLogs extends Context.Service<
  LiveLogs,
  {
    /** The text of all events after a number, preceded by the id of that place, then of new events, with heartbeats while it is quiet. */
    readonly watch: (source: LiveSource, after: number, permit: Permit) => Stream.Stream<Uint8Array>
    /** The number of subscribers at this server. */
    readonly watching: () => number
  }
>()("@tropism/server/http/LiveLogs") {
  static readonly layer = Layer.effect(
    LiveLogs,
    Effect.gen(function* () {
      const notifier = yield* Notifier
      const permits = yield* Permits
      const { begun } = yield* Closing
      let isClosing = false
      const surroundings = yield* Effect.context<never>()
      const logs = new Map<string, LiveLog>()
      const catchingUp = Semaphore.makeUnsafe(streamLimits.catchUps)

      const begin = (source: LiveSource): LiveLog => {
        const log: LiveLog = {
          source,
          subscribers: new Set(),
          recent: undefined,
          isOver: false,
          reader: undefined
        }
        logs.set(source.key, log)
        log.reader = Effect.runForkWith(surroundings)(Effect.provideService(follow(log), Notifier, notifier))
        return log
      }

      const enter = (source: LiveSource, after: number) =>
        Effect.sync(() => {
          const log = logs.get(source.key) ?? begin(source)
          const subscriber: Subscriber = {
            progress: progressAfter(after),
            wake: undefined,
            cut: () => {},
            held: 0,
            isHanded: false,
            isEnded: isClosing,
            hasBegun: false,
            pageEvents: streamLimits.firstPageEvents
          }
          log.subscribers.add(subscriber)
          return { log, subscriber }
        })

      const leave = ({ log, subscriber }: { readonly log: LiveLog; readonly subscriber: Subscriber }) =>
        Effect.suspend(() => {
          log.subscribers.delete(subscriber)
          if (log.subscribers.size > 0) return Effect.void
          if (logs.get(log.source.key) === log) logs.delete(log.source.key)
          return Effect.sync(() => log.reader?.interruptUnsafe())
        })

      yield* Effect.addFinalizer(() =>
        Fiber.interruptAll([...logs.values()].flatMap(({ reader }) => reader ?? []))
      )
      const subscribers = () => [...logs.values()].flatMap((log) => [...log.subscribers])
      yield* Effect.forkScoped(
        Effect.andThen(
          begun,
          Effect.sync(() => {
            isClosing = true
            subscribers().forEach(end)
          })
        )
      )
      yield* forkEvery(
        streamLimits.heartbeatIntervalMs,
        Effect.sync(() => {
          subscribers().forEach(beat)
          for (const { recent, source } of logs.values()) if (source.isPurgeable) recent?.forgetOld()
        })
      )

      return LiveLogs.of({
        watching: () => subscribers().length,
        watch: (source, after, permit) =>
          Stream.unwrap(
            Effect.gen(function* () {
              const { log, subscriber } = yield* Effect.acquireRelease(enter(source, after), leave)
              yield* permits.attend(permit, () => subscriber.cut())
              return Stream.fromPull(
                Effect.withFiber((fiber) => {
                  subscriber.cut = () => fiber.interruptUnsafe()
                  return Effect.succeed(nextOf(log, subscriber, catchingUp))
                })
              )
            })
          )
      })
    })
  )
}

/** Reads new events of a log for all its subscribers, endlessly. */
const follow = (log: LiveLog) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { source } = log
      if (source.passing)
        yield* source.passing((event) => {
          log.recent?.add(sent(event))
          rouse(log)
        })
      return yield* drive("Live log", source.topic, streamLimits.pollIntervalMs, readOn(log), source.key)
    })
  )

/** Reads the log once; returns whether there may be more. */
const readOn = Effect.fnUntraced(function* (log: LiveLog) {
  const { source } = log
  const recent = log.recent ?? (yield* beginReading(log))
  // Checked before the log is read: an event in between would be missed otherwise.
  const isOver = source.isOver ? yield* source.isOver : false
  const page = yield* source.read(recent.head(), streamLimits.pageEvents)
  yield* publish(log, recent, page)
  log.isOver = isOver && page.length < streamLimits.pageEvents
  rouse(log)
  return page.length === streamLimits.pageEvents || (source.isOver !== undefined && page.length > 0)
})

/** Creates the buffer; waiting subscribers enter it before the first event. */
const beginReading = Effect.fnUntraced(function* (log: LiveLog) {
  const recent = recentEvents(yield* log.source.end)
  log.recent = recent
  rouse(log)
  return recent
})

/** Adds a page to the buffer in parts, so that subscribers that keep up read each part before the buffer overflows. */
const publish = Effect.fnUntraced(function* (
  log: LiveLog,
  recent: RecentEvents,
  page: ReadonlyArray<SseEvent>
) {
  let size = 0
  for (const event of page.map(sent)) {
    if (size > 0 && size + event.bytes.length > streamLimits.chunkBytes) {
      rouse(log)
      yield* Effect.yieldNow
      size = 0
    }
    recent.add(event)
    size += event.bytes.length
  }
})

/** Resumes all waiting subscribers. */
const rouse = (log: LiveLog) => {
  for (const { wake } of log.subscribers) wake?.(undefined)
}

const forkEvery = (intervalMs: number, act: Effect.Effect<void>) =>
  Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(intervalMs), act)))

/** Ends a subscriber: a waiting one at once, another one after its current chunk. */
const end = (subscriber: Subscriber) => {
  subscriber.isEnded = true
  subscriber.wake?.(undefined)
}

/** Keeps a quiet connection open, and closes one that reads nothing. */
const beat = (subscriber: Subscriber) => {
  if (subscriber.wake) subscriber.wake(heartbeat)
  else if (subscriber.isHanded) {
    subscriber.held += 1
    if (subscriber.held * streamLimits.heartbeatIntervalMs >= streamLimits.stallMs) subscriber.cut()
  }
}

type Texts = Arr.NonEmptyReadonlyArray<Uint8Array>

/** The next chunk for a subscriber, as soon as there is one. */
const nextOf = (log: LiveLog, subscriber: Subscriber, catchingUp: Semaphore.Semaphore): Pull.Pull<Texts> => {
  const { progress } = subscriber
  const hand = (texts: Texts) =>
    Effect.sync(() => {
      subscriber.isHanded = true
      return texts
    })

  const wait = Effect.callback<Texts, Cause.Done>((resume) => {
    subscriber.wake = (text) => {
      subscriber.wake = undefined
      resume(text ? hand([text]) : next)
    }
    return Effect.sync(() => void (subscriber.wake = undefined))
  })

  const catchUp = Effect.gen(function* () {
    const { pageEvents } = subscriber
    const head = log.recent?.head() ?? 0
    const page = yield* catchingUp.withPermit(log.source.read(progress.number, pageEvents))
    const texts: Array<Uint8Array> = []
    let size = 0
    for (const event of page) {
      if (size > streamLimits.chunkBytes) break
      const { bytes, number } = sent(event)
      texts.push(bytes)
      size += bytes.length
      progress.number = number ?? progress.number
    }
    // Large events need small pages: what is read and not sent is read again.
    subscriber.pageEvents =
      texts.length < page.length ? texts.length : Math.min(pageEvents * 2, streamLimits.pageEvents)
    if (Arr.isArrayNonEmpty(texts)) return yield* hand(texts)
    // Nothing is left before the head of this read; later events come next.
    progress.number = Math.max(progress.number, head)
    return yield* next
  })

  const next: Pull.Pull<Texts> = Effect.suspend(() => {
    subscriber.isHanded = false
    subscriber.held = 0
    if (!subscriber.hasBegun) {
      subscriber.hasBegun = true
      return hand([beginningAt(progress.number)])
    }
    if (subscriber.isEnded) return Cause.done()
    const taken = log.recent?.take(progress) ?? []
    if (taken === "behind") return catchUp
    if (Arr.isReadonlyArrayNonEmpty(taken)) return hand(taken)
    return log.isOver ? Cause.done() : wait
  })
  return next
}

const encoder = new TextEncoder()

/**
 * The opening of a stream: the id of its start, so that a client cut off before the first event resumes there, and the reconnect delay. It
 * is not an event for the client.
 */
const beginningAt = (number: number): Uint8Array =>
  encoder.encode(`id: ${number}\nretry: ${streamLimits.retryMs}\n\n`)

const heartbeat = encoder.encode(": heartbeat\n\n")

/** An event in wire format. */
const sent = ({ json, name, number }: SseEvent): SentEvent => ({
  number,
  bytes: encoder.encode(
    `${number === undefined ? "" : `id: ${number}\n`}event: ${name}\ndata: ${JSON.stringify(json)}\n\n`
  )
})

// The newest events of a log in wire format, shared by all its subscribers.
//
// Bounded in events and bytes. A subscriber has only a position in it. The buffer holds events since the first subscriber entered at its
// end; a subscriber that is further back is "behind" and reads from the log, which may have been purged since. It then misses transient
// events.

/** One event in wire format; a transient one has no number. */
interface SentEvent {
  readonly number: number | undefined
  readonly bytes: Uint8Array
}

/** The position of one subscriber. */
interface Progress {
  /** The number of the last event it received. */
  number: number
  /** Index of the next event in the buffer; undefined while it reads from the log. */
  place: number | undefined
}

/** The position of a subscriber that has everything up to an event. */
const progressAfter = (number: number): Progress => ({ number, place: undefined })

interface RecentEvents {
  readonly add: (event: SentEvent) => void
  /** The number of the newest event. */
  readonly head: () => number
  /** Forgets the events that were already here at the last call. */
  readonly forgetOld: () => void
  /** The next chunk for a subscriber; empty when there is none. */
  readonly take: (progress: Progress) => ReadonlyArray<Uint8Array> | "behind"
}

/** A buffer that begins after an event. */
const recentEvents = (start: number): RecentEvents => {
  const events: Array<SentEvent> = []
  let first = 0
  let bytes = 0
  let head = start
  let oldUntil = 0

  const forget = (count: number) => {
    for (const oldest of events.splice(0, count)) {
      first += 1
      bytes -= oldest.bytes.length
    }
  }

  const forgetOld = () => {
    forget(Math.max(0, oldUntil - first))
    oldUntil = first + events.length
  }

  const add = (event: SentEvent) => {
    if (event.number !== undefined && event.number <= head) return
    events.push(event)
    bytes += event.bytes.length
    head = event.number ?? head
    while (
      events.length > 1 &&
      (events.length > streamLimits.bufferEvents || bytes > streamLimits.bufferBytes)
    )
      forget(1)
  }

  const take = (progress: Progress) => {
    if (progress.place === undefined || progress.place < first) {
      if (progress.number < head) {
        progress.place = undefined
        return "behind"
      }
      progress.place = first + events.length
    }
    const taken: Array<Uint8Array> = []
    let size = 0
    while (size < streamLimits.chunkBytes) {
      const event = events[progress.place - first]
      if (event === undefined) break
      const isNew = event.number === undefined || event.number > progress.number
      progress.place += 1
      if (!isNew) continue
      progress.number = event.number ?? progress.number
      taken.push(event.bytes)
      size += event.bytes.length
    }
    return taken
  }

  return { add, head: () => head, forgetOld, take }
}
