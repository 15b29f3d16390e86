/**
 * Finds the agents that may react to events.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * Asked by type and kind of event through an index, once for each that occurs,
 * so the cost follows the agents that listen and not those that exist. The rules of each are judged
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
    with event as materialized (
      select * from jsonb_to_recordset(${rows}::text::jsonb)
        as event(id uuid, "entityType" text, "objectType" text, type text, "createdAt" timestamptz)
    ),
    heard as materialized (
      select kind.*, listener.agent_id
      from (select distinct "entityType", "objectType", type from event) kind
      cross join lateral (
        select distinct agent_id from kb.agent_reactions
        where project_id = ${projectId} and entity_type = kind."entityType"
          and object_type = any(array[kind."objectType", '*']) and event_type = kind.type
        offset 0
      ) listener
    )
    select agent.id as agent_id, agent.version as agent_version, agent.reaction_config as config, array_agg(event.id) as event_ids
    from heard
    join event using ("entityType", "objectType", type)
    cross join lateral (
      select * from kb.agents where id = heard.agent_id and enabled and deleted_at is null offset 0
    ) agent
    where date_trunc('milliseconds', agent.enabled_at) <= event."createdAt"
    group by agent.id, agent.version, agent.reaction_config
    order by agent.id`
}, orDie)
