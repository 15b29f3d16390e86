/**
 * What stands in somebody's own context is told to nobody else: its passages are
 * not recalled elsewhere, and its files are read by those who may see them.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // Of the context; null is the project's.
  `alter table kb.passages add column owner text`,
  `create or replace view kb.project_passages as
    select agent_id, context_name, number, created_at, words, owner from kb.passages where project_id = ${currentProject}`,
  `create table kb.attachment_readers (
    project_id uuid not null,
    digest text not null,
    -- A user; '' is everybody in the project.
    reader text not null,
    primary key (project_id, digest, reader),
    foreign key (project_id, digest) references kb.attachments
  )`,
  `insert into kb.attachment_readers select project_id, digest, '' from kb.attachments`,
  `alter table kb.attachment_readers enable row level security`,
  `create policy project on kb.attachment_readers using (project_id = ${currentProject}) with check (project_id = ${currentProject})`,
  `grant select, insert on kb.attachment_readers to tropism_server`
]
