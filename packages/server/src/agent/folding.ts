/**
 * Folds the logs of contexts: from their newest snapshot on, or from a state that somebody has.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * A log is read in pages, so a long one costs time and no memory: two pages are there at once.
 */
import { type ContextName, eventNumber, type LoggedEvent } from "@tropism/domain/context-event"
import { fold, type ReducedContext } from "@tropism/domain/context"
import { Effect, Fiber } from "effect"
import { orDie, type ProjectTransaction } from "../database/database.ts"
import { agentLimits } from "../limits.ts"
import type { Snapshots } from "./snapshots.ts"

type Read = (
  name: ContextName,
  after: number,
  limit: number
) => Effect.Effect<ReadonlyArray<LoggedEvent>, never, ProjectTransaction>

export const makeFolding = (read: Read, beginningOf: Snapshots["beginningOf"]) => {
  /** Folds what is new onto a state; the database reads the next page while one is folded. */
  const goOn = Effect.fnUntraced(function* (name: ContextName, from: ReducedContext) {
    let context = from
    let page = yield* read(name, context.nextEventNumber - 1, agentLimits.logPageEvents)
    for (let last = lastOf(page); last !== undefined; last = lastOf(page)) {
      const next = yield* Effect.forkChild(read(name, last, agentLimits.logPageEvents))
      // What is asked is sent when others have had their turn.
      yield* Effect.yieldNow
      context = fold(page, context)
      page = yield* Fiber.join(next)
    }
    return fold(page, context)
  })

  const open = Effect.fn("Contexts.open")(function* (name: ContextName) {
    const { context, number } = yield* beginningOf(name, lastNumber)
    return { context: yield* goOn(name, context), keptNumber: number }
  }, orDie)

  const load = Effect.fn("Contexts.load")((name: ContextName, from?: ReducedContext) =>
    from === undefined ? Effect.map(open(name), ({ context }) => context) : goOn(name, from)
  )

  const loadUpTo = Effect.fn("Contexts.loadUpTo")(function* (name: ContextName, last: number) {
    let { context } = yield* beginningOf(name, last)
    while (context.nextEventNumber <= last) {
      const wanted = Math.min(agentLimits.logPageEvents, last - context.nextEventNumber + 1)
      const page = yield* read(name, context.nextEventNumber - 1, wanted)
      if (page.length === 0) return context
      context = fold(page, context)
    }
    return context
  }, orDie)

  return { open, load, loadUpTo }
}

/** The number of the last event of a full page; behind any other there is none. */
const lastOf = (page: ReadonlyArray<LoggedEvent>): number | undefined => {
  const last = page[agentLimits.logPageEvents - 1]
  return last && eventNumber(last.id)
}

/** After every event that there will ever be. */
const lastNumber = 2_147_483_647
