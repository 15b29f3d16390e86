/**
 * What woke a run, and what became of it, in sentences.
 *
 * Pure. What agents and the graph say is foreign text; whoever shows a
 * sentence of here shows it through `Visible`.
 */
import { isTerminal, type PauseReason, type Run, type Trigger } from "@tropism/domain/run"
import { countText } from "../words/amounts.ts"

const wakers: Readonly<Record<Trigger["type"], string>> = {
  reaction: "A change of the graph",
  schedule: "Its schedule",
  manual: "A person",
  webhook: "A webhook",
  context: "A message in its context",
  agent: "Another agent",
  mcpEvent: "An event of a foreign server"
}

export const triggerChoices = Object.entries(wakers).map(([value, label]) => ({ value, label }))

/** What woke the agent: `person.created`, `3 events, first person.created`, `Its schedule`. */
export const wakerText = ({ type, events = [] }: Trigger): string => {
  const [first] = events
  if (first === undefined) return wakers[type]
  return events.length === 1 ? first.type : `${countText(events.length, "event")}, first ${first.type}`
}

const pauses: Readonly<Record<PauseReason, string>> = {
  stepLimit: "It has used all its steps. Resume it to let it go on.",
  timeout: "Its time is over. Resume it to let it go on.",
  budget: "Its budget is spent. Resume it with more to let it go on.",
  question: "It asks a person something and goes on with the answer.",
  subAgents: "It waits for the runs that it spawned and goes on by itself.",
  killSwitch: "A kill switch stopped it. It goes on when the switch is lifted."
}

/** What is happening now, or how it ended and why; what it says of itself comes last. */
export const outcomeText = (
  run: Pick<Run, "status" | "pauseReason" | "summary" | "errorMessage" | "stepCount">
): string => {
  const own = run.errorMessage ?? run.summary
  if (run.status === "queued") return "It waits for a free worker."
  if (run.status === "running") return `It works: ${countText(run.stepCount, "step")} so far.`
  if (run.status === "paused") return pauses[run.pauseReason ?? "question"]
  return own ?? "It said nothing at its end."
}

export const canCancel = (run: Pick<Run, "status">): boolean => !isTerminal(run.status)
