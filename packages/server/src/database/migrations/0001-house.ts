/**
 * The first migration: every table of the journey, with the keys that decide
 * its races, and the rights of `0001-house-rights.ts`.
 */
import { rights } from "./0001-house-rights.ts"

const tables = [
  `create table kb.projects (
    id uuid primary key,
    name text not null,
    created_by text not null,
    created_at timestamptz not null default now()
  )`,
  `create table kb.members (
    project_id uuid not null references kb.projects,
    user_id text not null,
    role text not null check (role in ('viewer', 'editor', 'reviewer', 'admin')),
    created_at timestamptz not null default now(),
    primary key (project_id, user_id)
  )`,
  // Reached only through kb.find_token and kb.save_token: no policy lets the server read it.
  `create table kb.api_tokens (
    id uuid primary key,
    hash text not null unique,
    user_id text not null,
    role text not null check (role in ('viewer', 'editor', 'reviewer', 'admin')),
    project_ids uuid[],
    expires_at timestamptz,
    revoked_at timestamptz,
    created_at timestamptz not null default now()
  )`,
  // A code that one browser exchanges for a session, once. Reached like tokens: through functions only.
  `create table kb.login_codes (
    hash text primary key,
    user_id text not null,
    expires_at timestamptz not null,
    used_at timestamptz
  )`,
  // The place of the last event in a project's feed. Its row is the dispatcher's lock.
  `create table kb.feeds (
    project_id uuid primary key references kb.projects,
    last_position bigint not null default 0
  )`,
  // The number of a project's last task.
  `create table kb.task_counters (
    project_id uuid primary key references kb.projects,
    last_number bigint not null default 0
  )`,
  `create table kb.graph_objects (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    type text not null,
    key text,
    properties jsonb not null,
    version integer not null,
    actor_type varchar(20) not null default 'user' check (actor_type in ('user', 'agent', 'system')),
    actor_id text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    deleted_at timestamptz
  )`,
  `create unique index graph_objects_key on kb.graph_objects (project_id, type, key) where deleted_at is null`,
  `create index graph_objects_list on kb.graph_objects (project_id, id) where deleted_at is null`,
  `create index graph_objects_type on kb.graph_objects (project_id, type, id) where deleted_at is null`,
  `create table kb.graph_object_versions (
    object_id uuid not null references kb.graph_objects,
    version integer not null,
    project_id uuid not null references kb.projects,
    type text not null check (type in ('created', 'updated', 'deleted')),
    properties jsonb not null,
    actor_type varchar(20) not null,
    actor_id text,
    approved_by text,
    run_id uuid,
    tool_call_id uuid,
    task_id uuid,
    event_id uuid not null,
    created_at timestamptz not null default now(),
    primary key (object_id, version)
  )`,
  `create table kb.graph_relationships (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    type text not null,
    from_id uuid not null references kb.graph_objects,
    to_id uuid not null references kb.graph_objects,
    properties jsonb not null,
    version integer not null,
    actor_type varchar(20) not null check (actor_type in ('user', 'agent', 'system')),
    actor_id text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    deleted_at timestamptz
  )`,
  `create unique index graph_relationships_ends on kb.graph_relationships (project_id, type, from_id, to_id) where deleted_at is null`,
  `create index graph_relationships_from on kb.graph_relationships (from_id) where deleted_at is null`,
  `create index graph_relationships_to on kb.graph_relationships (to_id) where deleted_at is null`,
  `create index graph_relationships_list on kb.graph_relationships (project_id, id) where deleted_at is null`,
  // The outbox: an event is written in the transaction of its change and marked when it is dispatched.
  `create table kb.graph_events (
    id uuid primary key,
    seq bigint generated always as identity,
    project_id uuid not null references kb.projects,
    position bigint,
    entity_type text not null check (entity_type in ('graphObject', 'relationship')),
    object_type text not null,
    entity_id uuid not null,
    version integer not null,
    type text not null check (type in ('created', 'updated', 'deleted')),
    changed_properties text[] not null,
    snapshot jsonb not null,
    actor_type varchar(20) not null check (actor_type in ('user', 'agent', 'system')),
    actor_id text,
    approved_by text,
    run_id uuid,
    tool_call_id uuid,
    task_id uuid,
    root_event_id uuid not null,
    depth integer not null,
    refusals jsonb not null default '[]',
    created_at timestamptz not null default now(),
    dispatched_at timestamptz,
    unique (entity_id, version)
  )`,
  `create index graph_events_outbox on kb.graph_events (project_id, seq) where dispatched_at is null`,
  `create unique index graph_events_feed on kb.graph_events (project_id, position) where position is not null`,
  `create table kb.agents (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    name text not null,
    version integer not null,
    role text,
    prompt text not null,
    system_prompt text,
    model jsonb,
    flow_type text not null,
    tools text[] not null,
    trigger_type text not null check (trigger_type in ('reaction', 'schedule', 'manual')),
    cron_schedule text,
    timezone text not null,
    reaction_config jsonb,
    execution_mode text not null check (execution_mode in ('suggest', 'execute', 'hybrid')),
    hybrid_policy jsonb,
    capabilities jsonb,
    max_steps integer,
    enabled boolean not null,
    disabled_reason text,
    enabled_at timestamptz,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    deleted_at timestamptz,
    check (trigger_type <> 'reaction' or reaction_config is not null),
    check (trigger_type <> 'schedule' or cron_schedule is not null)
  )`,
  `create unique index agents_name on kb.agents (project_id, name) where deleted_at is null`,
  `create table kb.agent_versions (
    agent_id uuid not null references kb.agents,
    version integer not null,
    project_id uuid not null references kb.projects,
    definition jsonb not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    primary key (agent_id, version)
  )`,
  // Which enabled agents may react to a type and an event: the dispatcher's only question. '*' is every type.
  `create table kb.agent_reactions (
    project_id uuid not null references kb.projects,
    object_type text not null,
    event_type text not null,
    agent_id uuid not null references kb.agents,
    primary key (project_id, object_type, event_type, agent_id)
  )`,
  `create index agent_reactions_agent on kb.agent_reactions (agent_id)`,
  `create table kb.agent_schedules (
    agent_id uuid primary key references kb.agents,
    project_id uuid not null references kb.projects,
    cron text not null,
    timezone text not null,
    next_fire_at timestamptz not null
  )`,
  `create index agent_schedules_due on kb.agent_schedules (next_fire_at)`,
  `create table kb.agent_runs (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    agent_id uuid not null references kb.agents,
    agent_version integer not null,
    status text not null check (status in ('queued', 'running', 'completed', 'failed', 'cancelled', 'paused', 'skipped')),
    pause_reason text,
    trigger jsonb not null,
    user_id text,
    due_at timestamptz,
    context_name text not null,
    root_event_id uuid,
    depth integer not null,
    model text,
    summary text,
    error_message text,
    step_count integer not null default 0,
    usage jsonb not null default '{"inputTokens": 0, "outputTokens": 0}',
    attempt integer not null default 0,
    attempt_token uuid,
    worker_id text,
    lease_expires_at timestamptz,
    created_at timestamptz not null default now(),
    started_at timestamptz,
    completed_at timestamptz
  )`,
  `create index agent_runs_queued on kb.agent_runs (project_id, id) where status = 'queued'`,
  `create index agent_runs_leases on kb.agent_runs (lease_expires_at) where status = 'running'`,
  `create index agent_runs_list on kb.agent_runs (project_id, id)`,
  `create index agent_runs_agent on kb.agent_runs (agent_id, id)`,
  `create unique index agent_runs_due on kb.agent_runs (agent_id, due_at) where due_at is not null`,
  // At most one run works on a context at a time.
  `create unique index agent_runs_context on kb.agent_runs (project_id, context_name) where status in ('queued', 'running', 'paused')`,
  `create table kb.agent_processing_log (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    agent_id uuid not null references kb.agents,
    graph_object_id uuid not null references kb.graph_objects,
    object_version integer not null,
    event_type varchar(20) not null check (event_type in ('created', 'updated', 'deleted')),
    event_id uuid not null references kb.graph_events,
    attempt integer not null default 1,
    exclusive boolean not null,
    status varchar(20) not null default 'pending'
      check (status in ('pending', 'processing', 'completed', 'failed', 'abandoned', 'skipped')),
    run_id uuid references kb.agent_runs deferrable initially deferred,
    reason text,
    error_message text,
    started_at timestamptz,
    completed_at timestamptz,
    created_at timestamptz not null default now()
  )`,
  // Nothing is handled twice.
  `create unique index agent_processing_log_once
    on kb.agent_processing_log (agent_id, graph_object_id, object_version, event_type, attempt)`,
  // Strategy skip: one live entry per agent and object.
  `create unique index agent_processing_log_skip
    on kb.agent_processing_log (agent_id, graph_object_id) where exclusive and status in ('pending', 'processing')`,
  `create index agent_processing_log_list on kb.agent_processing_log (agent_id, id)`,
  `create index agent_processing_log_run on kb.agent_processing_log (run_id)`,
  `create index agent_processing_log_event on kb.agent_processing_log (event_id)`,
  `create index agent_processing_log_live on kb.agent_processing_log (started_at) where status = 'processing'`,
  // What a chain, an agent or a run has used of what it may use.
  `create table kb.budgets (
    project_id uuid not null references kb.projects,
    scope text not null check (scope in ('chain', 'agent', 'run')),
    scope_id uuid not null,
    runs integer not null default 0,
    primary key (project_id, scope, scope_id)
  )`,
  `create table kb.contexts (
    project_id uuid not null references kb.projects,
    name text not null,
    agent_id uuid not null references kb.agents,
    last_event_number integer not null default 0,
    open_turn_number integer,
    created_at timestamptz not null default now(),
    primary key (project_id, name)
  )`,
  `create table kb.context_events (
    project_id uuid not null,
    context_name text not null,
    number integer not null,
    type text not null,
    payload jsonb not null,
    parent_event_id text,
    triggers_agent_turn boolean not null,
    created_at timestamptz not null,
    primary key (project_id, context_name, number),
    foreign key (project_id, context_name) references kb.contexts
  )`,
  `create table kb.tool_calls (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    run_id uuid references kb.agent_runs,
    agent_id uuid,
    user_id text,
    context_name text,
    call_id text not null,
    tool text not null,
    arguments jsonb not null,
    status text not null check (status in ('completed', 'failed', 'refused')),
    decision text check (decision in ('execute', 'suggest', 'refuse')),
    result jsonb not null,
    reads jsonb not null default '[]',
    created_at timestamptz not null default now()
  )`,
  // A call has one effect, however often it is made.
  `create unique index tool_calls_once on kb.tool_calls (run_id, call_id)`,
  `create table kb.tasks (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    number bigint not null,
    type text not null,
    status text not null default 'pending' check (status in ('pending', 'completed', 'rejected', 'expired')),
    title text not null,
    description text,
    payload jsonb not null,
    digest text not null,
    agent_id uuid not null references kb.agents,
    run_id uuid not null references kb.agent_runs,
    tool_call_id uuid not null,
    target_id uuid,
    base_version integer,
    evidence jsonb not null,
    root_event_id uuid,
    depth integer not null,
    outcome jsonb,
    resolved_by text,
    resolution_note text,
    created_at timestamptz not null default now(),
    resolved_at timestamptz,
    unique (project_id, number)
  )`,
  `create index tasks_list on kb.tasks (project_id, status, id)`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [`create schema if not exists kb`, ...tables, ...rights]
