/**
 * What clients of the MCP extensions leave behind: answers that a person would not
 * give, and the addresses to which events of the graph are delivered.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const tables = [
  `create table kb.declined_inputs (
    project_id uuid not null references kb.projects,
    run_id uuid not null references kb.agent_runs,
    user_id text not null,
    key text not null,
    created_at timestamptz not null default now(),
    primary key (project_id, run_id, user_id, key)
  )`,
  `create table kb.event_subscriptions (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    user_id text not null,
    -- Derived from who listens, where, and to what: whoever subscribes to the same again refreshes it.
    handle text not null,
    name text not null,
    arguments jsonb not null,
    url text not null,
    -- The subscriber's own: deliveries are signed with it, so it cannot be kept as a hash.
    secret text not null,
    previous_secret text,
    previous_secret_until timestamptz,
    -- Of the token that subscribed last: when that is revoked, deliveries end.
    token_hash text not null,
    status text not null default 'active' check (status in ('active', 'suspended')),
    -- Everything up to this place of the feed was delivered, or is not meant.
    position bigint not null,
    expires_at timestamptz,
    attempts integer not null default 0,
    next_attempt_at timestamptz not null default now(),
    failed_since timestamptz,
    last_error text,
    last_delivery_at timestamptz,
    -- Who delivers at the moment: one program at a time, and another when this one is silent for too long.
    claim_token uuid,
    claimed_until timestamptz,
    created_at timestamptz not null default now(),
    unique (project_id, handle)
  )`,
  // A subscription that has been told everything is behind no feed: one look at this index passes over all of them.
  `create index event_subscriptions_behind on kb.event_subscriptions (project_id, position) where status = 'active'`,
  `create index event_subscriptions_user on kb.event_subscriptions (project_id, user_id)`,
  `create index event_subscriptions_expiring on kb.event_subscriptions (expires_at) where expires_at is not null`
]

/** Projects with somebody to deliver to, walked from one to the next. */
const due = `
  with recursive found(project_id) as (
    (select project_id from kb.event_subscriptions where status = 'active' order by project_id limit 1)
    union all
    select (select s.project_id from kb.event_subscriptions s where s.status = 'active' and s.project_id > found.project_id
      order by s.project_id limit 1)
    from found where found.project_id is not null
  )
  select feed.project_id from found join kb.feeds feed on feed.project_id = found.project_id
  where exists (
    select 1 from kb.event_subscriptions s where s.project_id = feed.project_id and s.status = 'active'
      and s.position < feed.last_position and s.next_attempt_at <= now()
      and (s.claimed_until is null or s.claimed_until < now()))
  union
  select project_id from kb.event_subscriptions where expires_at <= now()`

const rights = [
  ...["declined_inputs", "event_subscriptions"].flatMap((table) => [
    `alter table kb.${table} enable row level security`,
    `create policy project on kb.${table} using (project_id = ${currentProject}) with check (project_id = ${currentProject})`
  ]),
  `grant select, insert on kb.declined_inputs to tropism_server`,
  `grant select, insert, update, delete on kb.event_subscriptions to tropism_server`,
  `create function kb.projects_with_due_deliveries() returns setof uuid
   language sql security definer set search_path = kb, pg_temp as $$ ${due} $$`,
  `revoke all on function kb.projects_with_due_deliveries() from public`,
  `grant execute on function kb.projects_with_due_deliveries() to tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...rights]
