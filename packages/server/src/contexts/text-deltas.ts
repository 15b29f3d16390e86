/**
 * Streams text deltas of answers in progress to their watchers; nothing is stored.
 *
 * A watcher may be connected to another server than the run's. This service tracks what is watched at this server; in a cluster,
 * `cluster/delta-relay.ts` relays the deltas between servers. A delta that is lost appears in the log a moment later, with the answer.
 */
import {
  type ContextName,
  type TextDeltaEvent,
  eventNumber,
  type LoggedEvent
} from "@tropism/domain/context-event"
import type { LoggedJson } from "@tropism/domain/logged-event"
import { type PiecePlace, pieceOf } from "@tropism/domain/piece"
import { Context, Effect, Layer, PubSub, Queue, type Scope } from "effect"
import { agentLimits } from "../limits.ts"

/** A context of a project, as one name that is unique in the database. */
export type Place = `${string}/${ContextName}`

/** Deltas to relay to other servers. */
export interface Passed {
  readonly place: Place
  readonly delta: TextDeltaEvent
}

/** What is watched here, for the relay. */
export interface Attention {
  /** Receives a value when a place gets its first watcher or loses its last. */
  readonly changed: Queue.Dequeue<void>
  /** Returns the places that are watched now. */
  readonly places: () => ReadonlySet<Place>
}

/** A running attempt of this server. */
interface Making {
  hasSpoken: boolean
  isHeardElsewhere: boolean
}

type Tell = (delta: TextDeltaEvent) => void

export class TextDeltas extends Context.Service<
  TextDeltas,
  {
    /** Sends a delta to the watchers of the context, here and through the relay on other servers. */
    readonly show: (projectId: string, delta: TextDeltaEvent) => Effect.Effect<void>
    /** Registers a running attempt, whose deltas are shown, until the scope ends. */
    readonly make: (projectId: string, name: ContextName) => Effect.Effect<void, never, Scope.Scope>
    /** Calls back with all deltas of a context, until the scope ends. */
    readonly watch: (
      projectId: string,
      name: ContextName,
      tell: Tell
    ) => Effect.Effect<void, never, Scope.Scope>
    /** Shows here the deltas relayed from another server. */
    readonly hear: (passed: Passed) => void
    /** Records whether a context of this server has watchers on other servers. */
    readonly noteHeard: (place: Place, isHeard: boolean) => void
    /** Waits until no running attempt of this server has watchers on other servers. */
    readonly unheard: Effect.Effect<void>
    /**
     * Returns the deltas since the last call, for other servers; waits until there are any. Deltas are dropped when no relay takes them.
     */
    readonly outgoing: Effect.Effect<ReadonlyArray<Passed>>
    /** Returns what is watched here, until the scope ends. */
    readonly attention: Effect.Effect<Attention, never, Scope.Scope>
  }
>()("@tropism/server/agent/TextDeltas") {
  static readonly layer = Layer.effect(
    TextDeltas,
    Effect.gen(function* () {
      const watchers = new Map<Place, Set<Tell>>()
      const leaving = yield* Queue.sliding<Passed>(agentLimits.passingWords)
      const bells = new Set<Queue.Queue<void>>()
      const made = new Map<Place, Making>()
      /** Signals that an attempt has ended, or has no watcher any more. */
      const changes = yield* PubSub.sliding<void>(1)
      let isCarried = false

      const hear = ({ delta, place }: Passed) => watchers.get(place)?.forEach((tell) => tell(delta))

      const ring = () => {
        for (const bell of bells) Queue.offerUnsafe(bell, undefined)
      }

      const enter = (place: Place, tell: Tell) => {
        const there = watchers.get(place)
        if (there) return void there.add(tell)
        watchers.set(place, new Set([tell]))
        ring()
      }

      const leave = (place: Place, tell: Tell) => {
        const there = watchers.get(place)
        there?.delete(tell)
        if (there?.size !== 0) return
        watchers.delete(place)
        ring()
      }

      return TextDeltas.of({
        show: (projectId, delta) =>
          Effect.sync(() => {
            const passed: Passed = { place: `${projectId}/${delta.agentName}`, delta }
            hear(passed)
            if (!isCarried) return
            Queue.offerUnsafe(leaving, passed)
            const answer = made.get(passed.place)
            // The receiver of an attempt's first delta has not reported yet whether it has watchers.
            if (answer?.hasSpoken === false) answer.hasSpoken = answer.isHeardElsewhere = true
          }),
        make: (projectId, name) => {
          const place: Place = `${projectId}/${name}`
          return Effect.acquireRelease(
            Effect.sync(() => {
              const answer: Making = { hasSpoken: false, isHeardElsewhere: false }
              made.set(place, answer)
              return answer
            }),
            (answer) => {
              if (made.get(place) === answer) made.delete(place)
              return PubSub.publish(changes, undefined)
            }
          ).pipe(Effect.asVoid)
        },
        watch: (projectId, name, tell) => {
          const place: Place = `${projectId}/${name}`
          return Effect.acquireRelease(
            Effect.sync(() => enter(place, tell)),
            () => Effect.sync(() => leave(place, tell))
          )
        },
        hear,
        noteHeard: (place, isHeard) => {
          const answer = made.get(place)
          if (answer === undefined || answer.isHeardElsewhere === isHeard) return
          answer.isHeardElsewhere = isHeard
          if (!isHeard) PubSub.publishUnsafe(changes, undefined)
        },
        unheard: Effect.gen(function* () {
          const news = yield* PubSub.subscribe(changes)
          while ([...made.values()].some(({ isHeardElsewhere }) => isHeardElsewhere)) yield* PubSub.take(news)
        }).pipe(Effect.scoped),
        outgoing: Effect.suspend(() => {
          isCarried = true
          return Queue.takeAll(leaving)
        }),
        attention: Effect.acquireRelease(
          Effect.map(Queue.sliding<void>(1), (bell) => {
            bells.add(bell)
            Queue.offerUnsafe(bell, undefined)
            return bell
          }),
          (bell) => Effect.sync(() => bells.delete(bell))
        ).pipe(Effect.map((changed) => ({ changed, places: () => new Set(watchers.keys()) })))
      })
    })
  )
}

// Decides which deltas a context's watchers receive, and in which order; pure.
//
// Deltas come from several servers, and a server that froze continues an attempt that is over until it notices. Deltas from before the
// log's current position and duplicates are therefore dropped. A missing delta does not hold back the ones after it.

/** After these events any model request is a new one. */
const leavesBehind: ReadonlySet<string> = new Set<LoggedEvent["type"]>([
  "AgentTurnStartedEvent",
  "AssistantMessageEvent",
  "SoftStopEvent",
  "AgentTurnInterruptedEvent",
  "AgentTurnCompletedEvent",
  "AgentTurnFailedEvent"
])

export interface DeltaOrder {
  /** Records events of the log, as they are read. */
  readonly note: (events: ReadonlyArray<LoggedJson>) => void
  /** Whether to show a delta; true once for each. */
  readonly take: (piece: Pick<TextDeltaEvent, "id" | "timestamp">) => boolean
}

export const makeDeltaOrder = (): DeltaOrder => {
  let since = 0
  let last: PiecePlace & { readonly begunAt: string | undefined } = {
    after: 0,
    place: 0,
    begunAt: undefined
  }
  return {
    note: (events) => {
      for (const { id, type } of events) if (leavesBehind.has(type)) since = Math.max(since, eventNumber(id))
    },
    take: (piece) => {
      const { after, place } = pieceOf(piece)
      const isSame = after === last.after
      // A run that was stopped and resumed makes a new request after the same event.
      const isAnew = place === 1 && piece.timestamp !== last.begunAt
      if (after < since || after < last.after || (isSame && place <= last.place && !isAnew)) return false
      const begunAt = place === 1 ? piece.timestamp : isSame ? last.begunAt : undefined
      last = { after, place, begunAt }
      return true
    }
  }
}
