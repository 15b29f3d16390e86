/**
 * A context may be opened from a snapshot of what its log folds to, and not
 * every request to a model is a step of its run.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // What a request was for that was no step: to sum up what a window lets go of.
  `alter table kb.model_calls add column purpose text not null default 'step'`,
  // The newest of each context and version; anybody may lose them, for they only save reading.
  `create table kb.context_snapshots (
    project_id uuid not null,
    context_name text not null,
    -- Of the fold that made it: another one understands it differently.
    version integer not null,
    -- The last event that is folded into it.
    number integer not null,
    state jsonb not null,
    created_at timestamptz not null default now(),
    primary key (project_id, context_name, version),
    foreign key (project_id, context_name) references kb.contexts (project_id, name) on delete cascade
  )`,
  `alter table kb.context_snapshots enable row level security`,
  `create policy project on kb.context_snapshots using (project_id = ${currentProject}) with check (project_id = ${currentProject})`,
  `grant select, insert, update, delete on kb.context_snapshots to tropism_server`
]
