/**
 * The logs that somebody watches: what is new is read once, whoever and however many watch.
 *
 * One reader for each log and program follows its wake-ups and puts what it reads
 * into a buffer (`recent-events.ts`); it begins with the first subscriber and ends
 * with the last. A subscriber that is further behind, or begins in the past, reads
 * pages of the log by itself until it has caught up, a few of them at a time, so
 * none costs the others anything, and none is told what was taken out of the log
 * before it came. One that takes nothing of what it was handed for
 * `stallMs` is cut off and can come back with the id that it heard last; one whose
 * permit holds no more (`permits.ts`) is cut off, too. When the server stops all streams end.
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

/** One event of a stream; one that passes by has no number. */
export interface SseEvent {
  readonly number: number | undefined
  /** The id that it has in its log. */
  readonly id: string
  /** What kind of event it is. */
  readonly name: string
  readonly json: unknown
}

/** A log that can be watched. */
export interface LiveSource {
  /** The same for everybody who watches the same log. */
  readonly key: string
  readonly projectId: ProjectId
  readonly topic: Topic
  /** What ids of its events begin with, if they have a number in them. */
  readonly name?: string
  /** The number of the log's last event. */
  readonly end: Effect.Effect<number>
  /** The next events after a number, in order. */
  readonly read: (after: number, limit: number) => Effect.Effect<ReadonlyArray<SseEvent>>
  /** Whether the log can grow no more. */
  readonly isOver?: Effect.Effect<boolean>
  /** Whether what an event says may be taken out of the log later: then the buffer forgets soon. */
  readonly isPurgeable?: boolean
  /** Shows what passes by and is not kept, until the scope ends. */
  readonly passing?: (show: (event: SseEvent) => void) => Effect.Effect<void, never, Scope.Scope>
}

interface Subscriber {
  readonly progress: Progress
  /** Lets it go on while it waits, with a text of its own or with what is new. */
  wake: ((text: Uint8Array | undefined) => void) | undefined
  /** Ends its connection. */
  cut: () => void
  /** Heartbeats since it was handed something that it has not taken yet. */
  held: number
  isHanded: boolean
  /** The server stops. */
  isEnded: boolean
  hasBegun: boolean
  /** Events of its next page. */
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
    /** The text of everything after an event, whose id comes first, then of what comes, with heartbeats while it is quiet. */
    readonly watch: (source: LiveSource, after: number, permit: Permit) => Stream.Stream<Uint8Array>
    /** How many watch at this server. */
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

/** Reads what is new in a log for all who watch it, for ever. */
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

/** One look at a log; whether there may be more. */
const readOn = Effect.fnUntraced(function* (log: LiveLog) {
  const { source } = log
  const recent = log.recent ?? (yield* beginReading(log))
  // Asked before the log is read: what comes in between would be missed.
  const isOver = source.isOver ? yield* source.isOver : false
  const page = yield* source.read(recent.head(), streamLimits.pageEvents)
  yield* publish(log, recent, page)
  log.isOver = isOver && page.length < streamLimits.pageEvents
  rouse(log)
  return page.length === streamLimits.pageEvents || (source.isOver !== undefined && page.length > 0)
})

/** Makes the buffer; who waits at the log's end enters it before anything comes. */
const beginReading = Effect.fnUntraced(function* (log: LiveLog) {
  const recent = recentEvents(yield* log.source.end)
  log.recent = recent
  rouse(log)
  return recent
})

/** Puts a page into the buffer, which may hold less: whoever keeps up takes each part before the next comes. */
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

/** Lets everybody go on who waits. */
const rouse = (log: LiveLog) => {
  for (const { wake } of log.subscribers) wake?.(undefined)
}

const forkEvery = (intervalMs: number, act: Effect.Effect<void>) =>
  Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(intervalMs), act)))

/** Hands it nothing more: who waits ends at once, who is being handed something after that. */
const end = (subscriber: Subscriber) => {
  subscriber.isEnded = true
  subscriber.wake?.(undefined)
}

/** Keeps a quiet connection open, and ends one that takes nothing. */
const beat = (subscriber: Subscriber) => {
  if (subscriber.wake) subscriber.wake(heartbeat)
  else if (subscriber.isHanded) {
    subscriber.held += 1
    if (subscriber.held * streamLimits.heartbeatIntervalMs >= streamLimits.stallMs) subscriber.cut()
  }
}

type Texts = Arr.NonEmptyReadonlyArray<Uint8Array>

/** What a subscriber is handed next, as soon as there is anything. */
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
    // Large events come in small pages: what is read and does not go out is read again.
    subscriber.pageEvents =
      texts.length < page.length ? texts.length : Math.min(pageEvents * 2, streamLimits.pageEvents)
    if (Arr.isArrayNonEmpty(texts)) return yield* hand(texts)
    // Nothing is left of what was there when the page was asked for; what has come since comes next.
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
 * What a stream opens with: the id of the place behind which it begins, so one that is cut before its first event goes on
 * there, too, and how long to wait before that. It is no event: nobody is told anything by it.
 */
const beginningAt = (number: number): Uint8Array =>
  encoder.encode(`id: ${number}\nretry: ${streamLimits.retryMs}\n\n`)

const heartbeat = encoder.encode(": heartbeat\n\n")

/** An event as it goes out. */
const sent = ({ json, name, number }: SseEvent): SentEvent => ({
  number,
  bytes: encoder.encode(
    `${number === undefined ? "" : `id: ${number}\n`}event: ${name}\ndata: ${JSON.stringify(json)}\n\n`
  )
})

// The newest events of a log as the text that goes out, for everybody who watches it.
//
// Bounded in events and in bytes, and one buffer for all: whoever watches has a
// place in it and nothing of its own. It tells what came since somebody entered at
// its end; whoever is behind that end, or further behind than the buffer reaches, is
// told so and reads from the log, which may say less by now than it did. What no log
// keeps it has missed then.

/** One event as it goes out; one that passes by and is not kept has no number. */
interface SentEvent {
  readonly number: number | undefined
  readonly bytes: Uint8Array
}

/** How far one subscriber is. */
interface Progress {
  /** The number of the last event that it has. */
  number: number
  /** Of the next event in the buffer; undefined while it reads from the log. */
  place: number | undefined
}

/** Of a subscriber that has everything up to an event. */
const progressAfter = (number: number): Progress => ({ number, place: undefined })

interface RecentEvents {
  readonly add: (event: SentEvent) => void
  /** The number of the newest event. */
  readonly head: () => number
  /** Forgets what was here already when this was said last. */
  readonly forgetOld: () => void
  /** What comes next for a subscriber, as much as goes out together; nothing while there is none. */
  readonly take: (progress: Progress) => ReadonlyArray<Uint8Array> | "behind"
}

/** A buffer that begins behind an event. */
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
