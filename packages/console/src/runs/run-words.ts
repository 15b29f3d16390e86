/**
 * What woke a run, and what became of it, in sentences.
 *
 * Pure. What agents and the graph say is foreign text; whoever shows a
 * sentence of here shows it through `Visible`.
 */
import type { NamedObject } from "@tropism/domain/named-object"
import { isTerminal, type PauseReason, type Run, type RunWait, type Trigger } from "@tropism/domain/run"
import { countText, moneyText, tokensText } from "../words/amounts.ts"
import { withStop } from "../words/full-stop.ts"
import { clockText } from "../words/local-time.ts"

const wakers: Readonly<Record<Trigger["type"], string>> = {
  reaction: "Graph change",
  schedule: "Schedule",
  manual: "Manual",
  webhook: "Webhook",
  context: "Message",
  agent: "Another agent",
  mcpEvent: "External event"
}

export const triggerChoices = Object.entries(wakers).map(([value, label]) => ({ value, label }))

/** What woke an agent, with the object apart, which is a link where there is one. */
export interface Waker {
  /** `3 events, first `; nothing before one event. */
  readonly before: string
  readonly object: NamedObject | null
  /** `created`, `relationship KNOWS deleted`, `Its schedule`. */
  readonly what: string
}

export const wakerOf = ({
  trigger: { type, events = [] },
  subject
}: Pick<Run, "trigger" | "subject">): Waker => {
  const [first] = events
  if (first === undefined) return { before: "", object: null, what: wakers[type] }
  const thing = first.entityType === "relationship" ? "relationship" : "object"
  return {
    before: events.length === 1 ? "" : `${countText(events.length, "event")}, first `,
    object: subject,
    what: subject === null ? `${thing} ${first.objectType} ${first.type}` : first.type
  }
}

const pauses: Readonly<Record<PauseReason, string>> = {
  stepLimit: "Step limit reached. Resume to continue.",
  timeout: "Timed out. Resume to continue.",
  budget: "Budget used up. Resume after raising it.",
  question: "Waiting for a person's answer.",
  subAgents: "Waiting for sub-agent runs to end.",
  killSwitch: "Paused by a kill switch. Continues when the switch is off.",
  toolResult: "Waiting for a client's tool result, or for its timeout."
}

const waitText = ({ message, nextTryAt, since }: RunWait): string => {
  const clock = (instant: string) => clockText(instant, Date.parse(since), "seconds")
  const next = nextTryAt === null ? "" : ` Next attempt at ${clock(nextTryAt)}.`
  return `The model provider has been unavailable since ${clock(since)}: ${withStop(message)}${next} The run resumes automatically.`
}

/** What is happening now, or how it ended and why; what it says of itself comes last. */
export const outcomeText = (
  run: Pick<
    Run,
    "status" | "pauseReason" | "waitingFor" | "summary" | "errorMessage" | "cancelledBy" | "stepCount"
  >
): string => {
  const own = run.errorMessage ?? run.summary
  if (run.waitingFor !== null) return waitText(run.waitingFor)
  if (run.status === "queued") return "Waiting for a free worker."
  if (run.status === "running") return `Running: ${countText(run.stepCount, "step")} so far.`
  // The server knows whose budget it is: the run's, a run's above it, the agent's day or the chain's.
  if (run.pauseReason === "budget" && run.errorMessage !== null)
    return `${run.errorMessage} Resume after raising it.`
  if (run.status === "paused") return pauses[run.pauseReason ?? "question"]
  if (run.cancelledBy !== null) return `${run.cancelledBy} cancelled this run. ${own ?? ""}`.trimEnd()
  return own ?? "No summary"
}

/** What an answer that is not whole yet has used, by a guess. */
interface Guess {
  readonly tokens: number
  readonly costUsd: number | null
}

/** `2 steps, 1,234 tokens, $0.01`; where something is guessed, `~` stands before it. */
export const usedText = (
  { stepCount, usage, costUsd }: Pick<Run, "stepCount" | "usage" | "costUsd">,
  now?: Guess
): string => {
  const steps = countText(stepCount, "step")
  const tokens = usage.inputTokens + usage.outputTokens
  if (now === undefined) return `${steps}, ${tokensText(tokens)}, ${moneyText(costUsd)}`
  const money =
    now.costUsd === null ? `at least ${moneyText(costUsd)}` : `~${moneyText(costUsd + now.costUsd)}`
  return `${steps}, ~${tokensText(tokens + now.tokens)}, ${money} so far`
}

/** `948 tokens, $0.01`, of the run and of all runs below it; undefined where there are none that used anything. */
export const totalText = ({ usage, total }: Pick<Run, "usage" | "total">): string | undefined => {
  const all = total.usage.inputTokens + total.usage.outputTokens
  return all === usage.inputTokens + usage.outputTokens
    ? undefined
    : `${tokensText(all)}, ${moneyText(total.costUsd)}`
}

export const canCancel = (run: Pick<Run, "status">): boolean => !isTerminal(run.status)
