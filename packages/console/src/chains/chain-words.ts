/**
 * What a chain began with, what it may still use, and what each link of it is, in sentences.
 *
 * Pure. What agents and the graph say is foreign text; whoever shows a
 * sentence of here shows it through `Visible`.
 */
import type { Chain, ChainLink, ChainSummary } from "@tropism/api/chains-api"
import type { GraphEvent } from "@tropism/domain/graph"
import { moneyText, shortCount } from "../words/amounts.ts"

/** `Person created`, with its key where it has one. */
export const eventText = (event: Pick<GraphEvent, "objectType" | "type" | "snapshot">): string => {
  const key = keyOf(event.snapshot)
  return `${event.objectType}${key === undefined ? "" : ` ${key}`} ${event.type}`
}

const keyOf = (snapshot: GraphEvent["snapshot"]): string | undefined => {
  if (typeof snapshot !== "object" || snapshot === null || !("key" in snapshot)) return undefined
  return typeof snapshot.key === "string" ? snapshot.key : undefined
}

/** What began a chain, as its name. */
export const beginningText = ({
  rootEvent,
  agents = []
}: Pick<Chain, "rootEvent"> & { readonly agents?: ReadonlyArray<string> }): string => {
  if (rootEvent !== null) return eventText(rootEvent)
  return agents.length === 0 ? "Started by a run" : `Run of ${agents.join(" or ")}`
}

/** What is going on in a chain, in a word or two. */
export const stateText = ({ isStopped, openRuns }: Pick<ChainSummary, "isStopped" | "openRuns">): string =>
  [openRuns > 0 ? "Running" : "Completed", ...(isStopped ? ["limit reached"] : [])].join(", ")

export interface Budget {
  readonly name: string
  readonly text: string
  /** How much of it is used, from 0 to 1; null where it has no bound. */
  readonly share: number | null
}

/** What a chain has used of what it may, each with what is left. */
export const budgetsOf = ({
  counts,
  limits,
  use
}: Pick<Chain, "counts" | "limits" | "use">): ReadonlyArray<Budget> => [
  budget("Depth", use.depth, limits.maxDepth, String),
  runsBudget(counts.runs, use.runs, limits.maxRuns),
  budget("Tokens", use.inputTokens + use.outputTokens, limits.maxTokens, shortCount),
  budget("Cost", use.costUsd, limits.maxCostUsd, moneyText)
]

const budget = (name: string, used: number, most: number | null, text: (amount: number) => string): Budget =>
  most === null
    ? { name, text: `${text(used)}, no limit`, share: null }
    : {
        name,
        text: `${text(used)} of ${text(most)}, ${text(Math.max(0, most - used))} left`,
        share: most === 0 ? 1 : Math.min(1, used / most)
      }

/** The run with which a chain began is one of its runs, and none that it led to. */
const runsBudget = (all: number, used: number, most: number): Budget => {
  const led = budget("Runs", used, most, shortCount)
  return all === used ? led : { ...led, text: `${shortCount(all)} total, triggered: ${led.text}` }
}

/** One link as a sentence. */
export const linkText = (link: ChainLink): string => {
  switch (link.type) {
    case "event":
      return `${eventText(link.event)}, version ${link.event.version}`
    case "run": {
      const said = link.run.errorMessage ?? link.run.summary
      return `Run of ${link.run.agentName}${said === null || said === "" ? "" : `: ${said}`}`
    }
    case "task":
      return `Task ${link.task.number}: ${link.task.title}`
  }
}

/** Its state in a word. */
export const linkState = (link: ChainLink): string =>
  link.type === "event" ? link.event.type : link.type === "run" ? link.run.status : link.task.status
