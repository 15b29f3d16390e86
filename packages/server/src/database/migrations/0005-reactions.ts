/**
 * Work learns to wait: an entry without a run has the instant before which no
 * run may begin, may be parked behind a run, and may be of a relationship.
 *
 * The server reads waiting work through partial indexes only: what has a run,
 * or has ended, is in none of them.
 */

const waiting = `status = 'pending' and run_id is null`

/** From project to project: the earliest instant at which one of its waiting entries may be released. */
const projectsWithWaiting = `
  with recursive found(project_id) as (
    (select project_id from kb.agent_processing_log where ${waiting} and not parked order by project_id limit 1)
    union all
    select (select t.project_id from kb.agent_processing_log t
      where t.status = 'pending' and t.run_id is null and not t.parked and t.project_id > found.project_id order by t.project_id limit 1)
    from found where found.project_id is not null
  )
  select found.project_id, first.due_at from found cross join lateral (
    select coalesce(entry.due_at, entry.created_at) as due_at from kb.agent_processing_log entry
    where entry.project_id = found.project_id and entry.status = 'pending' and entry.run_id is null and not entry.parked
    order by coalesce(entry.due_at, entry.created_at) limit 1
  ) first`

/** Entries that are parked behind nothing: no run is at work on their object, and no other entry of their line is looked at. */
const letGoParked = `
  with freed as (
    update kb.agent_processing_log entry set parked = false
    where entry.status = 'pending' and entry.run_id is null and entry.parked
      and not exists (
        select 1 from kb.agent_processing_log head
        where head.agent_id = entry.agent_id and head.graph_object_id = entry.graph_object_id
          and head.status = 'pending' and head.run_id is null and not head.parked)
      and not exists (
        select 1 from kb.agent_processing_log live
        where live.agent_id = entry.agent_id and live.graph_object_id = entry.graph_object_id
          and live.exclusive and live.status in ('pending', 'processing') and live.run_id is not null)
    returning 1
  )
  select count(*)::integer from freed`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.agent_processing_log
    drop constraint agent_processing_log_graph_object_id_fkey,
    add column entity_type text not null default 'graphObject' check (entity_type in ('graphObject', 'relationship')),
    add column due_at timestamptz,
    add column parked boolean not null default false`,
  `create index agent_processing_log_due
    on kb.agent_processing_log (project_id, (coalesce(due_at, created_at))) where ${waiting} and not parked`,
  `create index agent_processing_log_waiting
    on kb.agent_processing_log (project_id, agent_id, (coalesce(due_at, created_at)), id) where ${waiting} and not parked`,
  `create index agent_processing_log_line
    on kb.agent_processing_log (agent_id, graph_object_id, object_version, attempt) where ${waiting}`,
  `create index agent_processing_log_parked
    on kb.agent_processing_log (project_id, agent_id, graph_object_id) where ${waiting} and parked`,
  `create index agent_runs_live on kb.agent_runs (agent_id) where status in ('queued', 'running')`,
  `create index agent_runs_begun on kb.agent_runs (agent_id, created_at) where trigger ->> 'type' = 'reaction'`,
  `alter table kb.agent_reactions
    add column entity_type text not null default 'graphObject' check (entity_type in ('graphObject', 'relationship')),
    drop constraint agent_reactions_pkey,
    add primary key (project_id, entity_type, object_type, event_type, agent_id)`,
  `create function kb.projects_with_waiting_entries() returns table (project_id uuid, due_at timestamptz)
    language sql security definer set search_path = kb, pg_temp as $$ ${projectsWithWaiting} $$`,
  `revoke all on function kb.projects_with_waiting_entries() from public`,
  `create function kb.let_go_parked() returns integer
    language sql security definer set search_path = kb, pg_temp as $$ ${letGoParked} $$`,
  `revoke all on function kb.let_go_parked() from public`,
  `grant execute on function kb.let_go_parked() to tropism_server`,
  `grant execute on function kb.projects_with_waiting_entries() to tropism_server`
]
