/**
 * The safeguards get their rows: kill switches, failures in a row, dead letters,
 * and what is left of an entry when the log's retention has removed it.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const tables = [
  // A row is a switch that is on; without a project it stops every agent of the server.
  `create table kb.kill_switches (
    project_id uuid unique nulls not distinct references kb.projects,
    reason text not null,
    stopped_by text not null,
    stopped_at timestamptz not null default now()
  )`,
  // The newest version of an object that an agent has handled and whose entry is no longer kept.
  `create table kb.agent_handled_versions (
    agent_id uuid not null references kb.agents,
    graph_object_id uuid not null,
    project_id uuid not null references kb.projects,
    object_version integer not null,
    primary key (agent_id, graph_object_id)
  )`,
  `alter table kb.agents add column consecutive_failures integer not null default 0`,
  `alter table kb.agent_processing_log add column dead_lettered_at timestamptz`,
  `create index agent_processing_log_dead on kb.agent_processing_log (agent_id, id) where dead_lettered_at is not null`,
  // Rows come in the order of their creation, so a few pages' bounds find what is old.
  `create index agent_processing_log_age on kb.agent_processing_log using brin (created_at) with (pages_per_range = 16, autosummarize = on)`,
  `create index agent_runs_stopped on kb.agent_runs (project_id) where status = 'paused' and pause_reason = 'killSwitch'`,
  `create index if not exists agent_runs_live on kb.agent_runs (agent_id) where status in ('queued', 'running')`
]

const rights = [
  `alter table kb.kill_switches enable row level security`,
  `create policy project on kb.kill_switches using (project_id is null or project_id = ${currentProject})
    with check (project_id is null or project_id = ${currentProject})`,
  `alter table kb.agent_handled_versions enable row level security`,
  `create policy project on kb.agent_handled_versions using (project_id = ${currentProject}) with check (project_id = ${currentProject})`,
  `grant select, insert, update, delete on kb.kill_switches to tropism_server`,
  `grant select on kb.agent_handled_versions to tropism_server`
]

/** Functions with the owner's rights; each answers ids or a count. */
const crossing = [
  // Lets what runs rest where a switch is on, and queues it again where none is any more.
  `create function kb.follow_kill_switches() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    with stopped as (
      update kb.agent_runs run
      set status = 'paused', pause_reason = 'killSwitch', attempt_token = null, attempt = attempt - 1, lease_expires_at = null
      where status = 'running'
        and exists (select 1 from kb.kill_switches switch where switch.project_id is null or switch.project_id = run.project_id)
      returning id
    ), resumed as (
      update kb.agent_runs run set status = 'queued', pause_reason = null
      where status = 'paused' and pause_reason = 'killSwitch'
        and not exists (select 1 from kb.kill_switches switch where switch.project_id is null or switch.project_id = run.project_id)
      returning id
    )
    select id from stopped union all select id from resumed $$`,
  // Removes ended entries that are old and remembers the newest version that each agent has handled of each object.
  `create function kb.forget_entries(keep_seconds double precision, dead_seconds double precision, most integer) returns integer
    language sql security definer set search_path = kb, pg_temp as $$
    with old as (
      select id from kb.agent_processing_log
      where created_at < now() - make_interval(secs => keep_seconds)
        and status in ('completed', 'failed', 'abandoned', 'skipped')
        and coalesce(completed_at, created_at) < now() - make_interval(secs => keep_seconds)
        and (dead_lettered_at is null or dead_lettered_at < now() - make_interval(secs => dead_seconds))
      limit most for update skip locked
    ), forgotten as (
      delete from kb.agent_processing_log entry using old where entry.id = old.id
      returning entry.project_id, entry.agent_id, entry.graph_object_id, entry.object_version, entry.status
    ), handled as (
      insert into kb.agent_handled_versions as kept (project_id, agent_id, graph_object_id, object_version)
      select project_id, agent_id, graph_object_id, max(object_version) from forgotten where status = 'completed'
      group by project_id, agent_id, graph_object_id
      on conflict (agent_id, graph_object_id) do update set object_version = greatest(kept.object_version, excluded.object_version)
    )
    select count(*)::int from forgotten $$`,
  `revoke all on function kb.follow_kill_switches() from public`,
  `revoke all on function kb.forget_entries(double precision, double precision, integer) from public`,
  `grant execute on function kb.follow_kill_switches() to tropism_server`,
  `grant execute on function kb.forget_entries(double precision, double precision, integer) to tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...rights, ...crossing]
