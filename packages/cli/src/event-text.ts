/**
 * Events as lines: what was committed to the graph, what a run did.
 *
 * A line says who, what and where, and is printable whatever the event holds.
 */
import type { GraphEvent } from "@tropism/domain/graph"
import type { ContextFeedEvent } from "@tropism/client/feed"
import { canonicalJson, isJsonObject } from "@tropism/domain/json"
import type { Run } from "@tropism/domain/run"
import { Predicate } from "effect"
import { shortId } from "./change-text.ts"
import { displayWidth, cutEnd, cutStart, printable } from "./terminal/text.ts"

const longestText = 160

/** What an event happened to, in so many columns: `Package node_modules/effect v3`. */
export const eventSubject = (event: GraphEvent, columns: number): string => {
  const key =
    isJsonObject(event.snapshot) && Predicate.isString(event.snapshot["key"])
      ? event.snapshot["key"]
      : shortId(event.entityId)
  const [type, version] = [printable(event.objectType), `v${event.version}`]
  return cutEnd(
    `${type} ${cutStart(printable(key), columns - displayWidth(`${type}  ${version}`))} ${version}`,
    columns
  )
}

/** Who caused an event, and who approved it; `nameOf` knows the agents. */
export const eventActor = (event: GraphEvent, nameOf: (agentId: string) => string | undefined): string => {
  const actor =
    event.actorType === "agent" && event.actorId !== null
      ? `agent ${nameOf(event.actorId) ?? shortId(event.actorId)}`
      : event.actorType === "system"
        ? "the system"
        : `${event.actorType} ${event.actorId ?? ""}`
  return printable(event.approvedBy === null ? actor : `${actor}, approved by ${event.approvedBy}`)
}

/** The properties an update touched. */
export const eventChange = (event: GraphEvent): string =>
  event.type === "updated" ? printable(event.changedProperties.join(", ")) : ""

/** What a run's trigger was, in a few words. */
export const triggerText = (run: Run): string => {
  const events = run.trigger.events ?? []
  const last = events.at(-1)
  if (last)
    return printable(
      `${last.type} ${last.objectType} v${last.version}${events.length > 1 ? ` and ${events.length - 1} more` : ""}`
    )
  const told = run.trigger.mcpEvents ?? []
  const newest = told.at(-1)
  if (newest)
    return printable(
      `${newest.server} ${newest.name}${told.length > 1 ? ` and ${told.length - 1} more` : ""}`
    )
  return run.trigger.dueAt === undefined ? run.trigger.type : `${run.trigger.type} ${run.trigger.dueAt}`
}

/** The agent of a run, behind a mark for each run above it. */
export const runAgentText = (run: Run): string =>
  run.spawnDepth === 0 ? run.agentName : `${"└".repeat(run.spawnDepth)} ${run.agentName}`

/** What a context event says, after its type: the text, the tool, the reason. */
export const contextEventText = (event: ContextFeedEvent): string =>
  cutEnd(printable(rawText(event)), longestText)

const rawText = (event: ContextFeedEvent): string => {
  switch (event.type) {
    case "SystemPromptEvent":
    case "UserMessageEvent":
    case "SoftStopEvent":
    case "ContinuationRequestedEvent":
      return "content" in event ? event.content : ""
    case "AssistantMessageEvent":
      return "toolCalls" in event
        ? [event.content, ...event.toolCalls.map((call) => callText(call.name, call.arguments))]
            .filter(Boolean)
            .join("  ")
        : ""
    case "ToolCallStartedEvent":
      return "arguments" in event ? callText(event.tool, event.arguments) : ""
    case "ToolCallCompletedEvent":
      return "result" in event ? `${event.tool} → ${canonicalJson(event.result)}` : ""
    case "ToolCallFailedEvent":
      return "error" in event && "tool" in event ? `${event.tool} → ${canonicalJson(event.error)}` : ""
    case "AgentTurnFailedEvent":
      return "error" in event ? canonicalJson(event.error) : ""
    case "AgentTurnInterruptedEvent":
      return "reason" in event ? event.reason : ""
    case "SetLlmConfigEvent":
      return "provider" in event ? `${event.role} ${event.provider}:${event.name}` : ""
    case "TextDeltaEvent":
      return "delta" in event ? event.delta : ""
    case "SetTimeoutEvent":
      return "timeoutMs" in event ? `${event.timeoutMs} ms` : ""
    default:
      return ""
  }
}

const callText = (tool: string, args: unknown): string => `${tool} ${canonicalJson(args)}`

/** The type of a context event without the word that all types end with. */
export const contextEventName = (type: string): string => type.replace(/Event$/, "")
