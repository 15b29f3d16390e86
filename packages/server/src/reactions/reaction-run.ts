/** Builds the run that handles one or several events of the graph, or of external servers. */
import { ContextName } from "@tropism/domain/context-event"
import type { EntityType } from "@tropism/domain/graph"
import type { AgentId, GraphEventId, RunId, UserId } from "@tropism/domain/ids"
import { type TriggeringOccurrence, taintOfOccurrences } from "@tropism/domain/mcp-event"
import type { HandledChange, HandledType } from "@tropism/domain/processing"
import type { Trigger } from "@tropism/domain/run"
import type { NewRun } from "../runs/run-types.ts"

/** An event that a run handles. */
export interface HandledEvent {
  readonly eventId: GraphEventId
  readonly eventType: HandledChange
  readonly entityType: HandledType
  /** For an event of an external server. */
  readonly occurrence?: TriggeringOccurrence | null
  readonly graphObjectId: string
  readonly objectType: string
  readonly objectVersion: number
  readonly rootEventId: GraphEventId
  readonly depth: number
}

/** Returns an agent's run for events, oldest first; it belongs to the chain of the deepest of them. */
export const reactionRun = (
  id: RunId,
  agent: { readonly agentId: AgentId; readonly agentVersion: number },
  events: readonly [HandledEvent, ...Array<HandledEvent>],
  userId: UserId | null = null
): NewRun => {
  const deepest = events.reduce((deep, event) => (event.depth >= deep.depth ? event : deep))
  return {
    id,
    agentId: agent.agentId,
    agentVersion: agent.agentVersion,
    trigger: triggerOf(events),
    contextName: ContextName.make(`run-${id}`),
    rootEventId: deepest.rootEventId,
    depth: deepest.depth,
    userId,
    dueAt: null,
    ...taintedBy(occurrencesOf(events))
  }
}

/** Graph events and external events are never combined into one run. */
const triggerOf = (events: ReadonlyArray<HandledEvent>): Trigger => {
  const occurrences = occurrencesOf(events)
  return occurrences.length > 0
    ? { type: "mcpEvent", mcpEvents: occurrences }
    : { type: "reaction", events: events.map(triggering) }
}

const occurrencesOf = (events: ReadonlyArray<HandledEvent>): ReadonlyArray<TriggeringOccurrence> =>
  events.flatMap(({ occurrence }) => occurrence ?? [])

/** External events are untrusted, whatever trust the server's tools have. */
const taintedBy = (occurrences: ReadonlyArray<TriggeringOccurrence>): Pick<NewRun, "taintedBy"> =>
  occurrences.length === 0 ? {} : { taintedBy: taintOfOccurrences(occurrences) }

const triggering = (event: HandledEvent) => ({
  id: event.eventId,
  type: event.eventType,
  entityType: event.entityType as EntityType,
  objectId: event.graphObjectId,
  objectType: event.objectType,
  version: event.objectVersion
})
