/**
 * A key of a request belongs to the token that it came with, and what comes to the server as a whole has keys, too.
 */

const definer = (signature: string, returns: string, body: string): ReadonlyArray<string> => [
  `create function kb.${signature} returns ${returns} language sql security definer set search_path = kb, pg_temp as $$ ${body} $$`,
  `revoke all on function kb.${signature} from public`,
  `grant execute on function kb.${signature} to tropism_server`
]

const tables = [
  // The hash of the token that the request came with; empty for what was kept before tokens were told apart.
  `alter table kb.idempotency_keys add column token text not null default ''`,
  `alter table kb.idempotency_keys drop constraint idempotency_keys_pkey`,
  `alter table kb.idempotency_keys add primary key (project_id, user_id, token, route, key)`,
  // Requests that are of no project; no policy shows these rows to anybody.
  `create table kb.server_request_keys (
    user_id text not null,
    token text not null,
    route text not null,
    key text not null,
    digest text not null,
    outcome jsonb not null,
    created_at timestamptz not null default now(),
    primary key (user_id, token, route, key)
  )`,
  `create index server_request_keys_age on kb.server_request_keys (created_at)`,
  `alter table kb.server_request_keys enable row level security`
]

const functions = [
  ...definer(
    "find_server_request(caller text, caller_token text, asked_route text, asked_key text)",
    "table (digest text, outcome jsonb)",
    `select digest, outcome from kb.server_request_keys
     where user_id = caller and token = caller_token and route = asked_route and key = asked_key`
  ),
  ...definer(
    "keep_server_request(caller text, caller_token text, asked_route text, asked_key text, asked_digest text, kept jsonb)",
    "void",
    `insert into kb.server_request_keys (user_id, token, route, key, digest, outcome)
     values (caller, caller_token, asked_route, asked_key, asked_digest, kept)`
  ),
  `create or replace function kb.forget_idempotency_keys(keep_seconds double precision, most integer) returns integer
    language sql security definer set search_path = kb, pg_temp as $$
    with old as (
      select project_id, user_id, token, route, key from kb.idempotency_keys
      where created_at < now() - make_interval(secs => keep_seconds)
      order by created_at limit most for update skip locked
    ), forgotten as (
      delete from kb.idempotency_keys kept using old
      where (kept.project_id, kept.user_id, kept.token, kept.route, kept.key)
        = (old.project_id, old.user_id, old.token, old.route, old.key)
      returning 1
    ), old_of_server as (
      select user_id, token, route, key from kb.server_request_keys
      where created_at < now() - make_interval(secs => keep_seconds)
      order by created_at limit most for update skip locked
    ), forgotten_of_server as (
      delete from kb.server_request_keys kept using old_of_server old
      where (kept.user_id, kept.token, kept.route, kept.key) = (old.user_id, old.token, old.route, old.key)
      returning 1
    )
    select ((select count(*) from forgotten) + (select count(*) from forgotten_of_server))::int $$`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...functions]
