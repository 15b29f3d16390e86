/**
 * Carries the words of answers that are being written between servers.
 *
 * Each context has one place in the cluster where its words come together: the
 * server that writes sends them there, those where somebody watches fetch them
 * there. Nothing is decided here, and nothing kept but while a place moves to
 * another server. A word may be lost all the same; the log has it a moment later.
 */
import { TextDeltaEvent } from "@tropism/domain/context-event"
import { Effect, Fiber, PubSub, Queue, Schema, Stream, Clock, Option } from "effect"
import { Entity } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { TextDeltas, type Place } from "../contexts/text-deltas.ts"
import { clusterLimits } from "./limits.ts"

/** Words, and the server at which they were written: it has shown them already. */
const Words = Schema.Struct({ from: Schema.String, deltas: Schema.Array(TextDeltaEvent) })

/** Where the words of one context come together. */
const LiveContext = Entity.make("LiveContext", [
  /** Answers whether anybody watches. */
  Rpc.make("Pass", { payload: Words.fields, success: Schema.Boolean }),
  Rpc.make("Watch", { success: Words, stream: true })
])

/** What happens at a context's place. */
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

/** Sends what is written here and fetches what is watched here, until the scope ends. */
export const carryWords = (address: string) =>
  Effect.gen(function* () {
    const words = yield* TextDeltas
    const contextAt = yield* LiveContext.client
    yield* Effect.forkScoped(sendWords(words, passing(contextAt, address)))
    yield* Effect.forkScoped(fetching(words, contextAt, address))
  })

type ContextAt = Effect.Success<typeof LiveContext.client>

/** Words that are on their way for too long are given up. */
const passing =
  (contextAt: ContextAt, from: string): Pass =>
  (place, deltas) =>
    contextAt(place)
      .Pass({ from, deltas })
      .pipe(
        Effect.timeoutOption(clusterLimits.passTimeoutMs),
        Effect.catchCause(() => Effect.succeedNone)
      )

/** Fetches the words of each context for as long as somebody watches it here. */
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
          // The place has moved to another server, or is not reached: it is looked for again.
          Effect.catchCause((cause) => Effect.logDebug("A context's words are looked for again", cause)),
          Effect.andThen(Effect.sleep(clusterLimits.retryMs)),
          Effect.forever
        )

    // Who fetches ends with whoever began it: a server that leaves tells answers to their end.
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

// Sends words of answers to the places where others fetch them, to each place by itself.
//
// To one place words go one sending after another, so they come in the order in
// which they were written. A place that does not answer keeps no other waiting:
// what is said for it meanwhile goes with its next sending. Where a place was not
// reached its words are kept until it has moved to another server, and whoever
// watches has found it there.

/** Brings words to a place and answers whether anybody watches there; none where the place was not reached. */
export type Pass = (
  place: Place,
  deltas: ReadonlyArray<TextDeltaEvent>
) => Effect.Effect<Option.Option<boolean>>

/** Those who watch a place find out one after another that it has moved, and then look for it. */
export const gatheringMs = clusterLimits.heartbeatMs + clusterLimits.retryMs

/** Sends what is written here, until the scope ends; where nobody watched lately nothing is sent. */
export const sendWords = (words: TextDeltas["Service"], pass: Pass) =>
  Effect.gen(function* () {
    /** Places to which no words go for a while: nobody watched there, or they were not reached. */
    const passedOver = new Map<Place, { readonly untilMs: number; readonly isReached: boolean }>()
    /** When somebody was last heard to watch a place: where it moved, whoever watches looks for it again. */
    const watchedAtMs = new Map<Place, number>()
    /** What waits for the sending that is under way to its place. */
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

    /** What waits for a place; where nothing does, nothing is under way to it any more. */
    const take = (place: Place) => {
      const deltas = waiting.get(place) ?? []
      if (deltas.length === 0) waiting.delete(place)
      else waiting.set(place, [])
      return deltas
    }

    /** Asks where a place is now, and answers as a sending does; whoever looks for it as well has found it by then. */
    const found = (place: Place, untilMs: number): ReturnType<Pass> =>
      Effect.gen(function* () {
        yield* Effect.sleep(clusterLimits.retryMs)
        const isWatched = yield* pass(place, [])
        const nowMs = yield* Clock.currentTimeMillis
        if (Option.isNone(isWatched)) return nowMs < untilMs ? yield* found(place, untilMs) : isWatched
        if (isWatched.value) return yield* Effect.as(Effect.sleep(gatheringMs), isWatched)
        // Where nobody watched before, nobody is waited for who has to look for it first.
        const soonMs = watchedAtMs.has(place) ? untilMs : Math.min(untilMs, nowMs + 2 * clusterLimits.retryMs)
        return nowMs < untilMs ? yield* found(place, soonMs) : isWatched
      })

    /** For how long it is worth while to look for a place that answered so; 0 where nobody watches it. */
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
        // Whoever has heard words of a place that is not reached may be there still.
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
