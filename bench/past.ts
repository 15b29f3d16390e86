/**
 * A past: rows as they would lie behind a server that has reacted for a long time.
 *
 * Written straight into the tables, because living through it would take an
 * hour. Every row is complete and keeps every key, so nothing can tell it from
 * one that was lived.
 */
import type { Rows } from "./database.ts"

/** Gives an agent so many reactions that are over: events, entries, runs, contexts with their words, one object. */
export const makePast = async (
  rows: Rows,
  projectId: string,
  agentId: string,
  count: number
): Promise<void> => {
  const object = Bun.randomUUIDv7()
  const statements = [
    `create temporary table past on commit preserve rows as
     select number, gen_random_uuid() as event_id, uuidv7() as run_id, gen_random_uuid() as entry_id from generate_series(1, ${count}) number`,
    `insert into kb.graph_objects (id, project_id, type, properties, version)
     select '${object}', '${projectId}', 'Order', '{}', ${count}`,
    `with feed as (update kb.feeds set last_position = last_position + ${count} where project_id = '${projectId}' returning last_position - ${count} as first)
     insert into kb.graph_events (id, project_id, position, entity_type, object_type, entity_id, version, type, changed_properties, snapshot,
       actor_type, actor_id, root_event_id, depth, dispatched_at)
     select event_id, '${projectId}', feed.first + number, 'graphObject', 'Order', '${object}', number, 'updated', '{}', '{}',
       'user', 'admin', event_id, 0, now() from past, feed`,
    `insert into kb.contexts (project_id, name, agent_id, last_event_number) select '${projectId}', 'run-' || run_id, '${agentId}', 6 from past`,
    `insert into kb.agent_runs (id, project_id, agent_id, agent_version, status, trigger, context_name, root_event_id, depth, started_at, completed_at, step_count)
     select run_id, '${projectId}', '${agentId}', 1, 'skipped', '{"type": "reaction"}', 'run-' || run_id, event_id, 0, now(), now(), 1 from past`,
    `insert into kb.agent_processing_log (id, project_id, agent_id, graph_object_id, object_version, event_type, event_id, run_id, exclusive, status, started_at, completed_at)
     select entry_id, '${projectId}', '${agentId}', '${object}', number, 'updated', event_id, run_id, true, 'completed', now(), now() from past`,
    `insert into kb.context_events (project_id, context_name, number, type, payload, triggers_agent_turn, created_at)
     select '${projectId}', 'run-' || run_id, event, 'UserMessageEvent', '{"content": "Seen."}', false, now() from past, generate_series(1, 6) event`,
    `insert into kb.budgets (project_id, scope, scope_id, runs) select '${projectId}', 'chain', event_id, 1 from past`,
    `drop table past`,
    `analyze`
  ]
  await rows.alone(statements)
}
