/**
 * How many steps a run has made, as its context tells.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 */
import type { ReducedContext } from "@tropism/domain/context"
import type { ClaimedRun } from "./claimed-run.ts"

/** A conversation may hold other runs' steps: those are not counted. */
export const stepsOf = ({ id }: Pick<ClaimedRun, "id">, { run }: ReducedContext): number =>
  run.id === id ? run.steps : 0
