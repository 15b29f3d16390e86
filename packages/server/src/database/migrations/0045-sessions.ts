/**
 * A person's sessions can be listed and ended, and a login code says whom it would sign in.
 *
 * A credential sees those sessions of its user that reach no further than it does
 * itself: whoever was let in to one project learns nothing of the others.
 */

const definer = (signature: string, returns: string, body: string): ReadonlyArray<string> => [
  `create function kb.${signature} returns ${returns} language sql security definer set search_path = kb, pg_temp as $$ ${body} $$`,
  `revoke all on function kb.${signature} from public`,
  `grant execute on function kb.${signature} to tropism_server`
]

const isGood = (token: string) =>
  `${token}.revoked_at is null and (${token}.expires_at is null or ${token}.expires_at > now())`

/** A session `s` of the same user, that reaches no further than the credential `c`. */
const isWithinReach = `s.user_id = c.user_id and s.is_session and ${isGood("s")}
  and (s.session_of is null or exists (select 1 from kb.api_tokens o where o.id = s.session_of and ${isGood("o")}))
  and case
    when c.of_person then s.of_person or s.project_ids is not null
    when c.project_ids is null then true
    else not s.of_person and coalesce(s.project_ids <@ c.project_ids, false)
  end`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.api_tokens
    -- What the browser of a session calls itself.
    add column browser text`,
  `create index api_tokens_sessions_of_user on kb.api_tokens (user_id, id) where is_session and revoked_at is null`,
  ...definer(
    "find_login_code(code_hash text)",
    "text",
    `select user_id from kb.login_codes where hash = code_hash and used_at is null and expires_at > now()`
  ),
  ...definer(
    "name_browser(session_hash text, told text)",
    "void",
    `update kb.api_tokens set browser = told where hash = session_hash and is_session`
  ),
  ...definer(
    "list_sessions(token_hash text, before uuid, most integer)",
    "table (id uuid, browser text, created_at timestamptz, expires_at timestamptz, last_used_at timestamptz, is_current boolean)",
    `select s.id, s.browser, s.created_at, s.expires_at, s.last_used_at, s.id = c.id
     from kb.api_tokens c join kb.api_tokens s on ${isWithinReach}
     where c.hash = token_hash and (before is null or s.id < before)
     order by s.id desc limit most`
  ),
  ...definer(
    "end_sessions(token_hash text, session_id uuid)",
    "integer",
    `with ended as (
      update kb.api_tokens s set revoked_at = now() from kb.api_tokens c
      where c.hash = token_hash and ${isWithinReach}
        and (s.id = session_id or (session_id is null and s.id <> c.id))
      returning 1
    ) select count(*)::integer from ended`
  ),
  `drop function kb.find_token(text)`
]
