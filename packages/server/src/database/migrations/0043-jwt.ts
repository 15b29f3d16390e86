/**
 * A token that another server signed reaches whatever projects its person is a member of.
 *
 * It has a row from its first request on, so what goes on behind a request finds
 * it by its hash as it finds any other, and somebody can end it before its time.
 */

const ranks = `array['viewer', 'editor', 'reviewer', 'admin']`

const isGood = (token: string) =>
  `${token}.revoked_at is null and (${token}.expires_at is null or ${token}.expires_at > now())`

const findPrincipal = `
  create or replace function kb.find_principal(token_hash text)
  returns table (user_id text, role text, roles jsonb, is_seen boolean)
  language sql security definer set search_path = kb, pg_temp as $$
  select t.user_id, t.role,
    case
      when t.of_person then (select coalesce(jsonb_object_agg(m.project_id, m.role), '{}') from kb.members m where m.user_id = t.user_id)
      when t.project_ids is null then null
      else coalesce((
        select jsonb_object_agg(m.project_id, (${ranks})[least(array_position(${ranks}, t.role), array_position(${ranks}, m.role))])
        from kb.members m where m.user_id = t.user_id and m.project_id = any(t.project_ids)), '{}') end,
    coalesce(t.last_used_at > now() - interval '1 hour', false)
  from kb.api_tokens t
  where t.hash = token_hash and ${isGood("t")}
    and (t.session_of is null or exists (select 1 from kb.api_tokens o where o.id = t.session_of and ${isGood("o")})) $$`

const openSession = `
  create or replace function kb.open_session(token_hash text, session_id uuid, session_hash text, max_age_seconds integer)
  returns boolean language sql security definer set search_path = kb, pg_temp as $$
  with made as (
    insert into kb.api_tokens (id, hash, user_id, role, project_ids, of_person, session_of, is_session, expires_at)
    select session_id, session_hash, t.user_id, t.role, t.project_ids, t.of_person, t.id, true,
      least(t.expires_at, now() + make_interval(secs => max_age_seconds))
    from kb.api_tokens t where t.hash = token_hash and not t.is_session and ${isGood("t")} returning id
  ) select exists (select 1 from made) $$`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.api_tokens
    -- Of a person wherever they are a member, with their role there.
    add column of_person boolean not null default false`,
  findPrincipal,
  openSession,
  `create function kb.admit_person(token_id uuid, token_hash text, person text, is_server_admin boolean, ends timestamptz)
    returns void language sql security definer set search_path = kb, pg_temp as $$
    insert into kb.api_tokens (id, hash, user_id, role, of_person, expires_at)
    values (token_id, token_hash, person, 'admin', not is_server_admin, ends) on conflict (hash) do nothing $$`,
  `revoke all on function kb.admit_person(uuid, text, text, boolean, timestamptz) from public`,
  `grant execute on function kb.admit_person(uuid, text, text, boolean, timestamptz) to tropism_server`
]
