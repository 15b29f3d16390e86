/**
 * Members have roles in their projects, and a token does what both its own role and its
 * member's allow. Whoever had a token of a project is a member of it from here on.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const ranks = `array['viewer', 'editor', 'reviewer', 'admin']`

const definer = (signature: string, returns: string, body: string): ReadonlyArray<string> => [
  `create function kb.${signature} returns ${returns} language sql security definer set search_path = kb, pg_temp as $$ ${body} $$`,
  `revoke all on function kb.${signature} from public`,
  `grant execute on function kb.${signature} to tropism_server`
]

const isGood = (token: string) =>
  `${token}.revoked_at is null and (${token}.expires_at is null or ${token}.expires_at > now())`

/** Of the project of this transaction; where there is none, of the server: those that somebody has named. */
const isHere = `(t.project_ids @> array[${currentProject}] or (${currentProject} is null and t.project_ids is null and t.name is not null))`

const tables = [
  `alter table kb.members
    add column added_by text,
    add column changed_by text,
    add column updated_at timestamptz not null default now()`,
  `create index members_user on kb.members (user_id)`,
  `grant delete on kb.members to tropism_server`,
  `alter table kb.api_tokens
    add column name text,
    add column created_by text,
    -- To the hour.
    add column last_used_at timestamptz,
    -- A browser's session ends with the token that it was opened with.
    add column session_of uuid references kb.api_tokens on delete cascade,
    add column is_session boolean not null default false`,
  `update kb.api_tokens set is_session = true where expires_at is not null`,
  `create index api_tokens_projects on kb.api_tokens using gin (project_ids) where revoked_at is null`,
  `create index api_tokens_sessions on kb.api_tokens (session_of) where session_of is not null`,
  `create index api_tokens_of_server on kb.api_tokens (id) where project_ids is null and revoked_at is null`,
  `create index api_tokens_over on kb.api_tokens ((coalesce(revoked_at, expires_at))) where revoked_at is not null or expires_at is not null`,
  `alter table kb.login_codes add column project_ids uuid[]`,
  `insert into kb.members (project_id, user_id, role)
    select project_id, user_id, (${ranks})[max(array_position(${ranks}, role))]
    from (select unnest(project_ids) as project_id, user_id, role from kb.api_tokens where revoked_at is null) tokens
    where exists (select 1 from kb.projects p where p.id = tokens.project_id)
    group by project_id, user_id
    on conflict do nothing`
]

const functions = [
  ...definer(
    "find_principal(token_hash text)",
    "table (user_id text, role text, roles jsonb, is_seen boolean)",
    `select t.user_id, t.role,
      case when t.project_ids is null then null else coalesce((
        select jsonb_object_agg(m.project_id, (${ranks})[least(array_position(${ranks}, t.role), array_position(${ranks}, m.role))])
        from kb.members m where m.user_id = t.user_id and m.project_id = any(t.project_ids)), '{}') end,
      coalesce(t.last_used_at > now() - interval '1 hour', false)
     from kb.api_tokens t
     where t.hash = token_hash and ${isGood("t")}
       and (t.session_of is null or exists (select 1 from kb.api_tokens o where o.id = t.session_of and ${isGood("o")}))`
  ),
  ...definer(
    "see_token(token_hash text)",
    "void",
    `update kb.api_tokens set last_used_at = now() where hash = token_hash`
  ),
  ...definer(
    "open_session(token_hash text, session_id uuid, session_hash text, max_age_seconds integer)",
    "boolean",
    `with made as (
      insert into kb.api_tokens (id, hash, user_id, role, project_ids, session_of, is_session, expires_at)
      select session_id, session_hash, t.user_id, t.role, t.project_ids, t.id, true,
        least(t.expires_at, now() + make_interval(secs => max_age_seconds))
      from kb.api_tokens t where t.hash = token_hash and not t.is_session and ${isGood("t")} returning id
    ) select exists (select 1 from made)`
  ),
  ...definer(
    "end_session(session_hash text)",
    "void",
    `update kb.api_tokens set revoked_at = now()
     where hash = session_hash and is_session and revoked_at is null`
  ),
  ...definer(
    "find_memberships(member_id text)",
    "jsonb",
    `select coalesce(jsonb_object_agg(project_id, role), '{}') from kb.members where user_id = member_id`
  ),
  // Of the project of this transaction; where there is none, of the server.
  ...definer(
    "save_member_code(code_hash text, member_id text, max_age_seconds integer)",
    "timestamptz",
    `insert into kb.login_codes (hash, user_id, project_ids, expires_at)
     select code_hash, m.user_id, array[m.project_id], now() + make_interval(secs => max_age_seconds)
     from kb.members m where m.project_id = ${currentProject} and m.user_id = member_id returning expires_at`
  ),
  ...definer(
    "make_token(token_id uuid, token_hash text, member_id text, token_role text, projects uuid[], token_name text, maker text, ends timestamptz)",
    "void",
    `insert into kb.api_tokens (id, hash, user_id, role, project_ids, name, created_by, expires_at)
     select token_id, token_hash, member_id, token_role, projects, token_name, maker, ends
     where ${currentProject} = any(projects) or (${currentProject} is null and projects is null)`
  ),
  // A token that reaches other projects, too, goes on reaching those.
  ...definer(
    "end_tokens(token_id uuid, member_id text)",
    "integer",
    `with ended as (
      update kb.api_tokens t set
        revoked_at = case when project_ids is null or cardinality(project_ids) = 1 then now() end,
        project_ids = case when cardinality(project_ids) = 1 then project_ids else array_remove(project_ids, ${currentProject}) end
      where ${isHere} and t.revoked_at is null
        and (token_id is null or t.id = token_id) and (member_id is null or t.user_id = member_id)
      returning 1
    ) select count(*)::integer from ended`
  ),
  ...definer(
    "forget_tokens(after_seconds double precision, most integer)",
    "integer",
    `with old as (
      select id from kb.api_tokens
      where (revoked_at is not null or expires_at is not null)
        and coalesce(revoked_at, expires_at) < now() - make_interval(secs => after_seconds)
      order by coalesce(revoked_at, expires_at) limit most for update skip locked
    ), gone as (
      delete from kb.api_tokens t using old where t.id = old.id returning 1
    ), codes as (
      delete from kb.login_codes where expires_at < now() - make_interval(secs => after_seconds) returning 1
    ) select (select count(*) from gone)::integer`
  ),
  `create or replace function kb.exchange_login_code(code_hash text, token_id uuid, token_hash text, max_age_seconds integer)
    returns boolean language sql security definer set search_path = kb, pg_temp as $$
    with used as (
      update kb.login_codes set used_at = now() where hash = code_hash and used_at is null and expires_at > now()
      returning user_id, project_ids
    ), session as (
      insert into kb.api_tokens (id, hash, user_id, role, project_ids, is_session, expires_at)
      select token_id, token_hash, user_id, 'admin', project_ids, true, now() + make_interval(secs => max_age_seconds) from used returning id
    )
    select exists (select 1 from session) $$`,
  `create view kb.tokens_here with (security_barrier) as
    select id, name, user_id, role, coalesce(project_ids, '{}') as project_ids, created_by, created_at, expires_at, last_used_at
    from kb.api_tokens t
    where ${isHere} and revoked_at is null and not is_session`,
  `grant select on kb.tokens_here to tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...functions]
