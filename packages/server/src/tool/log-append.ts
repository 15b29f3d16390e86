/**
 * How a tool writes to the log of the run that calls it.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Calls that are made side by side share one cursor: their transactions take turns, so none waits for the lock of
 * another with a connection in hand, and each knows where the one before left the log.
 */
import { eventNumber, type LoggedEvent, type NewEvent } from "@tropism/domain/context-event"
import type { TaintSource } from "@tropism/domain/taint"
import { Effect, Semaphore } from "effect"
import type { Statement } from "effect/sql"
import type { LogEnd } from "../agent/appending.ts"
import { Contexts } from "../agent/contexts.ts"
import type { ProjectTransaction } from "../database/database.ts"
import type { RunPrincipal } from "./principal.ts"

/** Appends in one question where the log is as the caller last saw it, else under its lock. */
export const makeLogAppend = Effect.map(Contexts, (contexts) =>
  Effect.fnUntraced(function* (
    { projectId, contextName }: RunPrincipal,
    end: LogEnd | undefined,
    events: ReadonlyArray<NewEvent>,
    taint: ReadonlyArray<TaintSource> = [],
    alongside: ReadonlyArray<Statement.Fragment> = []
  ): Effect.fn.Return<ReadonlyArray<LoggedEvent>, never, ProjectTransaction> {
    if (end) {
      const planned = yield* contexts.plan(projectId, contextName, end, events, { taint, alongside })
      if (yield* contexts.write(contextName, planned)) return planned.events
    }
    return yield* contexts.append(contextName, events, { taint, alongside })
  })
)

/** Where calls write to a log, one after the other. */
export interface LogCursor {
  /** Runs a transaction alone, where the log is thought to end; what it appended moves the end. */
  readonly write: <A extends Appended, E, R>(
    transaction: (end: LogEnd) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  /** Runs alone what writes nothing. */
  readonly alone: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** All that was appended; nothing where something else stands between, or may: then the log is read again. */
  readonly appended: () => ReadonlyArray<LoggedEvent>
}

interface Appended {
  readonly appended: ReadonlyArray<LoggedEvent>
}

/** A cursor on a log that ends there; a turn neither begins nor ends in a call. */
export const makeLogCursor = (start: LogEnd): LogCursor => {
  const turns = Semaphore.makeUnsafe(1)
  const all: Array<LoggedEvent> = []
  let end = start
  let isWhole = true
  const note = ({ appended }: Appended): void => {
    const [first, last] = [appended[0], appended.at(-1)]
    if (!first || !last || eventNumber(first.id) !== end.lastNumber + 1) isWhole = false
    if (last) end = { ...end, lastNumber: eventNumber(last.id) }
    all.push(...appended)
  }
  const alone = turns.withPermits(1)
  return {
    alone,
    write: (transaction) =>
      alone(
        Effect.tap(
          Effect.suspend(() => transaction(end)),
          (made) => Effect.sync(() => note(made))
        )
      ),
    appended: () => (isWhole ? all : [])
  }
}
