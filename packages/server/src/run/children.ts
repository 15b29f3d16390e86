/**
 * Runs that runs begin: one agent hands a task to another.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * Spawning is a tool's effect: the child is queued in the transaction that
 * records the call, and the end of the child brings the call's outcome.
 */
import { Effect, Layer } from "effect"
import { refused } from "../graph/refused.ts"
import { ChildRuns } from "../tool/run-tools.ts"

export const childRuns = Layer.succeed(ChildRuns, {
  spawn: ({ agent }) => Effect.fail(refused("notPermitted", `You may not hand tasks to ${agent}`)),
  list: () => Effect.succeed({ result: { agents: [] }, decision: null, reads: [] })
})
