/**
 * What wakes an agent, what it may do and how it fares, in words.
 *
 * Pure. Names and reasons are foreign text; whoever shows a sentence of here
 * shows it through `Visible`.
 */
import type { AgentHealth } from "@tropism/api/agents-api"
import type { Agent } from "@tropism/domain/agent"
import { toString as cronWords } from "cronstrue"
import { Option } from "effect"

/** A schedule in words; undefined where it is no cron expression. */
export const cronText = (expression: string): string | undefined => {
  const [, , day, , weekday] = expression.trim().split(/\s+/)
  const isEither = day !== "*" && weekday !== "*"
  return Option.liftThrowable(() =>
    cronWords(expression, { use24HourTimeFormat: true, verbose: true })
  )().pipe(
    // A day of the month and a day of the week are two ways for a day to be meant.
    Option.map((words) => (isEither ? words.replace(/, and (?=(?:on )?[^,]*day)/, ", or ") : words)),
    Option.getOrUndefined
  )
}

const triggerWords: Readonly<Record<Agent["triggerType"], string>> = {
  reaction: "Graph change or external event",
  schedule: "Schedule",
  manual: "Manual",
  webhook: "Webhook"
}

export const triggerWord = (type: Agent["triggerType"]): string => triggerWords[type]

export const triggerTypes = Object.entries(triggerWords).map(([value, label]) => ({ value, label }))

export type HealthState = "disabled" | "failed" | "running" | "paused" | "notRun" | "well"

/** The one thing to know about an agent; what a person should look at comes first. */
export const healthState = ({ enabled, latest }: AgentHealth): HealthState => {
  if (!enabled) return "disabled"
  if (latest[0]?.status === "failed") return "failed"
  if (latest.some(({ status }) => status === "running")) return "running"
  if (latest.some(({ status }) => status === "paused")) return "paused"
  return latest.length === 0 ? "notRun" : "well"
}

/** The same in a sentence. */
export const healthText = (health: AgentHealth): string => {
  const state = healthState(health)
  if (state === "disabled") return health.disabledReason ?? "Disabled."
  if (state !== "failed") return healthSentences[state]
  const failures = health.latest.findIndex(({ status }) => status !== "failed")
  const row = failures === -1 ? health.latest.length : failures
  return row === 1 ? "Last run failed." : `Last ${row} runs failed.`
}

const healthSentences: Readonly<Record<Exclude<HealthState, "disabled" | "failed">, string>> = {
  running: "Running",
  paused: "Waiting for a person",
  notRun: "No runs yet",
  well: "Healthy"
}

/** How much an agent needs a look, the least number first: it disabled itself, it fails, nobody can think for it. */
export const troubleRank = ({ enabled, disabledReason, latest, modelMissing }: AgentHealth): number => {
  if (!enabled) return disabledReason === null ? 3 : 0
  if (latest[0]?.status === "failed") return 1
  return modelMissing === null ? 3 : 2
}

/** Those whose name has these words, and that are enabled or not as asked; who is in trouble comes first. */
export const chosenAgents = <A extends AgentHealth>(
  agents: ReadonlyArray<A>,
  { words = "", enabled }: { readonly words?: string | undefined; readonly enabled?: string | undefined }
): ReadonlyArray<A> =>
  agents
    .filter(
      (agent) =>
        agent.agentName.toLowerCase().includes(words.trim().toLowerCase()) &&
        (enabled === undefined || String(agent.enabled) === enabled)
    )
    .toSorted((one, other) => troubleRank(one) - troubleRank(other))

/** Done at once, suggested to a person, refused; or done where the agent is sure enough, else suggested. */
export type ChangeOutcome = "refused" | "done" | "suggested" | "doneIfSure"

/** What happens with a change that an agent wants to make. */
export const outcomeOf = (isAllowed: boolean, mode: string, alwaysAsks: boolean): ChangeOutcome => {
  if (!isAllowed) return "refused"
  if (mode === "execute") return "done"
  return mode === "suggest" || alwaysAsks ? "suggested" : "doneIfSure"
}

/** The same in words; an empty threshold is the default. */
export const outcomeWord = (outcome: ChangeOutcome, threshold: string): string => {
  if (outcome === "refused") return "Not allowed"
  if (outcome === "done") return "Auto-applied"
  if (outcome === "suggested") return "Needs review"
  const least = Number(threshold === "" ? "0.8" : threshold)
  return Number.isNaN(least)
    ? "Auto-applied at high confidence"
    : `Auto-applied at ≥ ${Math.round(least * 100)}% confidence`
}
