/**
 * The decider: what an actor does next, given what its log says.
 *
 * `decide` is pure, so a run that is taken over by another worker goes on
 * exactly where the log ends. It performs nothing; `server/run` does.
 */
import { Option } from "effect"
import type { ReducedContext } from "./context.ts"
import type { ToolCall } from "./message.ts"

export type Decision =
  /** A trigger waits and no turn is open. */
  | { readonly type: "startTurn"; readonly turnNumber: number }
  /** A turn is open that this attempt did not open: its worker died. */
  | { readonly type: "interruptTurn"; readonly turnNumber: number }
  | { readonly type: "requestModel"; readonly withTools: boolean }
  | { readonly type: "callTool"; readonly call: ToolCall }
  /** The run has used its steps: say so to the model before its last request. */
  | { readonly type: "softStop" }
  /** The model asked for a tool after the soft stop, or for one whose turn or run has ended since. */
  | { readonly type: "refuseTool"; readonly call: ToolCall; readonly reason: "softStop" | "abandoned" }
  /** The last request after a soft stop is answered. */
  | { readonly type: "pause" }
  | { readonly type: "completeTurn"; readonly text: string }
  /** Nothing is left to do. */
  | { readonly type: "finish"; readonly text: string }

export interface DecisionInput {
  readonly context: ReducedContext
  readonly runId: string
  /** The turn that this attempt opened, if it opened one. */
  readonly ownTurnNumber: number | undefined
  readonly maxSteps: number
}

export const decide = ({ context, runId, ownTurnNumber, maxSteps }: DecisionInput): Decision => {
  const isOwnRun = context.run.id === runId
  const text = isOwnRun ? context.lastText : ""
  if (Option.isNone(context.agentTurnStartedAtEventId)) {
    if (context.isTurnDue) return { type: "startTurn", turnNumber: context.currentTurnNumber + 1 }
    return isOwnRun && context.run.isPaused ? { type: "pause" } : { type: "finish", text }
  }
  if (ownTurnNumber !== context.currentTurnNumber)
    return { type: "interruptTurn", turnNumber: context.currentTurnNumber }
  const isSoftStopped = isOwnRun && context.run.isSoftStopped
  const steps = isOwnRun ? context.run.steps - context.run.stepsBeforeResume : 0
  const [call] = context.pendingCalls
  if (call) {
    if (context.areCallsAbandoned || !isOwnRun) return { type: "refuseTool", call, reason: "abandoned" }
    return isSoftStopped ? { type: "refuseTool", call, reason: "softStop" } : { type: "callTool", call }
  }
  if (isSoftStopped) return steps > maxSteps ? { type: "pause" } : { type: "requestModel", withTools: false }
  if (context.isAnswered) return { type: "completeTurn", text }
  if (steps >= maxSteps) return { type: "softStop" }
  return { type: "requestModel", withTools: true }
}
