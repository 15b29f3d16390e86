/**
 * Keeps snapshots of a context while somebody works on it.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Beside the run's own writes and without its guard: what a log folds to is the
 * same whoever folds it. A snapshot only saves reading, so no run fails for want
 * of one.
 */
import type { ReducedContext } from "@tropism/domain/context"
import { Effect } from "effect"
import { Contexts } from "../agent/contexts.ts"
import { isSnapshotDue } from "../agent/snapshots.ts"
import { Database } from "../database/database.ts"
import type { ClaimedRun } from "./claimed-run.ts"

export const makeKeeping = Effect.gen(function* () {
  const database = yield* Database
  const contexts = yield* Contexts

  /** Keeps the state if enough lies behind the snapshot at an event; answers at which event the newest is. */
  const keepDue = Effect.fnUntraced(function* (
    { contextName, projectId }: ClaimedRun,
    context: ReducedContext,
    keptNumber: number
  ) {
    if (!isSnapshotDue(context, keptNumber)) return keptNumber
    yield* Effect.catchDefect(
      Effect.asVoid(database.ask(projectId, contexts.keeping(projectId, contextName, context))),
      (defect) => Effect.logWarning("A context could not be kept as a snapshot", defect)
    )
    return context.nextEventNumber - 1
  })

  return { keepDue }
})
