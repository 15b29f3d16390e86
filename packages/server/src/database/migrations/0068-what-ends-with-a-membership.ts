/**
 * With a membership end the ways in that were made for it, and a session reaches what its token reaches now.
 *
 * A token that is made while its member is removed waits, and is not made; a link
 * of somebody who was removed lets nobody in, also when they come back. A browser
 * that came in with a token of several projects is let out of one with it.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const ranks = `array['viewer', 'editor', 'reviewer', 'admin']`

const definer = (signature: string, returns: string, body: string): ReadonlyArray<string> => [
  `create or replace function kb.${signature} returns ${returns} language sql security definer set search_path = kb, pg_temp as $$ ${body} $$`,
  `revoke all on function kb.${signature} from public`,
  `grant execute on function kb.${signature} to tropism_server`
]

const isGood = (token: string) =>
  `${token}.revoked_at is null and (${token}.expires_at is null or ${token}.expires_at > now())`

/** A code `c` that nobody used, whose token still lets in and whose member is one. */
const isUsable = `c.used_at is null and c.expires_at > now()
  and (c.of_token is null or exists (select 1 from kb.api_tokens o where o.id = c.of_token and ${isGood("o")}))
  and (c.project_ids is null or exists (select 1 from kb.members m where m.user_id = c.user_id and m.project_id = any(c.project_ids)))`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // Its answer is the same: what a session `t` reaches is what its token `o` reaches as well.
  ...definer(
    "find_principal(token_hash text)",
    "table (user_id text, role text, roles jsonb, is_seen boolean)",
    `select t.user_id, t.role,
      case
        when t.of_person then (select coalesce(jsonb_object_agg(m.project_id, m.role), '{}') from kb.members m where m.user_id = t.user_id)
        when t.project_ids is null and o.project_ids is null then null
        else coalesce((
          select jsonb_object_agg(m.project_id, (${ranks})[least(array_position(${ranks}, t.role), array_position(${ranks}, m.role))])
          from kb.members m where m.user_id = t.user_id and (t.project_ids is null or m.project_id = any(t.project_ids))
            and (o.project_ids is null or m.project_id = any(o.project_ids))), '{}') end,
      coalesce(t.last_used_at > now() - interval '1 hour', false)
    from kb.api_tokens t left join kb.api_tokens o on o.id = t.session_of
    where t.hash = token_hash and ${isGood("t")} and (t.session_of is null or ${isGood("o")})`
  ),
  // Answers whether it was made: only for whoever is a member of all of them, and stays one until it is.
  `drop function kb.make_token(uuid, text, text, text, uuid[], text, text, timestamptz)`,
  ...definer(
    "make_token(token_id uuid, token_hash text, member_id text, token_role text, projects uuid[], token_name text, maker text, ends timestamptz)",
    "boolean",
    `with held as (
      select m.project_id from kb.members m where m.user_id = member_id and m.project_id = any(projects) order by m.project_id for key share
    ), made as (
      insert into kb.api_tokens (id, hash, user_id, role, project_ids, name, created_by, expires_at)
      select token_id, token_hash, member_id, token_role, projects, token_name, maker, ends
      where (${currentProject} is null and projects is null)
        or (${currentProject} = any(projects) and (select count(*) from held) = cardinality(projects))
      returning 1
    ) select exists (select 1 from made)`
  ),
  ...definer(
    "save_member_code(code_hash text, member_id text, max_age_seconds integer)",
    "timestamptz",
    `insert into kb.login_codes (hash, user_id, project_ids, expires_at)
     select code_hash, m.user_id, array[m.project_id], now() + make_interval(secs => max_age_seconds)
     from kb.members m where m.project_id = ${currentProject} and m.user_id = member_id for key share returning expires_at`
  ),
  // Those of a member of the project of this transaction that nobody used.
  ...definer(
    "end_member_codes(member_id text)",
    "integer",
    `with ended as (
      delete from kb.login_codes c
      where c.user_id = member_id and c.project_ids = array[${currentProject}] and c.used_at is null returning 1
    ) select count(*)::integer from ended`
  ),
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
