/**
 * A call as the log keeps it: what the model sent, in bounds.
 *
 * Flow: graph → outbox → dispatch → **run** → tool → task
 *
 * What cannot be kept, or is too long, becomes text with the reason beside it:
 * the call is then refused with that reason, and the model can send it again.
 */
import { findFault } from "@tropism/domain/json"
import { growthNote, keptChars } from "@tropism/domain/kept-size"
import type { ToolCall } from "@tropism/domain/message"
import { beginningOf } from "@tropism/domain/text-beginning"
import type { Schema } from "effect"
import { toolLimits } from "../limits.ts"
import type { ModelToolCall } from "../model/model-request.ts"

/** A model's call under its id in the log. */
export const requestedCall = (id: string, { arguments: args, fault, name }: ModelToolCall): ToolCall => {
  const call = { id, name: keepable(name, toolLimits.nameMaxChars), arguments: args }
  const reason = fault ?? faultOf(args)
  if (reason === undefined) return call
  const text = typeof args === "string" ? args : JSON.stringify(args)
  return { ...call, arguments: keepable(text, toolLimits.faultyArgumentsMaxChars), fault: reason }
}

const faultOf = (args: Schema.Json): string | undefined => {
  const size = keptChars(args)
  if (size > toolLimits.argumentsMaxChars)
    return `The arguments are ${size} characters long; at most ${toolLimits.argumentsMaxChars} can be taken${growthNote(args)}`
  const fault = typeof args === "string" ? undefined : findFault(args)
  return fault && `${fault.pointer}: ${fault.message}`
}

/** The beginning of a text, without what the database cannot keep. */
const keepable = (text: string, maxChars: number): string =>
  beginningOf(text, maxChars).replaceAll("\u0000", "\uFFFD").toWellFormed()
