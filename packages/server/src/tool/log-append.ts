/**
 * How a tool writes to the log of the run that calls it.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 */
import type { LoggedEvent, NewEvent } from "@tropism/domain/context-event"
import type { TaintSource } from "@tropism/domain/taint"
import { Effect } from "effect"
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
