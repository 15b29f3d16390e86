/**
 * How far the flow of a context has come, as the reducer follows it.
 */
import { Option } from "effect"
import type { FlowStepStartedEvent, ToolCallCompletedEvent } from "./context-event.ts"
import { exitLoopTool, type FlowProgress } from "./flow.ts"
import type { Message } from "./message.ts"

/** What a context knows of its flow. */
export interface FlowState {
  /** Said while a tool call was pending, or meant for the next turn; joins `messages` when its time has come. */
  readonly heldMessages: ReadonlyArray<Message>
  /** How far the flow has come; none before its first step, and in a single flow. */
  readonly flow: Option.Option<FlowProgress>
  /** The last answer asked for no tool, and no turn has begun since because somebody asked for one. */
  readonly isAnswered: boolean
  /** What the last run has said last. */
  readonly lastText: string
}

/** A step begins: its prompt is the next thing said. */
export const beginStep = <S extends FlowState>(
  state: S,
  { content, index, iteration, step }: FlowStepStartedEvent
): S => ({
  ...state,
  heldMessages: [...state.heldMessages, { role: "user", content }],
  flow: Option.some({
    step,
    index,
    iteration,
    outputs: Option.match(state.flow, { onNone: () => ({}), onSome: ({ outputs }) => outputs }),
    text: "",
    isExited: false
  })
})

/** A turn of a step is through: what the step said last is its output. */
export const withOutput = (flow: FlowProgress): FlowProgress => ({
  ...flow,
  outputs: { ...flow.outputs, [flow.step]: flow.text }
})

/** The agent has ended its loop, and may have said with what. */
export const endLoop = <S extends FlowState>(state: S, { result, tool }: ToolCallCompletedEvent): S => {
  if (tool !== exitLoopTool) return state
  const output =
    typeof result === "object" && result !== null && "output" in result && typeof result.output === "string"
      ? result.output
      : undefined
  return {
    ...state,
    isAnswered: true,
    lastText: output ?? state.lastText,
    flow: Option.map(state.flow, (flow) => ({ ...flow, isExited: true, text: output ?? flow.text }))
  }
}
