/**
 * The steps of a run's flow in words, and which of them the events of a log belong to.
 *
 * Pure. The names are foreign; whoever shows them shows them through `Visible`.
 */
import type { FlowStepAtWork } from "@tropism/domain/model-call"
import type { SentEvent } from "./event-words.ts"

/** `review`, `review, iteration 2`; nothing where the flow is single. */
export const flowStepText = (step: FlowStepAtWork | null): string | undefined =>
  step === null ? undefined : step.iteration === 1 ? step.name : `${step.name}, iteration ${step.iteration}`

/** The step of the flow by the id of each event, from the beginning of the step to the end of its turn. */
export const flowStepsOf = (events: ReadonlyArray<SentEvent>): ReadonlyMap<string, string> => {
  const steps = new Map<string, string>()
  let current: string | undefined
  for (const event of events) {
    if (event.type === "FlowStepStartedEvent") {
      const { iteration, step } = event
      current = flowStepText({ name: String(step), iteration: Number(iteration) })
    }
    if (current !== undefined) steps.set(event.id, current)
    if (event.type === "AgentTurnCompletedEvent") current = undefined
  }
  return steps
}

/** Where another step of the flow begins in a list: its name by the place. */
export const stepHeads = (flows: ReadonlyArray<string | undefined>): ReadonlyMap<number, string> => {
  const heads = new Map<number, string>()
  let current: string | undefined
  flows.forEach((flow, place) => {
    if (flow === undefined || flow === current) return
    heads.set(place, flow)
    current = flow
  })
  return heads
}
