/**
 * What a server was started with lets in as its admin while such a server is there, and no longer.
 *
 * Each server says now and then that it has its token, and ends those that no
 * server has said so of for a while. Who replaced a token has ended the one before,
 * and every browser that came in by a link of it.
 */

const definer = (signature: string, returns: string, body: string): ReadonlyArray<string> => [
  `create or replace function kb.${signature} returns ${returns} language sql security definer set search_path = kb, pg_temp as $$ ${body} $$`,
  `revoke all on function kb.${signature} from public`,
  `grant execute on function kb.${signature} to tropism_server`
]

const isGood = (token: string) =>
  `${token}.revoked_at is null and (${token}.expires_at is null or ${token}.expires_at > now())`

/** A code `c` that nobody used, and whose token still lets in. */
const isUsable = `c.used_at is null and c.expires_at > now()
  and (c.of_token is null or exists (select 1 from kb.api_tokens o where o.id = c.of_token and ${isGood("o")}))`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.api_tokens
    -- When a server that was started with it said so last; null for all that no server was started with.
    add column held_at timestamptz`,
  `update kb.api_tokens set held_at = now()
    where user_id = 'admin' and name is null and project_ids is null and not is_session and not of_person
      and expires_at is null and revoked_at is null`,
  `create index api_tokens_held on kb.api_tokens (held_at) where held_at is not null`,
  `alter table kb.login_codes
    -- The token with which it was made; its session ends with it.
    add column of_token uuid references kb.api_tokens on delete cascade`,
  `create index login_codes_of_token on kb.login_codes (of_token) where of_token is not null`,
  ...definer(
    "hold_admin_token(token_id uuid, token_hash text, owner_id text, others_seconds float8)",
    "integer",
    `with held as (
      insert into kb.api_tokens as t (id, hash, user_id, role, held_at) values (token_id, token_hash, owner_id, 'admin', now())
      on conflict (hash) do update set held_at = now(), revoked_at = null where t.held_at is not null
    ), ended as (
      update kb.api_tokens set revoked_at = now()
      where held_at <= now() - make_interval(secs => others_seconds) and revoked_at is null and hash <> token_hash
      returning 1
    )
    select count(*)::integer from ended`
  ),
  `drop function kb.save_admin_token(uuid, text, text)`,
  ...definer(
    "save_login_code(code_hash text, owner_id text, max_age_seconds integer, maker_hash text)",
    "void",
    `insert into kb.login_codes (hash, user_id, expires_at, of_token)
     values (code_hash, owner_id, now() + make_interval(secs => max_age_seconds),
       (select coalesce(t.session_of, t.id) from kb.api_tokens t where t.hash = maker_hash))`
  ),
  `drop function kb.save_login_code(text, text, integer)`,
  ...definer(
    "find_login_code(code_hash text)",
    "text",
    `select c.user_id from kb.login_codes c where c.hash = code_hash and ${isUsable}`
  ),
  ...definer(
    "exchange_login_code(code_hash text, token_id uuid, token_hash text, max_age_seconds integer)",
    "boolean",
    `with used as (
      update kb.login_codes c set used_at = now() where c.hash = code_hash and ${isUsable}
      returning c.user_id, c.project_ids, c.of_token
    ), session as (
      insert into kb.api_tokens (id, hash, user_id, role, project_ids, session_of, is_session, expires_at)
      select token_id, token_hash, user_id, 'admin', project_ids, of_token, true, now() + make_interval(secs => max_age_seconds)
      from used returning id
    )
    select exists (select 1 from session)`
  )
]
