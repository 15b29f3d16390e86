/**
 * Finds the agents that may react to an event.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Asked by type and kind of event through an index, so the cost follows the
 * agents that listen and not those that exist. The rules of each are judged
 * afterwards, by the pure judgement of the domain.
 */
import type { AgentId } from "@tropism/domain/ids"
import type { ReactionConfig } from "@tropism/domain/reaction"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import type { ClaimedEvent } from "../outbox/outbox.ts"

/** An agent that listens to events of this kind. */
export interface Candidate {
  readonly eventId: ClaimedEvent["id"]
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly config: ReactionConfig
}

/** The enabled agents that listen to any of the events; an agent hears nothing from before it was enabled. */
export const findCandidates = Effect.fn("findCandidates")(function* (events: ReadonlyArray<ClaimedEvent>) {
  if (events.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const rows = JSON.stringify(
    events.map(({ id, objectType, type, createdAt }) => ({
      id,
      objectType,
      type,
      createdAt: createdAt.toISOString()
    }))
  )
  return yield* sql<Candidate>`
    select distinct event.id as event_id, agent.id as agent_id, agent.version as agent_version, agent.reaction_config as config
    from jsonb_to_recordset(${rows}::text::jsonb) as event(id uuid, "objectType" text, type text, "createdAt" timestamptz)
    join kb.agent_reactions reaction on reaction.project_id = ${projectId}
      and reaction.object_type in (event."objectType", '*') and reaction.event_type = event.type
    join kb.agents agent on agent.id = reaction.agent_id and agent.enabled and agent.deleted_at is null
      and date_trunc('milliseconds', agent.enabled_at) <= event."createdAt"
    order by agent.id`
}, orDie)
