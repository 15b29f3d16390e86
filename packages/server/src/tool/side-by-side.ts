/**
 * Which calls of one answer are made side by side, and in which order the log has them.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * A call waits for those before it only where the order could matter. Calls begin in the order of the answer; an
 * outcome waits for those before it, unless the call must not be made again: that outcome is recorded at once, since a
 * server that dies would forget it. What the model reads is in its own order either way.
 */
import { Deferred, Effect } from "effect"
import { toolLimits } from "../limits.ts"

/** What decides for which calls another waits. */
export interface CallTraits {
  /** The foreign server that is called; null for a call that is answered here. */
  readonly server: string | null
  /** Whether it changes nothing. */
  readonly isReading: boolean
  /** Whether its answer may bring something untrusted. */
  readonly mayTaint: boolean
  /** Whether it is refused, or only suggested, after something untrusted was read. */
  readonly mindsTaint: boolean
}

/** What a call waits for on its way. */
export interface Place {
  /** Until the calls before it have begun. */
  readonly toBegin: Effect.Effect<void>
  /** It has begun, or will not. */
  readonly hasBegun: Effect.Effect<void>
  /** Until the calls before it are over. */
  readonly toEnd: Effect.Effect<void>
}

/** Whether a call is not made before an earlier one is over. */
export const mustWait = (earlier: CallTraits, later: CallTraits): boolean => {
  // What is written here takes milliseconds, and whatever comes after it may look at it.
  if (earlier.server === null && !earlier.isReading) return true
  if (earlier.mayTaint && later.mindsTaint) return true
  return earlier.server === later.server && !(earlier.isReading && later.isReading)
}

/** Makes calls in the order of the answer, as many at once as may be. */
export const sideBySide = <A, E, R>(
  calls: ReadonlyArray<{
    readonly traits: CallTraits
    readonly make: (place: Place) => Effect.Effect<A, E, R>
  }>
): Effect.Effect<ReadonlyArray<A>, E, R> => {
  const begun = calls.map(() => Deferred.makeUnsafe<void>())
  const over = calls.map(() => Deferred.makeUnsafe<void>())
  const marked = (marks: ReadonlyArray<Deferred.Deferred<void>>) =>
    Effect.forEach(marks, Deferred.await, { discard: true })
  return Effect.forEach(
    calls,
    ({ make, traits }, index) => {
      const [isBegun, isOver] = [begun[index], over[index]] as [
        Deferred.Deferred<void>,
        Deferred.Deferred<void>
      ]
      const hasBegun = Effect.asVoid(Deferred.succeed(isBegun, undefined))
      const conflicts = over.filter((_, at) => {
        const earlier = calls[at]?.traits
        return at < index && earlier !== undefined && mustWait(earlier, traits)
      })
      // Whoever waits for another keeps nobody from beginning.
      const inTurn = conflicts.length === 0 ? Effect.void : Effect.andThen(hasBegun, marked(conflicts))
      const place: Place = {
        toBegin: marked(begun.slice(0, index)),
        hasBegun,
        toEnd: marked(over.slice(0, index))
      }
      return Effect.andThen(
        inTurn,
        Effect.suspend(() => make(place))
      ).pipe(Effect.ensuring(Effect.andThen(hasBegun, Deferred.succeed(isOver, undefined))))
    },
    { concurrency: toolLimits.callsAtOnce }
  )
}
