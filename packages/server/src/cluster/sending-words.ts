/**
 * Sends words of answers to the places where others fetch them, to each place by itself.
 *
 * Flow: everything on the stairs below **cluster**
 *
 * To one place words go one sending after another, so they come in the order in
 * which they were written. A place that does not answer keeps no other waiting:
 * what is said for it meanwhile goes with its next sending. Where a place was not
 * reached its words are kept until it has moved to another server, and whoever
 * watches has found it there.
 */
import type { TextDeltaEvent } from "@tropism/domain/context-event"
import { Clock, Effect, Option } from "effect"
import type { PassingWords, Place } from "../agent/passing-words.ts"
import { clusterLimits } from "./cluster-limits.ts"

/** Brings words to a place and answers whether anybody watches there; none where the place was not reached. */
export type Pass = (
  place: Place,
  deltas: ReadonlyArray<TextDeltaEvent>
) => Effect.Effect<Option.Option<boolean>>

/** Those who watch a place find out one after another that it has moved, and then look for it. */
export const gatheringMs = clusterLimits.heartbeatMs + clusterLimits.retryMs

/** Sends what is written here, until the scope ends; where nobody watched lately nothing is sent. */
export const sendWords = (words: PassingWords["Service"], pass: Pass) =>
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
