/**
 * Questions that agents ask people, and their answers.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 */
import { Effect, Layer } from "effect"
import { refused } from "../graph/refused.ts"
import { Questions } from "../tool/run-tools.ts"

export const questions = Layer.succeed(Questions, {
  ask: () => Effect.fail(refused("notPermitted", "There is nobody to ask"))
})
