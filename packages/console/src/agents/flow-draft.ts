/**
 * How the prompts of a run follow one another, as a form holds it.
 *
 * Pure. A single flow has neither steps nor iterations, and only a loop has iterations.
 */
import type { AgentInput } from "@tropism/domain/agent"
import type { FlowStepInput } from "@tropism/domain/flow"
import { Result } from "effect"
import { type DraftFault, numberGiven, numberText, partsOf, type Sent } from "./draft-texts.ts"
import { emptyModel, type ModelDraft, modelDraftOf, modelOf } from "./model-draft.ts"

export interface StepRow {
  readonly name: string
  readonly prompt: string
  /** `own` tools, which may be none, or the `agent`'s. */
  readonly toolsOf: string
  /** One a line. */
  readonly tools: string
  readonly model: ModelDraft
}

export interface FlowDraft {
  readonly flowType: string
  readonly steps: ReadonlyArray<StepRow>
  readonly maxIterations: string
}

export const emptyStep: StepRow = { name: "", prompt: "", toolsOf: "agent", tools: "", model: emptyModel }

export const flowDraftOf = ({
  flowType,
  steps,
  maxIterations
}: Pick<AgentInput, "flowType" | "steps" | "maxIterations">): FlowDraft => ({
  flowType: flowType ?? "single",
  steps: (steps ?? []).map(stepRowOf),
  maxIterations: numberText(maxIterations)
})

const stepRowOf = ({ name, prompt, tools, model }: FlowStepInput): StepRow => ({
  name,
  prompt,
  toolsOf: tools ? "own" : "agent",
  tools: (tools ?? []).join("\n"),
  model: modelDraftOf(model)
})

export const flowOf = ({ flowType, steps, maxIterations }: FlowDraft): Result.Result<Sent, DraftFault> =>
  Result.gen(function* () {
    if (flowType === "single") return {}
    const sent = yield* Result.all(steps.map(stepOf))
    return {
      flowType,
      ...(sent.length > 0 && { steps: sent }),
      ...(flowType === "loop" && numberGiven("maxIterations", maxIterations))
    }
  })

const stepOf = (
  { name, prompt, toolsOf, tools, model }: StepRow,
  index: number
): Result.Result<Sent, DraftFault> =>
  modelOf(model, `/steps/${index}/model`).pipe(
    Result.map((asked) => ({ name, prompt, ...(toolsOf === "own" && { tools: partsOf(tools) }), ...asked }))
  )
