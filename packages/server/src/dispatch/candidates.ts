/**
 * Finds the agents that may react to events.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Asked by type and kind of event through an index, so the cost follows the
 * agents that listen and not those that exist. The rules of each are judged
 * afterwards, by the pure judgement of the domain.
 */
import type { AgentId, GraphEventId } from "@tropism/domain/ids"
import type { ReactionConfig } from "@tropism/domain/reaction"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import type { ClaimedEvent } from "../outbox/outbox.ts"

/** An agent that listens to events of this kind. */
export interface Candidate {
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly config: ReactionConfig
  /** Those of the events that it listens to. */
  readonly eventIds: ReadonlyArray<GraphEventId>
}

/** The enabled agents that listen to any of the events, by id; an agent hears nothing from before it was enabled. */
export const findCandidates = Effect.fn("findCandidates")(function* (events: ReadonlyArray<ClaimedEvent>) {
  if (events.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const rows = JSON.stringify(
    events.map(({ id, entityType, objectType, type, createdAt }) => ({
      id,
      entityType,
      objectType,
      type,
      createdAt: createdAt.toISOString()
    }))
  )
  return yield* sql<Candidate>`
    select agent.id as agent_id, agent.version as agent_version, agent.reaction_config as config, heard.event_ids
    from (
      select reaction.agent_id, array_agg(distinct event.id) as event_ids
      from jsonb_to_recordset(${rows}::text::jsonb) as event(id uuid, "entityType" text, "objectType" text, type text, "createdAt" timestamptz)
      join kb.agent_reactions reaction on reaction.project_id = ${projectId} and reaction.entity_type = event."entityType"
        and reaction.object_type in (event."objectType", '*') and reaction.event_type = event.type
      join kb.agents listener on listener.id = reaction.agent_id
        and date_trunc('milliseconds', listener.enabled_at) <= event."createdAt"
      group by reaction.agent_id
    ) heard
    join kb.agents agent on agent.id = heard.agent_id and agent.enabled and agent.deleted_at is null
    order by agent.id`
}, orDie)
