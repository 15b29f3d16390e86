/**
 * Look-ups by key, many in one question: those that arrive while one is under way are the next.
 *
 * **Invariant** An answer was read after the question came. Nothing is kept between look-ups, so nothing has to be invalidated.
 */
import { Deferred, Effect, Fiber, FiberSet } from "effect"
import { poolLimits } from "./pool-limits.ts"

interface Lookup<A> {
  readonly keys: Set<string>
  readonly answer: Deferred.Deferred<ReadonlyMap<string, A>>
}

/** Makes the look-up of a key; `ask` answers what it found, by key, and dies where the database breaks. */
export const makeLookups = Effect.fnUntraced(function* <A>(
  ask: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyMap<string, A>>
) {
  // A look-up belongs to all who wait for it, and goes on when one of them goes away.
  const runFork = yield* FiberSet.makeRuntime()
  let next: Lookup<A> | undefined
  let isBusy = false

  const run = ({ answer, keys }: Lookup<A>) =>
    Effect.flatMap(Effect.exit(ask([...keys])), (found) => Deferred.done(answer, found))

  const drain = Effect.gen(function* () {
    // What is asked in the same moment goes together.
    yield* Effect.yieldNow
    while (next !== undefined) {
      const lookup = next
      next = undefined
      // One that takes long holds up nobody who comes later: its connection may be silent.
      yield* Effect.timeoutOption(Fiber.await(runFork(run(lookup))), poolLimits.lookupWaitMs)
    }
    isBusy = false
  })

  return (key: string): Effect.Effect<A | undefined> =>
    Effect.suspend(() => {
      next ??= { keys: new Set(), answer: Deferred.makeUnsafe() }
      next.keys.add(key)
      const { answer } = next
      if (!isBusy) {
        isBusy = true
        runFork(drain)
      }
      return Effect.map(Deferred.await(answer), (found) => found.get(key))
    })
})
