/**
 * Events of foreign MCP servers: the sources that agents listen to, what was told
 * of them, and log entries that are about such an occurrence.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const tables = [
  `create table kb.mcp_event_sources (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    server_name text not null,
    name text not null,
    arguments jsonb not null,
    -- Of the canonical arguments: what is listened to alike is one source.
    arguments_digest text not null,
    -- Whose cursor this is: another server of the same name begins anew.
    server_id uuid,
    -- Where the server's telling goes on; null begins now.
    cursor text,
    -- Occurrences are numbered in the order in which they were told.
    last_number integer not null default 0,
    -- When the server is asked next; null while no enabled agent listens.
    due_at timestamptz,
    -- Who asks at the moment: one program at a time, and another when this one is silent for too long.
    claim_token uuid,
    claimed_until timestamptz,
    failures integer not null default 0,
    failed_since timestamptz,
    last_fault text,
    polled_at timestamptz,
    truncated_at timestamptz,
    created_at timestamptz not null default now(),
    unique (project_id, server_name, name, arguments_digest)
  )`,
  `create index mcp_event_sources_due on kb.mcp_event_sources (due_at) where due_at is not null`,
  `create table kb.agent_mcp_events (
    agent_id uuid not null references kb.agents,
    source_id uuid not null references kb.mcp_event_sources,
    project_id uuid not null references kb.projects,
    -- The agent hears what questions bring that began after this.
    since timestamptz not null default now(),
    primary key (agent_id, source_id)
  )`,
  `create index agent_mcp_events_source on kb.agent_mcp_events (source_id)`,
  `create table kb.mcp_occurrences (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    source_id uuid not null references kb.mcp_event_sources,
    number integer not null,
    -- The server's own id of it: told twice it is kept once.
    event_id text not null,
    happened_at timestamptz not null,
    payload jsonb,
    payload_omitted boolean not null default false,
    created_at timestamptz not null default now(),
    unique (source_id, event_id)
  )`,
  `create index mcp_occurrences_source on kb.mcp_occurrences (source_id, number)`,
  `create index mcp_occurrences_age on kb.mcp_occurrences (created_at)`
]

const entries = [
  `alter table kb.agent_processing_log
    alter column event_id drop not null,
    add column occurrence_id uuid references kb.mcp_occurrences,
    drop constraint agent_processing_log_event_type_check,
    drop constraint agent_processing_log_entity_type_check,
    add constraint agent_processing_log_event_type_check check (event_type in ('created', 'updated', 'deleted', 'occurred')),
    add constraint agent_processing_log_entity_type_check check (entity_type in ('graphObject', 'relationship', 'mcpEvent')),
    add constraint agent_processing_log_subject_check check (
      (event_id is null) = (entity_type = 'mcpEvent') and (occurrence_id is null) = (entity_type <> 'mcpEvent'))`,
  // Whatever line it stands in: an agent handles an occurrence once.
  `create unique index agent_processing_log_occurrence
    on kb.agent_processing_log (occurrence_id, agent_id, attempt) where occurrence_id is not null`,
  // A run for a foreign event is a reaction, and counts as one.
  `drop index kb.agent_runs_started`,
  `create index agent_runs_started on kb.agent_runs (agent_id, started_at) where trigger ->> 'type' in ('reaction', 'mcpEvent')`
]

/** As before, and of occurrences no number is kept: their server's cursor is behind them. */
const forgetEntries = `
  create or replace function kb.forget_entries(keep_seconds double precision, dead_seconds double precision, most integer) returns integer
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
      returning entry.project_id, entry.agent_id, entry.entity_type, entry.graph_object_id, entry.object_version, entry.status
    ), handled as (
      insert into kb.agent_handled_versions as kept (project_id, agent_id, graph_object_id, object_version)
      select project_id, agent_id, graph_object_id, max(object_version) from forgotten
      where status = 'completed' and entity_type <> 'mcpEvent'
      group by project_id, agent_id, graph_object_id
      on conflict (agent_id, graph_object_id) do update set object_version = greatest(kept.object_version, excluded.object_version)
    )
    select count(*)::int from forgotten $$`

/** Occurrences that are old and that no log entry is about. */
const forgetOccurrences = `
  create function kb.forget_occurrences(keep_seconds double precision, most integer) returns integer
    language sql security definer set search_path = kb, pg_temp as $$
    with old as (
      select id from kb.mcp_occurrences occurrence
      where created_at < now() - make_interval(secs => keep_seconds)
        and not exists (select 1 from kb.agent_processing_log entry where entry.occurrence_id = occurrence.id)
      order by created_at limit most for update skip locked
    ), forgotten as (
      delete from kb.mcp_occurrences occurrence using old where occurrence.id = old.id returning 1
    )
    select count(*)::int from forgotten $$`

const due = `
  select distinct project_id from kb.mcp_event_sources
  where due_at <= now() and (claimed_until is null or claimed_until < now())`

const rights = [
  ...["mcp_event_sources", "agent_mcp_events", "mcp_occurrences"].flatMap((table) => [
    `alter table kb.${table} enable row level security`,
    `create policy project on kb.${table} using (project_id = ${currentProject}) with check (project_id = ${currentProject})`
  ]),
  `grant select, insert, update on kb.mcp_event_sources to tropism_server`,
  `grant select, insert, delete on kb.agent_mcp_events to tropism_server`,
  `grant select, insert on kb.mcp_occurrences to tropism_server`,
  forgetEntries,
  forgetOccurrences,
  `create function kb.projects_with_due_sources() returns setof uuid
   language sql security definer set search_path = kb, pg_temp as $$ ${due} $$`,
  ...["projects_with_due_sources()", "forget_occurrences(double precision, integer)"].flatMap((name) => [
    `revoke all on function kb.${name} from public`,
    `grant execute on function kb.${name} to tropism_server`
  ])
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...entries, ...rights]
