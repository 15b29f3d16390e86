/**
 * The tool calls of the last answer, as the reducer follows them: asked for, made, and with an outcome.
 */
import { madeCall } from "./defined-tool.ts"
import type { WaitsFor } from "./event-base.ts"
import type { ToolCall } from "./message.ts"
import { type Repetition, withCall } from "./repetition.ts"

/** What a context knows of the calls of its last answer. */
export interface CallState {
  /** Calls of the last answer that have no outcome yet, in the order the model made them. */
  readonly pendingCalls: ReadonlyArray<ToolCall>
  /** Of the pending calls those that were made and whose outcome somebody else brings, by their ids. */
  readonly waitingCalls: Readonly<Record<string, WaitsFor>>
  /** Whether the calls go round in circles. */
  readonly repetition: Repetition
}

/** A call is counted when it is made, or refused, once. */
export const startCall = <S extends CallState>(
  state: S,
  callId: string,
  waitsFor: WaitsFor | undefined
): S => {
  const call = state.pendingCalls.find(({ id }) => id === callId)
  if (!call) return state
  return {
    ...state,
    repetition: state.repetition.recent.some(({ id }) => id === callId)
      ? state.repetition
      : withCall(state.repetition, madeCall(call), (id) => state.pendingCalls.some((each) => each.id === id)),
    waitingCalls: waitsFor === undefined ? state.waitingCalls : { ...state.waitingCalls, [callId]: waitsFor }
  }
}
