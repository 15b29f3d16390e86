/**
 * The run that handles one or several events.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 */
import { ContextName } from "@tropism/domain/context-event"
import type { ChangeType, GraphEvent } from "@tropism/domain/graph"
import type { AgentId, GraphEventId, RunId, UserId } from "@tropism/domain/ids"
import type { NewRun } from "../run/claimed-run.ts"

/** What a run needs to know of an event that it handles. */
export interface HandledEvent {
  readonly eventId: GraphEventId
  readonly eventType: ChangeType
  readonly entityType: GraphEvent["entityType"]
  readonly graphObjectId: string
  readonly objectType: string
  readonly objectVersion: number
  readonly rootEventId: GraphEventId
  readonly depth: number
}

/** A run of an agent for events, oldest first; it belongs to the chain of the deepest of them. */
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
    trigger: { type: "reaction", events: events.map(triggering) },
    contextName: ContextName.make(`run-${id}`),
    rootEventId: deepest.rootEventId,
    depth: deepest.depth,
    userId,
    dueAt: null
  }
}

const triggering = (event: HandledEvent) => ({
  id: event.eventId,
  type: event.eventType,
  entityType: event.entityType,
  objectId: event.graphObjectId,
  objectType: event.objectType,
  version: event.objectVersion
})
