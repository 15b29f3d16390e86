/**
 * Signing in to foreign MCP servers: tokens sealed at rest, sign-ins under way, and clients that authorization servers know.
 *
 * The database decides who renews a grant: a claim names the version of the tokens that it renews.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const tables = [
  `create table kb.mcp_grants (
    project_id uuid not null references kb.projects,
    server_id uuid not null references kb.mcp_servers on delete cascade,
    -- The member whose runs it is for; empty where it is for every run of the project.
    user_id text not null,
    -- The server's address at the sign-in: tokens are sent to no other.
    url text not null,
    -- New with each sign-in: a session with the server belongs to one.
    id uuid not null,
    -- Grows with each set of tokens.
    version integer not null default 1,
    -- Null: signed out.
    sealed text,
    -- Why it was signed out.
    detail text,
    issuer text not null,
    scopes text,
    -- Scopes that the server has asked for since: the next sign-in asks for them, too.
    wanted_scopes text,
    has_refresh_token boolean not null,
    expires_at timestamptz,
    signed_in_by text not null,
    signed_in_at timestamptz not null default now(),
    -- Who renews the tokens at the moment: one program at a time, and another when this one is silent for too long.
    claim_token uuid,
    claimed_until timestamptz,
    primary key (project_id, server_id, user_id)
  )`,
  `create index mcp_grants_server on kb.mcp_grants (server_id)`,
  `create table kb.mcp_sign_ins (
    project_id uuid not null references kb.projects,
    -- SHA-256 of the state that the browser brings back.
    state_hash text not null,
    server_id uuid not null references kb.mcp_servers on delete cascade,
    user_id text not null,
    asked_by text not null,
    may_pin boolean not null,
    sealed text not null,
    expires_at timestamptz not null,
    primary key (project_id, state_hash),
    -- A second link of the same person takes the place of the first.
    unique (project_id, server_id, user_id, asked_by)
  )`,
  `create index mcp_sign_ins_server on kb.mcp_sign_ins (server_id)`,
  `create table kb.mcp_clients (
    project_id uuid not null references kb.projects,
    server_id uuid not null references kb.mcp_servers on delete cascade,
    issuer text not null,
    redirect_uri text not null,
    sealed text not null,
    created_at timestamptz not null default now(),
    primary key (project_id, server_id, issuer, redirect_uri)
  )`,
  `create index mcp_clients_server on kb.mcp_clients (server_id)`
]

/** As in migration 35, for tokens and clients, too. */
const adopt = `
  update kb.sealing_keys set key_id = wanted, since = now()
  where key_id <> wanted and (key_id = any(known) or not exists (
    select 1 from kb.event_subscriptions where secret like 'v1.%' union all
    select 1 from kb.mcp_grants where sealed is not null union all
    select 1 from kb.mcp_clients));
  select key_id from kb.sealing_keys`

const unsealed = `
  select project_id from kb.event_subscriptions
  where secret not like 'v1.' || wanted || '.%' or previous_secret not like 'v1.' || wanted || '.%'
  union select project_id from kb.mcp_grants where sealed not like 'v1.' || wanted || '.%'
  union select project_id from kb.mcp_clients where sealed not like 'v1.' || wanted || '.%'`

const rights = [
  ...["mcp_grants", "mcp_sign_ins", "mcp_clients"].flatMap((table) => [
    `alter table kb.${table} enable row level security`,
    `create policy project on kb.${table} using (project_id = ${currentProject}) with check (project_id = ${currentProject})`,
    `grant select, insert, update, delete on kb.${table} to tropism_server`
  ]),
  `create or replace function kb.adopt_sealing_key(wanted text, known text[]) returns text
   language sql security definer set search_path = kb, pg_temp as $$ ${adopt} $$`,
  `create or replace function kb.projects_with_unsealed_secrets(wanted text) returns setof uuid
   language sql security definer set search_path = kb, pg_temp as $$ ${unsealed} $$`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...rights]
