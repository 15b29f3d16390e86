/**
 * Why an event did or did not wake an agent.
 *
 * What was recorded comes first: an entry, then a refusal kept with the event.
 * Only what nobody recorded is judged again, on the definition that the agent
 * had when the event was dispatched, so a later change does not falsify the
 * answer. What a purge took away is said to be gone, and not guessed. The judgement is pure; the server finds what it judges.
 */
import type { AgentDefinition } from "./agent.ts"
import { defineChainLimits } from "./chain.ts"
import { type GraphEvent, isPurged, type Purge } from "./graph.ts"
import type { AgentId } from "./ids.ts"
import { argumentsOf, type Occurrence } from "./mcp-event.ts"
import { canonicalJson } from "./json.ts"
import type { ProcessingEntry } from "./processing.ts"
import { findRefusal, type RefusalRule } from "./refusal.ts"
import type { RunStatus } from "./run.ts"

/** `woke`: a run was made; `refused`: something said no; `skipped`: the agent was busy; `waiting`: it may wake yet. */
export type ExplanationOutcome = "woke" | "refused" | "skipped" | "waiting"

/** What said no: a rule of the agent or of its chain, or the agent's own state at that time. */
export type ExplanationRule =
  | RefusalRule
  | "triggerType"
  | "disabled"
  | "enabledLater"
  | "madeLater"
  | "deleted"
  | "forgotten"
  | "purged"
  | "changed"
  | "mcpEvent"

/** An agent as it was when an event was dispatched, or is now where the event still waits. */
export interface ExplainedAgent {
  readonly id: AgentId
  readonly createdAt: string
  readonly deletedAt: string | null
  /** The definition then; null when there was none yet. */
  readonly definition: AgentDefinition | null
  /** Since when that definition was enabled without a break; null when it was not. */
  readonly enabledSince: string | null
  /** Since when the agent is disabled by a safeguard, and why, when it was so then. */
  readonly stopped: { readonly since: string; readonly reason: string } | null
  /** Since when the processing log is kept. */
  readonly loggedSince: string
}

/** What the processing log says of an event and an agent. */
export interface Handling {
  readonly entry: ProcessingEntry
  readonly runStatus: RunStatus | null
  /** What its run was told last of a provider that is away; null where it waits for none. */
  readonly waitMessage: string | null
}

export interface Explained {
  readonly outcome: ExplanationOutcome
  /** What said no; null for whoever was woken, was busy or waits. */
  readonly rule: ExplanationRule | string | null
  readonly reason: string
}

/** Explains what one event was to one agent; `dispatchedAt` is null while the event waits, `purge` is the record of its object's. */
export const explainEvent = (
  agent: ExplainedAgent,
  event: GraphEvent,
  dispatchedAt: string | null,
  handling: Handling | undefined,
  purge?: Pick<Purge, "purgedAt" | "purgedBy">
): Explained => {
  const noted = event.refusals.find((refusal) => refusal.agentId === agent.id)
  // What waited and then met a cap is both: a skipped entry, and a refusal that names the cap.
  if (handling && !(noted && handling.entry.status === "skipped")) return explainHandling(handling)
  if (noted) return { outcome: "refused", rule: noted.rule ?? null, reason: noted.reason }
  if (dispatchedAt === null)
    return { outcome: "waiting", rule: null, reason: "The event is committed and not dispatched yet." }
  const { rule, reason } = explainSilence(agent, event, dispatchedAt, purge)
  return { outcome: "refused", rule, reason }
}

/** What a foreign server told, with the arguments of the source that it came from. */
export type ExplainedOccurrence = Pick<Occurrence, "server" | "name" | "createdAt"> & {
  readonly arguments: unknown
}

/** Explains what an occurrence was to one agent; it was dispatched with the transaction that kept it. */
export const explainOccurrence = (
  agent: ExplainedAgent,
  occurrence: ExplainedOccurrence,
  handling: Handling | undefined
): Explained => {
  if (handling) return explainHandling(handling)
  const { createdAt } = occurrence
  const silence =
    findAbsence(agent, occurrence, createdAt) ??
    findDeafness(agent.definition, occurrence) ??
    findSleep(agent, occurrence) ??
    (createdAt < agent.loggedSince ? forgotten : joinedLater)
  return { outcome: "refused", ...silence }
}

const joinedLater: Silence = {
  rule: "enabledLater",
  reason:
    "The agent began to listen while the server was being asked: it hears what the questions after that bring."
}

/** The agent does not listen to the source. */
const findDeafness = (
  definition: AgentDefinition | null,
  { arguments: args, name, server }: ExplainedOccurrence
): Silence | undefined => {
  if (definition === null) return undefined
  const config = definition.reactionConfig
  if (definition.triggerType !== "reaction" || config === null) return noReaction(definition)
  const isHeard = (config.mcpEvents ?? []).some(
    (listener) =>
      listener.server === server &&
      listener.name === name &&
      canonicalJson(argumentsOf(listener)) === canonicalJson(args)
  )
  return isHeard
    ? undefined
    : {
        rule: "mcpEvent",
        reason: `The agent does not listen to ${name} of ${server} with these arguments (reactionConfig.mcpEvents).`
      }
}

const noReaction = ({ triggerType }: AgentDefinition): Silence => ({
  rule: "triggerType",
  reason: `The agent does not react to events: its trigger was ${triggerType}.`
})

/** Why an entry stands where it does. */
const explainHandling = ({ entry, runStatus, waitMessage }: Handling): Explained => {
  if (entry.status === "skipped")
    return { outcome: "skipped", rule: null, reason: entry.reason ?? "The agent was at work on this object." }
  if (entry.runId === null && entry.status === "pending")
    return {
      outcome: "waiting",
      rule: null,
      reason: `${entry.reason ?? "The event waits for its turn."}${entry.dueAt === null ? "" : ` No run begins before ${entry.dueAt}.`}`
    }
  const attempt = entry.attempt === 1 ? "" : ` at attempt ${entry.attempt}`
  const outcome = runStatus === null ? `; the entry is ${entry.status}` : `: its run is ${runStatus}`
  const away =
    waitMessage === null ? null : `It waits for its model's provider, which is away: ${waitMessage}`
  const why = away ?? entry.errorMessage ?? entry.reason
  return {
    outcome: "woke",
    rule: null,
    reason: `The event woke the agent${attempt}${outcome}.${why === null ? "" : ` ${why}`}`
  }
}

type Dated = Pick<GraphEvent, "createdAt">

interface Silence {
  readonly rule: ExplanationRule
  readonly reason: string
}

/** Why an agent was not even a candidate: nothing was recorded, because an index did not find it. */
const explainSilence = (
  agent: ExplainedAgent,
  event: GraphEvent,
  dispatchedAt: string,
  purge: Pick<Purge, "purgedAt" | "purgedBy"> | undefined
): Silence => {
  const gone = isPurged(event) ? purged(event, purge) : undefined
  const mismatch = findMismatch(agent.id, agent.definition, event)
  return (
    findAbsence(agent, event, dispatchedAt) ??
    // The properties that the conditions were about went with the purge.
    (gone && mismatch?.rule === "properties" ? gone : mismatch) ??
    findSleep(agent, event) ??
    gone ??
    (dispatchedAt < agent.loggedSince ? forgotten : changed)
  )
}

/** A relationship that went with an object of its own has no record, only the object has. */
const purged = (
  { entityType }: GraphEvent,
  purge: Pick<Purge, "purgedAt" | "purgedBy"> | undefined
): Silence => {
  const what = entityType === "relationship" ? "relationship" : "object"
  const how = purge
    ? `${purge.purgedBy === null ? "" : ` by ${purge.purgedBy}`} at ${purge.purgedAt}`
    : " with an object at one of its ends"
  return {
    rule: "purged",
    reason: `The ${what} was purged${how}: what the event said, and what the agent made of it, went with it.`
  }
}

const forgotten: Silence = {
  rule: "forgotten",
  reason:
    "The agent listens to such events; what it made of this one is older than the processing log is kept."
}

const changed: Silence = {
  rule: "changed",
  reason: "The agent was being changed at the moment when the event was dispatched."
}

/** The agent was not there. */
const findAbsence = (agent: ExplainedAgent, event: Dated, dispatchedAt: string): Silence | undefined => {
  if (agent.deletedAt !== null && agent.deletedAt <= dispatchedAt)
    return {
      rule: "deleted",
      reason: `The agent was deleted at ${agent.deletedAt}, before the event was dispatched.`
    }
  if (agent.definition === null || event.createdAt < agent.createdAt)
    return {
      rule: "madeLater",
      reason: `The event is older than the agent, which was made at ${agent.createdAt}: an agent hears nothing from before its time.`
    }
  return undefined
}

/** The agent does not listen to such events. */
const findMismatch = (
  id: AgentId,
  definition: AgentDefinition | null,
  event: GraphEvent
): Silence | undefined => {
  if (definition === null) return undefined
  const config = definition.reactionConfig
  if (definition.triggerType !== "reaction" || config === null) return noReaction(definition)
  return findRefusal(id, config, event, defineChainLimits({}))
}

/** The agent was there and listens to such events, and was not enabled. */
const findSleep = (agent: ExplainedAgent, event: Dated): Silence | undefined => {
  if (agent.stopped)
    return {
      rule: "disabled",
      reason: `The agent is disabled since ${agent.stopped.since}: ${agent.stopped.reason}`
    }
  if (agent.enabledSince === null)
    return { rule: "disabled", reason: "The agent was disabled when the event was dispatched." }
  if (event.createdAt < agent.enabledSince)
    return {
      rule: "enabledLater",
      reason: `The event is older than ${agent.enabledSince}, when the agent was enabled: enabling an agent replays nothing.`
    }
  return undefined
}
