/**
 * Reads what happened behind a place of the feed, for whoever asks for one kind of it.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * Polls, streams and webhooks all read here, so they all tell the same. A look
 * goes through a bounded stretch; behind it stands where the next one begins,
 * also when nothing in it was meant.
 */
import { Clock, Context, Effect, Layer } from "effect"
import type { ProjectTransaction } from "../database/database.ts"
import { FeedSearch } from "../outbox/feed-search.ts"
import { Outbox } from "../outbox/outbox.ts"
import { eventLimits } from "./event-limits.ts"
import { type EventFilter, type EventType, isMeant, type Occurrence, occurrenceOf } from "./event-types.ts"

/** What somebody listens for. */
export interface Listening {
  readonly type: EventType
  readonly filter: EventFilter
}

/** Where to begin: behind the place, but with nothing older than this. */
export interface Beginning {
  /** Null is now. */
  readonly after: number | null
  readonly maxAgeMs: number | null
}

/** What a look found. */
export interface Seen {
  readonly occurrences: ReadonlyArray<Occurrence & { readonly position: number }>
  /** Everything up to this place was looked at. */
  readonly position: number
  readonly hasMore: boolean
}

type InProject<A> = Effect.Effect<A, never, ProjectTransaction>

export class EventReading extends Context.Service<
  EventReading,
  {
    /** The place behind which somebody begins, and whether that leaves something out which was asked for. */
    readonly begin: (
      beginning: Beginning
    ) => InProject<{ readonly position: number; readonly truncated: boolean }>
    /** The next occurrences behind a place. */
    readonly look: (listening: Listening, after: number, limit: number) => InProject<Seen>
  }
>()("@tropism/server/mcp/EventReading") {
  static readonly layer = Layer.effect(
    EventReading,
    Effect.gen(function* () {
      const outbox = yield* Outbox
      const search = yield* FeedSearch

      const begin = Effect.fn("EventReading.begin")(function* ({ after, maxAgeMs }: Beginning) {
        const last = yield* outbox.lastPosition
        if (after === null) return { position: last, truncated: false }
        // A place beyond the end was given out before the database was set back: nobody knows what lies between.
        if (after > last) return { position: last, truncated: true }
        if (maxAgeMs === null || after === last) return { position: after, truncated: false }
        const floor = new Date((yield* Clock.currentTimeMillis) - maxAgeMs).toISOString()
        const position = yield* search.placeBefore(floor, { after, upTo: last })
        return { position, truncated: position > after }
      })

      const look = Effect.fn("EventReading.look")(function* (
        { filter, type }: Listening,
        after: number,
        limit: number
      ) {
        const last = yield* outbox.lastPosition
        if (after >= last) return { occurrences: [], position: last, hasMore: false }
        const upTo = Math.min(after + eventLimits.lookPlaces, last)
        const sought = {
          entityType: type.entityType,
          change: type.change,
          type: filter.type ?? null,
          entityId: filter.objectId ?? filter.relationshipId ?? null
        }
        const events = yield* search.find(sought, { after, upTo }, limit)
        const occurrences: Array<Occurrence & { readonly position: number }> = []
        let [position, chars] = [after, 0]
        for (const event of events) {
          if (chars > eventLimits.pollMaxChars) return { occurrences, position, hasMore: true }
          position = event.position ?? position
          if (!isMeant(event, filter)) continue
          const occurrence = occurrenceOf(type, event)
          occurrences.push({ ...occurrence, position })
          chars += JSON.stringify(occurrence).length
        }
        const end = events.length < limit ? upTo : position
        return { occurrences, position: end, hasMore: end < last }
      })

      return EventReading.of({ begin, look })
    })
  )
}
