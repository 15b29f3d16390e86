/**
 * Schedules remember what they have yet to make up for, versions where they came
 * from, agents whether files define them, and webhooks are kept with their
 * deliveries. A webhook is found without its project being known: by a function
 * with the owner's rights, as a token is.
 */

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

const tenantTable = (table: string): ReadonlyArray<string> => [
  `alter table kb.${table} enable row level security`,
  `create policy project on kb.${table} using (project_id = (select ${currentProject})) with check (project_id = (select ${currentProject}))`,
  `grant select, insert, update on kb.${table} to tropism_server`
]

const schedules = [
  // Missed instants that wait for the earlier run to end: from the oldest until the newest, by the cron expression.
  `alter table kb.agent_schedules add column backlog_from timestamptz, add column backlog_until timestamptz`,
  `create index agent_schedules_backlog on kb.agent_schedules (project_id) where backlog_from is not null`,
  `create or replace function kb.projects_with_due_schedules() returns setof uuid
   language sql security definer set search_path = kb, pg_temp as $$
     select project_id from (
       select project_id from kb.agent_schedules where next_fire_at <= now()
       union
       select project_id from kb.agent_schedules schedule
       where backlog_from is not null and not exists (
         select 1 from kb.agent_runs run
         where run.agent_id = schedule.agent_id and run.due_at is not null and run.status in ('queued', 'running'))
     ) due
     where not exists (select 1 from kb.kill_switches switch where switch.project_id is null or switch.project_id = due.project_id)
   $$`
]

const agents = [
  // Which version was restored by this one.
  `alter table kb.agent_versions add column restored_from integer`,
  // Whether files define the agent, so that leaving it out of them may delete it.
  `alter table kb.agents add column applied boolean not null default false`
]

const webhooks = [
  `create table kb.webhooks (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    agent_id uuid not null references kb.agents,
    name text not null,
    token_hash text not null,
    previous_token_hash text,
    previous_valid_until timestamptz,
    rate_per_minute integer not null,
    tokens_left double precision not null,
    tokens_counted_at timestamptz not null default now(),
    created_by text not null,
    created_at timestamptz not null default now(),
    last_delivery_at timestamptz,
    revoked_at timestamptz
  )`,
  `create index webhooks_agent on kb.webhooks (agent_id, id) where revoked_at is null`,
  ...tenantTable("webhooks"),
  // One run for each id that a sender gave: whoever delivers it again gets the same run.
  `create table kb.webhook_deliveries (
    webhook_id uuid not null references kb.webhooks,
    delivery_id text not null,
    project_id uuid not null references kb.projects,
    run_id uuid not null,
    received_at timestamptz not null default now(),
    primary key (webhook_id, delivery_id)
  )`,
  `create index webhook_deliveries_age on kb.webhook_deliveries (webhook_id, received_at)`,
  ...tenantTable("webhook_deliveries"),
  `grant delete on kb.webhook_deliveries to tropism_server`,
  `create function kb.find_webhook(hook_id uuid)
   returns table (project_id uuid, token_hash text, previous_token_hash text)
   language sql security definer set search_path = kb, pg_temp as $$
     select hook.project_id, hook.token_hash, case when hook.previous_valid_until > now() then hook.previous_token_hash end
     from kb.webhooks hook join kb.agents agent on agent.id = hook.agent_id
     where hook.id = hook_id and hook.revoked_at is null and agent.deleted_at is null
   $$`,
  `revoke all on function kb.find_webhook(uuid) from public`,
  `grant execute on function kb.find_webhook(uuid) to tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...schedules, ...agents, ...webhooks]
