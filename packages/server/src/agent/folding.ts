/**
 * Folds the logs of contexts: from their newest snapshot on, or from a state that somebody has.
 *
 * Flow: graph → outbox → dispatch → run → tool → task, beside it **agent** → model
 *
 * A log is read in pages, so a long one costs time and no memory.
 */
import { type ContextName, decodeEvent } from "@tropism/domain/context-event"
import { fold, type ReducedContext } from "@tropism/domain/context"
import { Effect } from "effect"
import { orDie, type ProjectTransaction } from "../database/database.ts"
import { agentLimits } from "../limits.ts"
import type { LoggedJson } from "./appending.ts"
import type { Snapshots } from "./snapshots.ts"

type Read = (
  name: ContextName,
  after: number,
  limit: number
) => Effect.Effect<ReadonlyArray<LoggedJson>, never, ProjectTransaction>

export const makeFolding = (read: Read, beginningOf: Snapshots["beginningOf"]) => {
  /** Folds what is new onto a state. */
  const goOn = Effect.fnUntraced(function* (name: ContextName, from: ReducedContext) {
    let context = from
    while (true) {
      const page = yield* read(name, context.nextEventNumber - 1, agentLimits.logPageEvents)
      context = fold(page.map(decodeEvent), context)
      if (page.length < agentLimits.logPageEvents) return context
    }
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
      context = fold(page.map(decodeEvent), context)
    }
    return context
  }, orDie)

  return { open, load, loadUpTo }
}

/** After every event that there will ever be. */
const lastNumber = 2_147_483_647
