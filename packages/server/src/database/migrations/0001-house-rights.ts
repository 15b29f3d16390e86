/**
 * The rights of the first migration: who may see and write which rows.
 *
 * The server's own role owns nothing and is held by row-level security from the
 * first row on: with no project set, a query returns no row. The functions below
 * run with the owner's rights and answer ids or one credential, never another
 * project's content.
 */

/** Tables whose rows belong to a project. Each gets the same policy. */
const tenantTables = [
  "members",
  "feeds",
  "task_counters",
  "graph_objects",
  "graph_object_versions",
  "graph_relationships",
  "graph_events",
  "agents",
  "agent_versions",
  "agent_reactions",
  "agent_schedules",
  "agent_processing_log",
  "agent_runs",
  "budgets",
  "contexts",
  "context_events",
  "tool_calls",
  "tasks"
] as const

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

const policies = [
  ...tenantTables.flatMap((table) => [
    `alter table kb.${table} enable row level security`,
    `create policy project on kb.${table} using (project_id = (select ${currentProject})) with check (project_id = (select ${currentProject}))`
  ]),
  `alter table kb.projects enable row level security`,
  `create policy project on kb.projects using (id = (select ${currentProject})) with check (id = (select ${currentProject}))`,
  `alter table kb.api_tokens enable row level security`,
  `alter table kb.login_codes enable row level security`
]

/** A function that runs with the owner's rights and is open to the server's role alone. */
const definer = (signature: string, returns: string, body: string): ReadonlyArray<string> => [
  `create function kb.${signature} returns ${returns} language sql security definer set search_path = kb, pg_temp as $$ ${body} $$`,
  `revoke all on function kb.${signature} from public`
]

/** Walks an index from project to project, so that the cost follows the projects with work and not the work. */
const projectsOf = (table: string, condition: string): string => `
  with recursive found(project_id) as (
    (select project_id from kb.${table} where ${condition} order by project_id limit 1)
    union all
    select (select t.project_id from kb.${table} t where ${condition} and t.project_id > found.project_id order by t.project_id limit 1)
    from found where found.project_id is not null
  )
  select project_id from found where project_id is not null`

const crossing = [
  ...definer("projects_with_events()", "setof uuid", projectsOf("graph_events", "dispatched_at is null")),
  ...definer("projects_with_queued_runs()", "setof uuid", projectsOf("agent_runs", "status = 'queued'")),
  ...definer(
    "projects_with_lapsed_runs()",
    "setof uuid",
    `select distinct project_id from kb.agent_runs where status = 'running' and lease_expires_at < now()`
  ),
  ...definer(
    "lapse_leases()",
    "void",
    `update kb.agent_runs set lease_expires_at = now() where status = 'running' and lease_expires_at > now()`
  ),
  ...definer(
    "projects_with_stuck_entries(after_seconds double precision)",
    "setof uuid",
    `select distinct project_id from kb.agent_processing_log
     where status = 'processing' and started_at < now() - make_interval(secs => after_seconds)`
  ),
  ...definer(
    "projects_with_due_schedules()",
    "setof uuid",
    `select distinct project_id from kb.agent_schedules where next_fire_at <= now()`
  ),
  ...definer(
    "list_projects(ids uuid[], before uuid, most integer)",
    "setof kb.projects",
    `select * from kb.projects where (ids is null or id = any(ids)) and (before is null or id < before) order by id desc limit most`
  ),
  ...definer(
    "find_token(token_hash text)",
    "table (user_id text, role text, project_ids uuid[])",
    `select user_id, role, project_ids from kb.api_tokens
     where hash = token_hash and revoked_at is null and (expires_at is null or expires_at > now())`
  ),
  ...definer(
    "save_admin_token(token_id uuid, token_hash text, owner_id text)",
    "void",
    `insert into kb.api_tokens (id, hash, user_id, role) values (token_id, token_hash, owner_id, 'admin') on conflict (hash) do nothing`
  ),
  ...definer(
    "save_login_code(code_hash text, owner_id text, max_age_seconds integer)",
    "void",
    `insert into kb.login_codes (hash, user_id, expires_at) values (code_hash, owner_id, now() + make_interval(secs => max_age_seconds))`
  ),
  ...definer(
    "exchange_login_code(code_hash text, token_id uuid, token_hash text, max_age_seconds integer)",
    "boolean",
    `with used as (
      update kb.login_codes set used_at = now() where hash = code_hash and used_at is null and expires_at > now() returning user_id
    ), session as (
      insert into kb.api_tokens (id, hash, user_id, role, expires_at)
      select token_id, token_hash, user_id, 'admin', now() + make_interval(secs => max_age_seconds) from used returning id
    )
    select exists (select 1 from session)`
  )
]

const grants = [
  `grant usage on schema kb to tropism_server`,
  `grant select, insert, update on all tables in schema kb to tropism_server`,
  `revoke all on kb.api_tokens, kb.login_codes from tropism_server`,
  `grant delete on kb.agent_reactions, kb.agent_schedules, kb.agent_processing_log to tropism_server`,
  `grant execute on all functions in schema kb to tropism_server`
]

/** Policies, functions that cross projects, and grants, in order. */
export const rights: ReadonlyArray<string> = [...policies, ...crossing, ...grants]
