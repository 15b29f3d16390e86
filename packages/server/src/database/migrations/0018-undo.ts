/**
 * Undo: what a run, an agent's version or a chain did is taken back by a plan
 * that a person approves, and the events of that say whose work they undo.
 */

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // The agents whose changes an event takes back.
  `alter table kb.graph_events add column undoes uuid[] not null default '{}'`,
  // What a run did, and which runs a version of an agent had.
  `create index graph_events_run on kb.graph_events (run_id) where run_id is not null`,
  `create index agent_runs_version on kb.agent_runs (agent_id, agent_version)`,
  `create index tasks_run_open on kb.tasks (run_id) where status = 'pending'`,
  // One plan for one cause waits at a time.
  `create unique index tasks_one_undo on kb.tasks (project_id, subject) where type = 'undo' and status = 'pending'`,
  // A plan: what becomes of each object and relationship. It names versions and keeps no content, so a purge leaves nothing here.
  `create table kb.undo_items (
    project_id uuid not null references kb.projects,
    task_id uuid not null references kb.tasks,
    revision integer not null,
    place integer not null,
    entity_type text not null check (entity_type in ('graphObject', 'relationship')),
    entity_id uuid not null,
    object_type text not null,
    action text not null check (action in ('delete', 'restore', 'update', 'none')),
    status text not null check (status in ('ready', 'conflict', 'unneeded')),
    reason text not null,
    version integer not null,
    properties jsonb not null,
    wrote jsonb not null,
    events uuid[] not null,
    left_out boolean not null default false,
    primary key (task_id, revision, place),
    unique (task_id, revision, entity_id)
  )`,
  `alter table kb.undo_items enable row level security`,
  `create policy project on kb.undo_items using (project_id = (select ${currentProject})) with check (project_id = (select ${currentProject}))`,
  `grant select, insert on kb.undo_items to tropism_server`,
  `grant update (left_out) on kb.undo_items to tropism_server`
]
