/**
 * How far the flow of a context has come, as the reducer follows it.
 *
 * A run that has a flow of its own goes through it once. In a conversation the
 * context may set a workflow: then what people say is worked through from its
 * first step, and whoever speaks before that is done begins it anew. The flow at
 * work goes on as it began, also when another is set meanwhile.
 */
import { Option } from "effect"
import type { ContextConfig, Workflow } from "./context-config.ts"
import type { FlowStepStartedEvent, ToolCallCompletedEvent } from "./context-event.ts"
import { exitLoopTool, flowBounds, type FlowPlace, type FlowProgress, nextPlace, planOf } from "./flow.ts"
import type { Message } from "./message.ts"
import { atStepStart, atTurnEnd, atTurnStart, noSpeakers, type Speakers } from "./speakers.ts"

/** Something that somebody said, and where in the log. */
export interface Asked {
  readonly at: number
  readonly content: string
}

/** What a context knows of its flow. */
export interface FlowState {
  /** Said while a tool call was pending, or meant for the next turn; joins `messages` when its time has come. */
  readonly heldMessages: ReadonlyArray<Message>
  /** How far the flow has come; none before its first step, and in a single flow. */
  readonly flow: Option.Option<FlowProgress>
  /** The workflow that is at work on what people said; none where that is one turn, and when it is through. */
  readonly workflow: Option.Option<Workflow>
  /** What people said since the last time that all was worked through, the newest of it. */
  readonly asked: ReadonlyArray<Asked>
  /** Whose words are worked on. */
  readonly speakers: Speakers
  /** Somebody asks for something that no turn and no step has begun for. */
  readonly isAsked: boolean
  /** A step of a workflow has begun, and its turn has not. */
  readonly isStepDue: boolean
  /** The last answer asked for no tool, and no turn has begun since because somebody asked for one. */
  readonly isAnswered: boolean
  /** What the last run has said last. */
  readonly lastText: string
}

export const noFlow: FlowState = {
  heldMessages: [],
  flow: Option.none(),
  workflow: Option.none(),
  asked: [],
  speakers: noSpeakers,
  isAsked: false,
  isStepDue: false,
  isAnswered: false,
  lastText: ""
}

type Configured = FlowState & { readonly config: ContextConfig }

/** The workflow with which a conversation goes on: the one at work, or the one that begins with what was asked. */
export const workflowOf = ({ config, isAsked, workflow }: Configured): Workflow | undefined =>
  Option.getOrUndefined(isAsked ? config.workflow : workflow)

/** The step of a conversation's workflow that comes next; the first where somebody asks anew. */
export const nextStepOf = (state: Configured): FlowPlace | undefined => {
  const workflow = workflowOf(state)
  const plan = workflow && planOf(workflow)
  return plan && nextPlace(plan, state.isAsked ? Option.none() : state.flow)
}

/** What a workflow is told as its input: all that was said since the last one was through. */
export const askedText = ({ asked }: Pick<FlowState, "asked">): string =>
  asked.map(({ content }) => content).join("\n\n")

/** Remembers what somebody said until it is worked through, in the list of a fold; what is too old may stay until the fold is done. */
export const hear = (asked: Array<Asked>, said: Asked): void => {
  const most = flowBounds.maxInputMessages
  asked.push(said)
  // Each message of a long log comes by here: the list is made anew once in a while.
  if (asked.length >= 2 * most) asked.splice(0, asked.length - most)
}

/** Of what was said the newest, as much as a workflow is told of. */
export const newestOf = (asked: ReadonlyArray<Asked>): ReadonlyArray<Asked> => {
  const newest = asked.slice(-flowBounds.maxInputMessages)
  let chars = 0
  const first = newest.findLastIndex(({ content }) => (chars += content.length) > flowBounds.maxInputChars)
  return newest.slice(first + 1)
}

/** A step begins: its prompt is the next thing said. */
export const beginStep = <S extends Configured>(
  state: S,
  { content, index, iteration, step }: FlowStepStartedEvent
): S => {
  const isAnew = state.isAsked && Option.isSome(state.config.workflow)
  const workflow = isAnew ? state.config.workflow : state.workflow
  const outputs = isAnew || Option.isNone(state.flow) ? {} : state.flow.value.outputs
  return {
    ...state,
    heldMessages: [...state.heldMessages, { role: "user", content }],
    flow: Option.some({ step, index, iteration, outputs, text: "", isExited: false }),
    workflow,
    speakers: atStepStart(state.speakers, Option.isSome(workflow)),
    isAsked: false,
    isStepDue: Option.isSome(workflow)
  }
}

/** A turn begins: of a step, or of whatever was said. */
export const beginTurn = <S extends FlowState>(state: S): S => {
  // Who spoke between a step and its turn breaks into that turn.
  if (state.isStepDue) return { ...state, isStepDue: false }
  const begun = { ...state, speakers: atTurnStart(state.speakers), isAsked: false }
  return state.isAsked && Option.isSome(state.workflow) ? withoutWorkflow(begun) : begun
}

/** A turn is through: what its step said last is the step's output, and the last step's turn is the end of the workflow. */
export const completeTurn = <S extends FlowState>(state: S, startedAt: number): S => {
  const flow = Option.map(state.flow, withOutput)
  const plan = Option.isSome(state.workflow) ? planOf(state.workflow.value) : undefined
  return plan && nextPlace(plan, flow) ? { ...state, flow } : endFlow({ ...state, flow }, startedAt)
}

/** Nobody waits any more for what was asked before a turn began: it is done, or given up. */
export const endFlow = <S extends FlowState>(state: S, startedAt: number): S => ({
  ...(Option.isSome(state.workflow) ? withoutWorkflow(state) : state),
  asked: state.asked.filter(({ at }) => at > startedAt),
  speakers: atTurnEnd(state.speakers)
})

const withoutWorkflow = <S extends FlowState>(state: S): S => ({
  ...state,
  flow: Option.none(),
  workflow: Option.none()
})

/** A turn of a step is through: what the step said last is its output. */
const withOutput = (flow: FlowProgress): FlowProgress => ({
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
