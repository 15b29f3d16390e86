/**
 * A person cancels a run, or whatever works in a context.
 *
 * Flow: **http** → dispatch → run → tool → task
 *
 * The runs below it are cancelled behind the transaction that cancels it.
 */
import { CurrentPrincipal } from "@tropism/api/authorization"
import { Conflict } from "@tropism/api/problems"
import type { ContextName } from "@tropism/domain/context-event"
import type { RunId } from "@tropism/domain/ids"
import { isTerminal } from "@tropism/domain/run"
import { Effect } from "effect"
import { Endings } from "../run/endings.ts"
import type { Cancellation } from "../run/outcomes.ts"
import { Runs } from "../run/runs.ts"
import { readableRun } from "./owned.ts"
import { orNotFound } from "./refusals.ts"

const known = orNotFound("run")

/** Cancels the run that works or rests in a context, in the caller's transaction, and answers which that was. */
export const cancelWorkIn = Effect.fn("http.cancelWorkIn")(function* (
  name: ContextName,
  cancellation: Cancellation
) {
  const runs = yield* Runs
  const endings = yield* Endings
  let met: RunId | undefined
  while (true) {
    const run = yield* runs.newestOn(name)
    if (!run || run.id === met || isTerminal(run.status)) return undefined
    met = run.id
    const isCancelled = yield* Effect.match(endings.cancel({ id: run.id, contextName: name }, cancellation), {
      onSuccess: () => true,
      onFailure: () => false
    })
    if (isCancelled) return run.id
    // It has ended by itself a moment ago, and may have queued another one for what came late.
  }
})

/** Cancels a run that has not ended, in the caller's transaction, and answers it. */
export const cancelling = Effect.fn("http.cancelling")(function* (id: RunId) {
  const runs = yield* Runs
  const endings = yield* Endings
  const run = yield* readableRun(id)
  const { userId: by } = yield* CurrentPrincipal
  // Read again: it ended after it was read, or before.
  yield* Effect.catchTag(endings.cancel(run, { by }), "RunNotInState", () =>
    Effect.flatMap(known(runs.get(id)), ({ status }) =>
      Effect.fail(new Conflict({ reason: "state", detail: `The run is ${status} already` }))
    )
  )
  return yield* known(runs.get(id))
})
