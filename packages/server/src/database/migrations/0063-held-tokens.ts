/**
 * What a server was started with lets in as its admin while such a server is there, and no longer.
 *
 * Each server says now and then that it has its token, and ends those that no
 * server has said so of for a while. Who replaced a token has ended the one before.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.api_tokens
    -- When a server that was started with it said so last; null for all that no server was started with.
    add column held_at timestamptz`,
  `update kb.api_tokens set held_at = now()
    where user_id = 'admin' and name is null and project_ids is null and not is_session and not of_person and expires_at is null`,
  `create index api_tokens_held on kb.api_tokens (held_at) where held_at is not null`,
  `create function kb.hold_admin_token(token_id uuid, token_hash text, owner_id text, others_seconds float8)
    returns integer language sql security definer set search_path = kb, pg_temp as $$
    with held as (
      insert into kb.api_tokens as t (id, hash, user_id, role, held_at) values (token_id, token_hash, owner_id, 'admin', now())
      on conflict (hash) do update set held_at = now(), revoked_at = null where t.held_at is not null
    ), ended as (
      update kb.api_tokens set revoked_at = now()
      where held_at <= now() - make_interval(secs => others_seconds) and revoked_at is null and hash <> token_hash
      returning 1
    )
    select count(*)::integer from ended $$`,
  `revoke all on function kb.hold_admin_token(uuid, text, text, float8) from public`,
  `grant execute on function kb.hold_admin_token(uuid, text, text, float8) to tropism_server`,
  `drop function kb.save_admin_token(uuid, text, text)`
]
