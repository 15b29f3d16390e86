/**
 * Words of answers that are being written: they pass by, are shown to whoever watches, and are kept by nobody.
 *
 * Who watches may be at another server than the run. Here stands what is watched
 * at this server; where servers work together, `cluster/live-contexts.ts` carries
 * the words between them. A word that is lost on the way is in the log a moment
 * later, with the answer.
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

/** Where words pass by: a context of a project, as one name for all of a database. */
export type Place = `${string}/${ContextName}`

/** Some words, as they go to other servers. */
export interface Passed {
  readonly place: Place
  readonly delta: TextDeltaEvent
}

/** What is watched here, for a carrier. */
export interface Attention {
  /** Rings when somebody began to watch a place, or nobody does any more. */
  readonly changed: Queue.Dequeue<void>
  /** What is watched now. */
  readonly places: () => ReadonlySet<Place>
}

/** An attempt that is at work here. */
interface Making {
  hasSpoken: boolean
  isHeardElsewhere: boolean
}

type Tell = (delta: TextDeltaEvent) => void

export class TextDeltas extends Context.Service<
  TextDeltas,
  {
    /** Shows words to those who watch the context, here and through a carrier elsewhere. */
    readonly show: (projectId: string, delta: TextDeltaEvent) => Effect.Effect<void>
    /** An attempt at a run, whose words are shown, is at work here until the scope ends. */
    readonly make: (projectId: string, name: ContextName) => Effect.Effect<void, never, Scope.Scope>
    /** Is told all words that pass by in a context, until the scope ends. */
    readonly watch: (
      projectId: string,
      name: ContextName,
      tell: Tell
    ) => Effect.Effect<void, never, Scope.Scope>
    /** Shows here what another server has passed on. */
    readonly hear: (passed: Passed) => void
    /** Notes whether somebody at another server hears what is said in a context here. */
    readonly noteHeard: (place: Place, isHeard: boolean) => void
    /** Waits until no attempt is at work here that somebody at another server hears. */
    readonly unheard: Effect.Effect<void>
    /** What was shown here since the last look, for other servers; waits until there is any. What nobody takes is forgotten. */
    readonly outgoing: Effect.Effect<ReadonlyArray<Passed>>
    /** What is watched here, until the scope ends. */
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
      /** Tells that an attempt has ended, or is heard by nobody. */
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
            // Who is told its first words has not said yet whether anybody hears them.
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

// Which pieces of answers a context's log is told with, in which order; pure.
//
// Pieces come from several servers, and a server that stood still goes on with
// an attempt that is over until it finds that out. So pieces of what the log has
// left behind are passed over, and so is what was told already. One that is
// missing keeps none behind it.

/** Behind these a model is asked anew, if at all. */
const leavesBehind: ReadonlySet<string> = new Set<LoggedEvent["type"]>([
  "AgentTurnStartedEvent",
  "AssistantMessageEvent",
  "SoftStopEvent",
  "AgentTurnInterruptedEvent",
  "AgentTurnCompletedEvent",
  "AgentTurnFailedEvent"
])

export interface DeltaOrder {
  /** Notes events of the log, as they are read. */
  readonly note: (events: ReadonlyArray<LoggedJson>) => void
  /** Whether a piece is told, which it is once. */
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
      // Who was stopped and let go on asks anew behind the same event.
      const isAnew = place === 1 && piece.timestamp !== last.begunAt
      if (after < since || after < last.after || (isSame && place <= last.place && !isAnew)) return false
      const begunAt = place === 1 ? piece.timestamp : isSame ? last.begunAt : undefined
      last = { after, place, begunAt }
      return true
    }
  }
}
