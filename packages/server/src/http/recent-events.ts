/**
 * The newest events of a log as the text that goes out, for everybody who watches it.
 *
 * Flow: **http** → graph → outbox → dispatch → run → tool → task
 *
 * Bounded in events and in bytes, and one buffer for all: whoever watches has a
 * place in it and nothing of its own. It tells what came since somebody entered at
 * its end; whoever is behind that end, or further behind than the buffer reaches, is
 * told so and reads from the log, which may say less by now than it did. What no log
 * keeps it has missed then.
 */
import { streamLimits } from "./stream-limits.ts"

/** One event as it goes out; one that passes by and is not kept has no number. */
export interface SentEvent {
  readonly number: number | undefined
  readonly bytes: Uint8Array
}

/** How far one subscriber is. */
export interface Progress {
  /** The number of the last event that it has. */
  number: number
  /** Of the next event in the buffer; undefined while it reads from the log. */
  place: number | undefined
}

/** Of a subscriber that has everything up to an event. */
export const progressAfter = (number: number): Progress => ({ number, place: undefined })

export interface RecentEvents {
  readonly add: (event: SentEvent) => void
  /** The number of the newest event. */
  readonly head: () => number
  /** Forgets what was here already when this was said last. */
  readonly forgetOld: () => void
  /** What comes next for a subscriber, as much as goes out together; nothing while there is none. */
  readonly take: (progress: Progress) => ReadonlyArray<Uint8Array> | "behind"
}

/** A buffer that begins behind an event. */
export const recentEvents = (start: number): RecentEvents => {
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
