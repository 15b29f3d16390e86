/**
 * Sends words of answers to the places where others fetch them, to each place by itself.
 *
 * Flow: everything on the stairs below **cluster**
 *
 * To one place words go one sending after another, so they come in the order in
 * which they were written. A place that does not answer keeps no other waiting:
 * what is said for it meanwhile goes with its next sending.
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

/** Sends what is written here, until the scope ends; where nobody watched lately nothing is sent. */
export const sendWords = (words: PassingWords["Service"], pass: Pass) =>
  Effect.gen(function* () {
    /** Places to which no words go for a while: nobody watched there, or they were not reached. */
    const passedOver = new Map<Place, { readonly untilMs: number; readonly isReached: boolean }>()
    /** What waits for the sending that is under way to its place, each for no longer than one may take. */
    const waiting = new Map<Place, Array<TextDeltaEvent>>()

    const passOver = (place: Place, isReached: boolean) =>
      Effect.map(Clock.currentTimeMillis, (nowMs) => {
        passedOver.set(place, { untilMs: nowMs + clusterLimits.unwatchedMs, isReached })
        waiting.delete(place)
      })

    const remember = (nowMs: number) => {
      for (const [place, { untilMs }] of passedOver) if (untilMs <= nowMs) passedOver.delete(place)
    }

    /** What waits for a place; where nothing does, nothing is under way to it any more. */
    const take = (place: Place) => {
      const deltas = waiting.get(place) ?? []
      if (deltas.length === 0) waiting.delete(place)
      else waiting.set(place, [])
      return deltas
    }

    const send = (place: Place): Effect.Effect<void> =>
      Effect.suspend(() => {
        const deltas = take(place)
        if (deltas.length === 0) return Effect.void
        return Effect.flatMap(pass(place, deltas), (isWatched) => {
          // Who is not reached is not waited for: the words are in the log soon. Whoever has heard words may be there still.
          if (Option.isNone(isWatched)) return passOver(place, false)
          words.noteHeard(place, isWatched.value)
          return isWatched.value ? send(place) : passOver(place, true)
        })
      })

    return yield* Effect.gen(function* () {
      const outgoing = yield* words.outgoing
      remember(yield* Clock.currentTimeMillis)
      const idle = new Set<Place>()
      for (const { delta, place } of outgoing) {
        const past = passedOver.get(place)
        if (past?.isReached) words.noteHeard(place, false)
        if (past) continue
        const there = waiting.get(place)
        if (there) there.push(delta)
        else {
          waiting.set(place, [delta])
          idle.add(place)
        }
      }
      for (const place of idle) yield* Effect.forkScoped(send(place))
      yield* Effect.sleep(clusterLimits.passIntervalMs)
    }).pipe(Effect.forever)
  }).pipe(Effect.scoped)
