/**
 * The third migration: imports of files of lines, and which object a line without a key became.
 *
 * An import's row moves in the transaction that commits its lines, so it always
 * says exactly what the graph holds of the file. Objects may be purged, and what
 * is remembered of them goes with them.
 */

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

const tables = [
  `create table kb.imports (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    format text not null check (format in ('jsonl', 'csv')),
    name text,
    settings jsonb not null,
    status text not null check (status in ('running', 'finished', 'interrupted')),
    attempt integer not null default 1,
    attempt_token uuid not null,
    lines bigint not null default 0,
    bytes bigint not null default 0,
    digest text not null,
    counts jsonb not null,
    bad_lines jsonb not null default '[]',
    error_message text,
    created_by text not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
  )`,
  `create index imports_list on kb.imports (project_id, id)`,
  // What an object without a key is called in the files that it came from: the same line never makes it twice.
  `create table kb.imported_objects (
    project_id uuid not null references kb.projects,
    source_id uuid not null,
    object_id uuid not null references kb.graph_objects on delete cascade,
    primary key (project_id, source_id)
  )`,
  `create index imported_objects_object on kb.imported_objects (object_id)`
]

const policies = ["imports", "imported_objects"].flatMap((table) => [
  `alter table kb.${table} enable row level security`,
  `create policy project on kb.${table} using (project_id = (select ${currentProject})) with check (project_id = (select ${currentProject}))`,
  `grant select, insert, update on kb.${table} to tropism_server`
])

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...policies]
