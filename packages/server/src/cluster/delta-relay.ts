/**
 * Relays text deltas of answers in progress between servers.
 *
 * Each context has one place in the cluster: the writing server sends deltas there, and servers with watchers fetch them there. Nothing is
 * decided here, and nothing is stored except while a place moves to another server. A delta may be lost; the log has its text a moment
 * later.
 */
import { TextDeltaEvent } from "@tropism/domain/context-event"
import { Effect, Fiber, PubSub, Queue, Schema, Stream, Clock, Option } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { TextDeltas, type Place } from "../contexts/text-deltas.ts"
import { clusterLimits } from "./limits.ts"

/** Deltas, and the server that generated them, which has already shown them. */
const Words = Schema.Struct({ from: Schema.String, deltas: Schema.Array(TextDeltaEvent) })

/** The relay of one context. */
const LiveContext = Entity.make("LiveContext", [
  /** Returns whether there are watchers. */
  Rpc.make("Pass", { payload: Words.fields, success: Schema.Boolean }),
  Rpc.make("Watch", { success: Words, stream: true })
])

/** The handlers of a context's relay. */
export const liveContexts = LiveContext.toLayer(
  Effect.gen(function* () {
    const said = yield* PubSub.sliding<typeof Words.Type>(clusterLimits.waitingPieces)
    let watching = 0
    const counted = Effect.acquireRelease(
      Effect.sync(() => (watching += 1)),
      () => Effect.sync(() => (watching -= 1))
    )
    return LiveContext.of({
      Pass: ({ payload }) => Effect.map(PubSub.publish(said, payload), () => watching > 0),
      Watch: () => Stream.unwrap(Effect.as(counted, Stream.fromPubSub(said)))
    })
  }),
  { concurrency: clusterLimits.requestsAtContext }
)

/** Sends deltas that are generated here and fetches those that are watched here, until the scope ends. */
export const carryWords = (address: string) =>
  Effect.gen(function* () {
    const words = yield* TextDeltas
    const contextAt = yield* LiveContext.client
    yield* Effect.forkScoped(sendWords(words, passing(contextAt, address)))
    yield* Effect.forkScoped(fetching(words, contextAt, address))
  })

type ContextAt = Effect.Success<typeof LiveContext.client>

/** Drops deltas after a timeout. */
const passing =
  (contextAt: ContextAt, from: string): Pass =>
  (place, deltas) =>
    contextAt(place)
      .Pass({ from, deltas })
      .pipe(
        Effect.timeoutOption(clusterLimits.passTimeoutMs),
        Effect.catchCause(() => Effect.succeedNone)
      )

/** Fetches the deltas of each context while it is watched here. */
const fetching = (words: TextDeltas["Service"], contextAt: ContextAt, from: string) =>
  Effect.gen(function* () {
    const watched = new Map<Place, Fiber.Fiber<unknown>>()
    const attention = yield* words.attention

    const fetch = (place: Place) =>
      contextAt(place)
        .Watch()
        .pipe(
          Stream.runForEach(({ deltas, from: writer }) =>
            Effect.sync(() => {
              if (writer !== from) for (const delta of deltas) words.hear({ place, delta })
            })
          ),
          // The place moved to another server or is unreachable: look it up again.
          Effect.catchCause((cause) => Effect.logDebug("A context's words are looked for again", cause)),
          Effect.andThen(Effect.sleep(clusterLimits.retryMs)),
          Effect.forever
        )

    // A fetch ends with its caller: a leaving server streams answers to their end.
    return yield* Effect.gen(function* () {
      yield* Queue.take(attention.changed)
      const places = attention.places()
      for (const place of places)
        if (!watched.has(place)) watched.set(place, yield* Effect.forkScoped(fetch(place)))
      for (const [place, fiber] of watched)
        if (!places.has(place)) {
          watched.delete(place)
          yield* Fiber.interrupt(fiber)
        }
    }).pipe(Effect.forever)
  }).pipe(Effect.scoped)

// Sends deltas to each place independently.
//
// **Invariant**: sends to one place are sequential, so deltas arrive in order. A slow place delays no other: its new deltas go with its
// next send. Deltas for an unreachable place are kept until it has moved to another server and its watchers have found it there.

/** Sends deltas to a place and returns whether it has watchers; none where the place was unreachable. */
export type Pass = (
  place: Place,
  deltas: ReadonlyArray<TextDeltaEvent>
) => Effect.Effect<Option.Option<boolean>>

/** Watchers of a place notice one after another that it has moved, and then look it up. */
export const gatheringMs = clusterLimits.heartbeatMs + clusterLimits.retryMs

/** Sends deltas that are generated here until the scope ends; a place without recent watchers is skipped. */
export const sendWords = (words: TextDeltas["Service"], pass: Pass) =>
  Effect.gen(function* () {
    /** Places that are skipped for a while: without watchers, or unreachable. */
    const passedOver = new Map<Place, { readonly untilMs: number; readonly isReached: boolean }>()
    /** When a place was last known to have watchers: after a move they look it up again. */
    const watchedAtMs = new Map<Place, number>()
    /** Deltas that wait for the current send to their place. */
    const waiting = new Map<Place, Array<TextDeltaEvent>>()

    const passOver = (place: Place, isReached: boolean) =>
      Effect.map(Clock.currentTimeMillis, (nowMs) => {
        passedOver.set(place, { untilMs: nowMs + clusterLimits.unwatchedMs, isReached })
        watchedAtMs.delete(place)
        waiting.delete(place)
      })

    const remember = (nowMs: number) => {
      for (const [place, { untilMs }] of passedOver) if (untilMs <= nowMs) passedOver.delete(place)
      for (const [place, atMs] of watchedAtMs)
        if (atMs + clusterLimits.movingMs <= nowMs) watchedAtMs.delete(place)
    }

    const add = (place: Place, delta: TextDeltaEvent) => {
      const there = waiting.get(place)
      if (there === undefined) waiting.set(place, [delta])
      else if (there.push(delta) > clusterLimits.waitingPieces) there.shift()
      return there === undefined
    }

    /** Takes a place's waiting deltas; without any, its send loop ends. */
    const take = (place: Place) => {
      const deltas = waiting.get(place) ?? []
      if (deltas.length === 0) waiting.delete(place)
      else waiting.set(place, [])
      return deltas
    }

    /** Looks a place up with an empty send; by then its watchers have found it, too. */
    const found = (place: Place, untilMs: number): ReturnType<Pass> =>
      Effect.gen(function* () {
        yield* Effect.sleep(clusterLimits.retryMs)
        const isWatched = yield* pass(place, [])
        const nowMs = yield* Clock.currentTimeMillis
        if (Option.isNone(isWatched)) return nowMs < untilMs ? yield* found(place, untilMs) : isWatched
        if (isWatched.value) return yield* Effect.as(Effect.sleep(gatheringMs), isWatched)
        // Without watchers before, none has to find the place first.
        const soonMs = watchedAtMs.has(place) ? untilMs : Math.min(untilMs, nowMs + 2 * clusterLimits.retryMs)
        return nowMs < untilMs ? yield* found(place, soonMs) : isWatched
      })

    /** How long to keep looking for a place after such an answer; 0 without watchers. */
    const lookingMs = (place: Place, isWatched: Option.Option<boolean>): number => {
      if (Option.isNone(isWatched)) return clusterLimits.movingMs
      return !isWatched.value && watchedAtMs.has(place) ? 2 * clusterLimits.retryMs : 0
    }

    const send = (place: Place): Effect.Effect<void> =>
      Effect.gen(function* () {
        const deltas = take(place)
        if (deltas.length === 0) return
        let isWatched = yield* pass(place, deltas)
        const nowMs = yield* Clock.currentTimeMillis
        const looking = lookingMs(place, isWatched)
        if (looking > 0) {
          waiting.set(place, [...deltas, ...(waiting.get(place) ?? [])])
          isWatched = yield* found(place, nowMs + looking)
        }
        // Earlier watchers of an unreachable place may still be there.
        if (Option.isSome(isWatched)) words.noteHeard(place, isWatched.value)
        if (Option.isNone(isWatched) || !isWatched.value)
          return yield* passOver(place, Option.isSome(isWatched))
        watchedAtMs.set(place, nowMs)
        return yield* send(place)
      })

    return yield* Effect.gen(function* () {
      const outgoing = yield* words.outgoing
      remember(yield* Clock.currentTimeMillis)
      const idle = new Set<Place>()
      for (const { delta, place } of outgoing) {
        const past = passedOver.get(place)
        if (past?.isReached) words.noteHeard(place, false)
        if (past) continue
        if (add(place, delta)) idle.add(place)
      }
      for (const place of idle) yield* Effect.forkScoped(send(place))
      yield* Effect.sleep(clusterLimits.passIntervalMs)
    }).pipe(Effect.forever)
  }).pipe(Effect.scoped)
