/**
 * A conversation belongs to one person, and so may a context; what was asked for
 * under an idempotency key is found again by whoever asks again.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const tables = [
  // Null is the project's: everybody in it may speak there.
  `alter table kb.contexts add column owner text`,
  `create table kb.conversations (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    user_id text not null,
    agent_id uuid not null references kb.agents,
    context_name text not null,
    title text not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    deleted_at timestamptz,
    unique (project_id, context_name),
    foreign key (project_id, context_name) references kb.contexts
  )`,
  `create index conversations_list on kb.conversations (project_id, user_id, updated_at desc, id desc)
    where deleted_at is null`,
  // What came of a request, kept in the transaction that did it.
  `create table kb.idempotency_keys (
    project_id uuid not null references kb.projects,
    user_id text not null,
    route text not null,
    key text not null,
    -- Of the request: under one key there is one.
    digest text not null,
    outcome jsonb not null,
    created_at timestamptz not null default now(),
    primary key (project_id, user_id, route, key)
  )`,
  `create index idempotency_keys_old on kb.idempotency_keys (project_id, created_at)`
]

const rights = [
  ...["conversations", "idempotency_keys"].flatMap((table) => [
    `alter table kb.${table} enable row level security`,
    `create policy project on kb.${table} using (project_id = ${currentProject}) with check (project_id = ${currentProject})`
  ]),
  `grant select, insert, update on kb.conversations to tropism_server`,
  `grant select, insert, delete on kb.idempotency_keys to tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...rights]
