/**
 * Runs come in an order: first those that somebody waits for, then what reacts,
 * then backtests. A backtest has its row, the events that it chose and what its
 * runs would have suggested; nothing of it stands anywhere else.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const order = [
  // 0: somebody waits for it. 1: it reacts, or a schedule or another system began it. 2: it is a backtest's.
  `alter table kb.agent_runs add column priority smallint not null default 1`,
  `update kb.agent_runs set priority = 0 where status in ('queued', 'running', 'paused') and trigger_type in ('manual', 'context')`,
  `create index agent_runs_first on kb.agent_runs (project_id, priority, id) where status = 'queued'`
]

const tables = [
  `create table kb.backtests (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    agent_id uuid not null references kb.agents,
    agent_version integer not null,
    status text not null default 'queued' check (status in ('queued', 'running', 'completed', 'cancelled', 'failed')),
    days integer not null,
    max_events integer not null,
    max_cost_micros bigint,
    from_at timestamptz not null,
    to_at timestamptz not null,
    looked_events integer not null default 0,
    matched_events integer not null default 0,
    chosen_events integer not null default 0,
    detail text,
    created_by text not null,
    created_at timestamptz not null default now(),
    started_at timestamptz,
    completed_at timestamptz
  )`,
  // One at a time of each agent; and what is to be done.
  `create unique index backtests_live on kb.backtests (agent_id) where status in ('queued', 'running')`,
  `create index backtests_due on kb.backtests (project_id, id) where status in ('queued', 'running')`,
  `create index backtests_list on kb.backtests (agent_id, id)`,
  `create table kb.backtest_events (
    project_id uuid not null references kb.projects,
    backtest_id uuid not null references kb.backtests,
    -- From 1 on, the oldest first.
    number integer not null,
    event_id uuid not null references kb.graph_events,
    -- The runs of the agent that handled the event when it happened.
    handled_by uuid[] not null,
    run_id uuid references kb.agent_runs,
    primary key (backtest_id, number)
  )`,
  `create index backtest_events_next on kb.backtest_events (backtest_id, number) where run_id is null`,
  // What the runs would have suggested.
  `create table kb.backtest_suggestions (
    tool_call_id uuid primary key,
    project_id uuid not null references kb.projects,
    backtest_id uuid not null references kb.backtests,
    run_id uuid not null references kb.agent_runs,
    change jsonb not null,
    confidence double precision,
    reasoning text,
    created_at timestamptz not null default clock_timestamp()
  )`,
  `create index backtest_suggestions_run on kb.backtest_suggestions (backtest_id, run_id, tool_call_id)`,
  `alter table kb.agent_runs add column backtest_id uuid references kb.backtests`,
  `create index agent_runs_backtest on kb.agent_runs (backtest_id, id) where backtest_id is not null`,
  `create index agent_runs_backtest_live on kb.agent_runs (backtest_id)
    where backtest_id is not null and status in ('queued', 'running', 'paused')`,
  // What is said in a backtest is recalled by nobody.
  `alter table kb.contexts add column is_remembered boolean not null default true`,
  `alter table kb.budgets drop constraint budgets_scope_check,
    add constraint budgets_scope_check check (scope in ('chain', 'agent', 'run', 'backtest'))`,
  // What was suggested by the runs that handled an event.
  `create index tasks_of_run on kb.tasks (run_id, id)`
]

const rights = [
  ...["backtests", "backtest_events", "backtest_suggestions"].flatMap((table) => [
    `alter table kb.${table} enable row level security`,
    `create policy project on kb.${table} using (project_id = ${currentProject}) with check (project_id = ${currentProject})`
  ]),
  `grant select, insert, update on kb.backtests, kb.backtest_events to tropism_server`,
  `grant select, insert on kb.backtest_suggestions to tropism_server`,
  // A function with the owner's rights; it answers ids.
  `create function kb.projects_with_backtests() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    select distinct project_id from kb.backtests where status in ('queued', 'running') $$`,
  `revoke all on function kb.projects_with_backtests() from public`,
  `grant execute on function kb.projects_with_backtests() to tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...order, ...tables, ...rights]
