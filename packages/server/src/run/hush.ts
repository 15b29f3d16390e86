/**
 * Holds back what a model says until somebody says that it may be heard.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * The pieces are heard in the order in which they came, those that were held
 * first; a piece that comes meanwhile waits for its turn.
 */
import { Effect, Semaphore } from "effect"

/** Shows a piece of text now, or when it may be heard. */
export type Showing = (show: Effect.Effect<void>) => Effect.Effect<void>

/** For a text that anybody may hear. */
export const aloud: Showing = (show) => show

export const makeHush = Effect.gen(function* () {
  const held: Array<Effect.Effect<void>> = []
  let isOpen = false
  const turns = yield* Semaphore.make(1)
  const showHeld = turns.withPermits(1)(
    Effect.gen(function* () {
      for (let show = held.shift(); show !== undefined; show = held.shift()) yield* show
    })
  )
  const showing: Showing = (show) =>
    Effect.suspend(() => {
      held.push(show)
      return isOpen ? showHeld : Effect.void
    })
  return {
    showing,
    /** Lets what was held be heard, and from now on everything at once. */
    open: Effect.suspend(() => {
      isOpen = true
      return showHeld
    })
  }
})
