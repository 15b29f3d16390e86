/**
 * Flows: how the prompts of a run follow one another.
 *
 * `single` asks once. `sequential` gives the named steps in order, each a turn
 * that sees the outputs of those before it. `loop` does the same again and again
 * until the agent calls `exit_loop` or the iterations are used up; a loop without
 * steps repeats the agent's prompt. A plan is data and its progress is folded
 * from the log, so a run that is taken over goes on in the middle of a flow.
 */
import { Option, Schema } from "effect"
import { ModelConfig } from "./model-config.ts"
import { ToolPatterns } from "./tool-pattern.ts"

/** Accepts null as absent. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

export const FlowType = Schema.Literals(["single", "sequential", "loop"])
export type FlowType = typeof FlowType.Type

export const flowBounds = {
  maxSteps: 50,
  maxIterations: 1_000,
  defaultIterations: 10,
  /** Messages that a conversation's workflow is told of as its input, and the characters of them all. */
  maxInputMessages: 100,
  maxInputChars: 200_000
} as const

/** A name that a template can speak of: `{{ steps.review.output }}`. */
export const FlowStepName = Schema.String.check(
  Schema.isPattern(/^[A-Za-z][A-Za-z0-9_]{0,49}$/, {
    message: "A step's name has 1 to 50 letters, digits or underscores and begins with a letter"
  })
)

/** One step of a flow as somebody sends it. */
export const FlowStepInput = Schema.Struct({
  name: FlowStepName,
  /** A template, said as the step begins; it may speak of `steps` and `iteration`. */
  prompt: Schema.String.check(Schema.isBetweenLength(1, 100_000)),
  /** The tools of this step; the agent's where absent. */
  tools: opt(ToolPatterns),
  /** The model of this step; the agent's where absent. */
  model: opt(ModelConfig)
}).annotate({ identifier: "FlowStepInput" })
export type FlowStepInput = typeof FlowStepInput.Type

/** One step of a flow as it is kept; null is the agent's own. */
export const FlowStep = Schema.Struct({
  name: Schema.String,
  prompt: Schema.String,
  tools: Schema.NullOr(Schema.Array(Schema.String)),
  model: Schema.NullOr(ModelConfig)
}).annotate({ identifier: "FlowStep" })
export type FlowStep = typeof FlowStep.Type

/** Fills in every default of a step. */
export const defineFlowStep = (input: FlowStepInput): FlowStep => ({
  name: input.name,
  prompt: input.prompt,
  tools: input.tools ?? null,
  model: input.model ?? null
})

/** The tool by which an agent ends its loop; no other may have this name. */
export const exitLoopTool = "exit_loop"

/** The name of the one step of a loop that has none of its own: the agent's prompt. */
export const promptStep = "prompt"

/** What a run has to go through. */
export interface FlowPlan {
  /** The names of the steps, in order; at least one. */
  readonly steps: ReadonlyArray<string>
  readonly maxIterations: number
}

/** The plan of a definition; a single flow has none. */
export const planOf = (definition: {
  readonly flowType: FlowType
  readonly steps: ReadonlyArray<FlowStep>
  readonly maxIterations: number | null
}): FlowPlan | undefined => {
  if (definition.flowType === "single") return undefined
  const names = definition.steps.map(({ name }) => name)
  return {
    steps: names.length === 0 ? [promptStep] : names,
    maxIterations:
      definition.flowType === "sequential" ? 1 : (definition.maxIterations ?? flowBounds.defaultIterations)
  }
}

/** A step in its place: the `index`-th of an iteration, both counted from 0 and from 1. */
export interface FlowPlace {
  readonly step: string
  /** From 0. */
  readonly index: number
  /** From 1. */
  readonly iteration: number
}

/** How far a flow has come, as the log tells it. */
export interface FlowProgress extends FlowPlace {
  /** What each step said last, by its name. */
  readonly outputs: Readonly<Record<string, string>>
  /** What the present step has said last. */
  readonly text: string
  /** The agent has ended its loop. */
  readonly isExited: boolean
}

/** The step after the present one; nothing when the flow is through. */
export const nextPlace = (plan: FlowPlan, progress: Option.Option<FlowProgress>): FlowPlace | undefined => {
  const [first = promptStep] = plan.steps
  if (Option.isNone(progress)) return { step: first, index: 0, iteration: 1 }
  const { index, isExited, iteration } = progress.value
  if (isExited) return undefined
  const next = plan.steps[index + 1]
  if (next !== undefined) return { step: next, index: index + 1, iteration }
  return iteration < plan.maxIterations ? { step: first, index: 0, iteration: iteration + 1 } : undefined
}
