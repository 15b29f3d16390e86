/**
 * A context may begin as a fork of another: it shares the log up to an event,
 * without a copy of it. Files that agents are shown are kept by their digests.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.contexts
    add column forked_from text,
    -- The number of the last event that it shares; its own begin behind it.
    add column forked_at integer,
    add constraint contexts_fork foreign key (project_id, forked_from) references kb.contexts (project_id, name),
    add constraint contexts_fork_whole check ((forked_from is null) = (forked_at is null))`,
  `create table kb.attachments (
    project_id uuid not null references kb.projects,
    digest text not null,
    mime_type text not null,
    size_bytes integer not null,
    bytes bytea not null,
    created_at timestamptz not null default now(),
    primary key (project_id, digest)
  )`,
  // Pictures are compressed already.
  `alter table kb.attachments alter column bytes set storage external`,
  `alter table kb.attachments enable row level security`,
  `create policy project on kb.attachments using (project_id = ${currentProject}) with check (project_id = ${currentProject})`,
  `grant select, insert on kb.attachments to tropism_server`
]
