/**
 * One step of a fold: the state behind an event, and which messages join those that the model is shown.
 *
 * What is said while a tool call is pending, or for a later turn than the open
 * one, is held back; each step ends by letting go what nothing speaks against.
 */
import { Option } from "effect"
import type { Asked } from "./context-flow.ts"
import type { Message } from "./message.ts"
import type { ReducedContext } from "./reduced-context.ts"

/** All but the messages: no step reads them, so one window serves a whole fold. */
export type State = Omit<ReducedContext, "messages">

/** The same in the hands of the fold that made it, with the list of what was said; nothing else has seen them. */
export type OwnState = { -readonly [K in Exclude<keyof State, "asked">]: State[K] } & { asked: Array<Asked> }

/** A state and what joins the messages on the way to it. */
export interface Step {
  readonly state: State
  readonly said: ReadonlyArray<Message>
}

export const silently = (state: State): Step => ({ state, said: [] })

export const hold = (state: State, messages: ReadonlyArray<Message>): State => ({
  ...state,
  heldMessages: [...state.heldMessages, ...messages]
})

/** Held, and let go at once where nothing speaks against it: most of what is said. */
export const say = (state: State, content: string): Step =>
  state.heldMessages.length === 0 && mayJoin(state)
    ? { state, said: [{ role: "user", content }] }
    : silently(hold(state, [{ role: "user", content }]))

/**
 * Lets held messages join once nothing speaks against it.
 *
 * Providers want a call's result right after the call. A message that triggers
 * a turn while another is open belongs to the next one: an answer that is
 * written at that moment has not seen it.
 */
export const release = (step: Step): Step => {
  const { said, state } = step
  if (state.heldMessages.length === 0 || !mayJoin(state)) return step
  return { state: { ...state, heldMessages: [] }, said: [...said, ...state.heldMessages] }
}

const mayJoin = (state: State): boolean =>
  state.pendingCalls.length === 0 && !(state.isTriggered && Option.isSome(state.agentTurnStartedAtEventId))

/** What is for the turn that is open waits for pending calls only. */
export const sayNow = (state: State, message: Message): Step =>
  state.pendingCalls.length === 0
    ? { state, said: [message] }
    : silently({ ...state, heldMessages: [...state.heldMessages, message] })
