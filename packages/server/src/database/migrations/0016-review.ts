/**
 * Review: what a suggestion is about, who is asked, how long it waits, and what
 * it said before it was refined; and todos, which are their owner's own.
 *
 * Suggestions that wait from before have no subject and are refined by nothing.
 */

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // `owner` is '' for all that is the project's; a todo counts among those of its owner. `seen_position` is the place that
  // the feed had come to when a suggestion was made: what has none of the places up to it was committed later, or just before.
  `alter table kb.tasks
    alter column agent_id drop not null,
    alter column run_id drop not null,
    alter column tool_call_id drop not null,
    add column owner text not null default '',
    add column assignee text,
    add column agent_version integer,
    add column subject text,
    add column about uuid[] not null default '{}',
    add column revision integer not null default 1,
    add column refined_at timestamptz,
    add column expires_at timestamptz,
    add column seen_position bigint,
    add column rerun_id uuid,
    add column deleted_at timestamptz`,
  `alter table kb.agents add column review_policy jsonb`,
  `update kb.tasks task set agent_version = run.agent_version from kb.agent_runs run where run.id = task.run_id`,
  `alter table kb.tasks drop constraint tasks_project_id_number_key`,
  `create unique index tasks_number on kb.tasks (project_id, owner, number)`,
  // What an agent has open, and what of it was rejected, by what it is about.
  `create index tasks_open on kb.tasks (agent_id, subject, id) where status = 'pending' and subject is not null`,
  `create index tasks_rejected on kb.tasks (agent_id, subject, digest, id) where status = 'rejected' and subject is not null`,
  `create index tasks_expiring on kb.tasks (expires_at) where status = 'pending' and expires_at is not null`,
  `create index tasks_assigned on kb.tasks (project_id, assignee, status, id) where assignee is not null`,
  // What a run has read, newest first.
  `create index tool_calls_reading on kb.tool_calls (run_id, id) where reads <> '[]'`,
  `create index tasks_of_agent on kb.tasks (agent_id, status, id)`,
  `create table kb.todo_counters (
    project_id uuid not null references kb.projects,
    owner text not null,
    last_number bigint not null default 0,
    primary key (project_id, owner)
  )`,
  // What a suggestion said before it was refined.
  `create table kb.task_revisions (
    project_id uuid not null references kb.projects,
    task_id uuid not null references kb.tasks,
    revision integer not null,
    payload jsonb not null,
    digest text not null,
    run_id uuid not null,
    tool_call_id uuid not null,
    agent_version integer not null,
    base_version integer,
    evidence jsonb not null,
    created_at timestamptz not null,
    primary key (task_id, revision)
  )`,
  // What was rejected of an agent about each object, in the order in which its runs hear of it. No index over `about` would
  // do: the policy lets no operator of arrays through to one.
  `create table kb.rejections (
    project_id uuid not null references kb.projects,
    agent_id uuid not null references kb.agents,
    object_id uuid not null,
    rejected_at timestamptz not null,
    task_id uuid not null references kb.tasks,
    primary key (agent_id, object_id, rejected_at, task_id)
  )`,
  ...["todo_counters", "task_revisions", "rejections"].flatMap((table) => [
    `alter table kb.${table} enable row level security`,
    `create policy project on kb.${table} using (project_id = (select ${currentProject})) with check (project_id = (select ${currentProject}))`
  ]),
  // One function looks across projects: it says where the time of a suggestion is up.
  `create function kb.projects_with_expired_tasks() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    select distinct project_id from kb.tasks where status = 'pending' and expires_at is not null and expires_at <= now() $$`,
  `revoke all on function kb.projects_with_expired_tasks() from public`,
  `grant execute on function kb.projects_with_expired_tasks() to tropism_server`,
  `grant select, insert, update on kb.todo_counters to tropism_server`,
  `grant select, insert on kb.task_revisions, kb.rejections to tropism_server`
]
