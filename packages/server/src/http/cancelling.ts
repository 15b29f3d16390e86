/**
 * A person cancels a run.
 *
 * Flow: **http** → dispatch → run → tool → task
 *
 * The runs below it are cancelled behind the transaction that cancels it.
 */
import { Conflict } from "@tropism/api/problems"
import type { RunId } from "@tropism/domain/ids"
import { Effect } from "effect"
import { Endings } from "../run/endings.ts"
import { Runs } from "../run/runs.ts"
import { readableRun } from "./owned.ts"
import { orNotFound } from "./refusals.ts"

const known = orNotFound("run")

/** Cancels a run that has not ended, in the caller's transaction, and answers it. */
export const cancelling = Effect.fn("http.cancelling")(function* (id: RunId) {
  const runs = yield* Runs
  const endings = yield* Endings
  const run = yield* readableRun(id)
  // Read again: it ended after it was read, or before.
  yield* Effect.catchTag(endings.cancel(run), "RunNotInState", () =>
    Effect.flatMap(known(runs.get(id)), ({ status }) =>
      Effect.fail(new Conflict({ reason: "state", detail: `The run is ${status} already` }))
    )
  )
  return yield* known(runs.get(id))
})
