/**
 * What a refusal says to whoever called.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 */
import type { Schema } from "effect"
import type { ChangeRefused } from "../graph/refused.ts"

/** The sentence, the reason for programs and the place in the arguments, where the fault lies in one. */
export const refusalWords = ({ detail, pointer, reason }: ChangeRefused): Schema.Json => ({
  error: detail,
  reason,
  ...(pointer === undefined ? {} : { pointer })
})
