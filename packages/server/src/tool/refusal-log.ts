/**
 * What the server's log says of a call that was refused.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * A right that is missing is an error that an operator must see (S000-R27). A
 * name that no tool has is a model's mistake: it is answered, and is on record.
 */
import type { ToolCall } from "@tropism/domain/message"
import { Effect, type Schema } from "effect"
import type { RunPrincipal } from "./principal.ts"

/** An agent may not do what it asked for. */
export const logRefusal = (
  principal: RunPrincipal,
  call: ToolCall,
  what: "An agent's change was refused" | "A call of a foreign tool was refused",
  reason: Schema.Json
): Effect.Effect<void> => Effect.logError(what, { ...told(principal, call), reason })

/** A model asked for what its agent was not offered. */
export const logUnknownTool = (principal: RunPrincipal, call: ToolCall): Effect.Effect<void> =>
  Effect.logInfo("An agent called a tool that it does not have", told(principal, call))

const told = ({ agentId, agentName: agent, runId }: RunPrincipal, { name: tool }: ToolCall) => ({
  agent,
  agentId,
  runId,
  tool
})
