/**
 * The run engine gets its rows: flows and limits of agents, runs that spawn
 * runs, calls whose outcome comes later, what each model was asked and what it
 * cost, and the foreign servers that tools come from.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const tables = [
  `alter table kb.agents
    add column steps jsonb not null default '[]',
    add column max_iterations integer,
    add column default_timeout_ms integer,
    add column budget jsonb,
    add column sub_agents text[] not null default '{}',
    add column repeatable_tools text[] not null default '{}'`,
  `alter table kb.agent_runs
    add column parent_run_id uuid references kb.agent_runs,
    -- The tool call that spawned the run and waits for its end.
    add column spawned_by uuid,
    add column spawn_depth integer not null default 0,
    -- The runs above this one, from the first to its parent.
    add column ancestors uuid[] not null default '{}',
    -- What was set for this run alone; what is absent is the agent's.
    add column limits jsonb,
    -- Set by the claim; the time that is left while a run rests is kept instead.
    add column deadline_at timestamptz,
    add column time_left_ms bigint,
    -- What the model has said of an answer that is not complete.
    add column partial_text text,
    add column cost_micros bigint not null default 0`,
  // Filters of the list of runs. A comparison with a column is safe under row-level security; one inside JSON is not, and would use no index.
  `alter table kb.agent_runs add column trigger_type text generated always as (trigger ->> 'type') stored`,
  `create index agent_runs_status on kb.agent_runs (project_id, status, id)`,
  `create index agent_runs_trigger on kb.agent_runs (project_id, trigger_type, id)`,
  `create index agent_runs_created on kb.agent_runs (project_id, created_at)`,
  `create index agent_runs_children on kb.agent_runs (parent_run_id, id) where parent_run_id is not null`,
  `create index agent_runs_children_live on kb.agent_runs (parent_run_id)
    where parent_run_id is not null and status in ('queued', 'running', 'paused')`,
  `create index agent_runs_resting on kb.agent_runs (pause_reason) where status = 'paused' and pause_reason in ('question', 'subAgents')`,
  `create index agent_runs_waits on kb.agent_runs (deadline_at)
    where status = 'paused' and pause_reason = 'subAgents' and deadline_at is not null`,
  `create index agent_runs_waits_held on kb.agent_runs (project_id)
    where status = 'paused' and pause_reason = 'subAgents' and time_left_ms is not null`,
  `alter table kb.tool_calls
    drop constraint tool_calls_status_check,
    add constraint tool_calls_status_check
      check (status in ('started', 'completed', 'failed', 'refused', 'unknown', 'abandoned')),
    add column completed_at timestamptz`,
  // The questions of a run that wait for an answer.
  `create index tasks_questions on kb.tasks (run_id, id) where type = 'question' and status = 'pending'`,
  // Spending is counted for a chain, for a run with all below it, and for an agent on each day.
  `alter table kb.budgets
    -- Of an agent: the day and, so that its runs do not wait for each other, one of its rows: 2026-11-22/0. Else ''.
    add column period text collate "C" not null default '',
    drop constraint budgets_pkey,
    add primary key (project_id, scope, scope_id, period)`,
  // The tools that models were shown, each list once.
  `create table kb.tool_lists (
    project_id uuid not null references kb.projects,
    digest text not null,
    tools jsonb not null,
    primary key (project_id, digest)
  )`,
  // What was asked of a model: the log up to an event, a list of tools and a few parameters say it exactly.
  `create table kb.model_calls (
    project_id uuid not null references kb.projects,
    run_id uuid not null references kb.agent_runs,
    -- From 1 in each run, in the order in which the model was asked.
    number integer not null,
    agent_id uuid not null references kb.agents,
    context_name text not null,
    -- From 1 in each run; tries of one step share it.
    step integer not null,
    -- From 1: the tries that went before brought no answer.
    try integer not null,
    provider text not null,
    model text not null,
    -- The last event whose words the model was shown.
    after_event integer not null,
    -- The event that has the answer; null when there was none.
    answer_event integer,
    tools_digest text,
    parameters jsonb not null,
    finish_reason text,
    error text,
    input_tokens integer not null default 0,
    output_tokens integer not null default 0,
    -- Whether the tokens are a guess, because the model's server does not count them.
    usage_estimated boolean not null default false,
    cost_micros bigint,
    started_at timestamptz not null,
    first_output_ms integer,
    duration_ms integer not null,
    primary key (run_id, number)
  )`,
  `create table kb.mcp_servers (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    name text not null,
    config jsonb not null,
    enabled boolean not null default true,
    -- Grows with every change, so that of two that were begun together one is told.
    version integer not null default 1,
    -- What the server listed when its tools were pinned: names, descriptions, schemas and their hashes.
    tools jsonb not null default '[]',
    pinned_at timestamptz,
    last_error text,
    created_by text not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  `create unique index mcp_servers_name on kb.mcp_servers (project_id, name)`
]

const rights = ["tool_lists", "model_calls", "mcp_servers"].flatMap((table) => [
  `alter table kb.${table} enable row level security`,
  `create policy project on kb.${table} using (project_id = ${currentProject}) with check (project_id = ${currentProject})`,
  `grant select, insert, update, delete on kb.${table} to tropism_server`
])

/** Functions with the owner's rights; each answers ids. */
const crossing = [
  // A switch stops the clock of what it stops, and of what waits to go on; whoever goes on has the time that was left.
  `create or replace function kb.follow_kill_switches() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    with stopped as (
      update kb.agent_runs run
      set status = 'paused', pause_reason = 'killSwitch', attempt_token = null, attempt = attempt - 1, lease_expires_at = null,
        time_left_ms = (extract(epoch from deadline_at - now()) * 1000)::bigint, deadline_at = null
      where status = 'running'
        and exists (select 1 from kb.kill_switches switch where switch.project_id is null or switch.project_id = run.project_id)
      returning id
    ), held as (
      update kb.agent_runs run
      set time_left_ms = (extract(epoch from deadline_at - now()) * 1000)::bigint, deadline_at = null
      where (status = 'queued' or (status = 'paused' and pause_reason = 'subAgents')) and deadline_at is not null
        and exists (select 1 from kb.kill_switches switch where switch.project_id is null or switch.project_id = run.project_id)
    ), resumed as (
      update kb.agent_runs run set status = 'queued', pause_reason = null
      where status = 'paused' and pause_reason = 'killSwitch'
        and not exists (select 1 from kb.kill_switches switch where switch.project_id is null or switch.project_id = run.project_id)
      returning id
    ), ticking as (
      update kb.agent_runs run
      set deadline_at = now() + make_interval(secs => time_left_ms::float8 / 1000), time_left_ms = null
      where status = 'paused' and pause_reason = 'subAgents' and time_left_ms is not null
        and not exists (select 1 from kb.kill_switches switch where switch.project_id is null or switch.project_id = run.project_id)
    )
    select id from stopped union all select id from resumed $$`,
  // Projects in which a waiting run has used its time, or a run is alive that nobody above it wants any more.
  `create function kb.projects_with_due_waits() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    select project_id from kb.agent_runs
    where status = 'paused' and pause_reason = 'subAgents' and deadline_at is not null and deadline_at < now()
    union
    select child.project_id from kb.agent_runs child
    join kb.agent_runs parent on parent.id = child.parent_run_id
    left join kb.tool_calls call on call.id = child.spawned_by
    where child.parent_run_id is not null and child.status in ('queued', 'running', 'paused')
      and (parent.status in ('cancelled', 'failed') or call.status = 'abandoned') $$`,
  `revoke all on function kb.projects_with_due_waits() from public`,
  `grant execute on function kb.projects_with_due_waits() to tropism_server`
]

/** What waits and what is at work, of all projects, for whoever watches the server; only counts, read through partial indexes. */
const gauges = [
  `create function kb.gauges() returns table (queued_runs bigint, oldest_queued_seconds float8, live_leases bigint, lapsed_leases bigint,
    question_runs bigint, sub_agent_runs bigint, undispatched_events bigint, oldest_event_seconds float8, waiting_entries bigint)
    language sql security definer set search_path = kb, pg_temp as $$
    select queued.count, queued.oldest, leases.live, leases.lapsed, resting.question, resting.sub_agents, events.count, events.oldest, entries.count
    from (select count(*), coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as oldest
        from agent_runs where status = 'queued') queued,
      (select count(*) filter (where lease_expires_at >= now()) as live, count(*) filter (where lease_expires_at < now()) as lapsed
        from agent_runs where status = 'running') leases,
      (select count(*) filter (where pause_reason = 'question') as question, count(*) filter (where pause_reason = 'subAgents') as sub_agents
        from agent_runs where status = 'paused' and pause_reason in ('question', 'subAgents')) resting,
      (select count(*), coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as oldest
        from graph_events where dispatched_at is null) events,
      (select count(*) from agent_processing_log where status = 'pending' and run_id is null) entries $$`,
  `revoke all on function kb.gauges() from public`,
  `grant execute on function kb.gauges() to tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...rights, ...crossing, ...gauges]
