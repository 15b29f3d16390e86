/**
 * Earned autonomy: what people said of an agent version's suggestions, and what it may do for that without asking.
 *
 * Decisions from before are not counted: nobody who took them meant to promote.
 */

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // What was counted before the last revert or reversal stays in the record and does not promote again.
  `create table kb.review_records (
    project_id uuid not null references kb.projects,
    agent_id uuid not null references kb.agents,
    agent_version integer not null,
    operation text not null,
    object_type text not null,
    accepted integer not null default 0,
    edited integer not null default 0,
    rejected integer not null default 0,
    expired integer not null default 0,
    reverted integer not null default 0,
    accepted_before integer not null default 0,
    edited_before integer not null default 0,
    rejected_before integer not null default 0,
    updated_at timestamptz not null default now(),
    primary key (agent_id, agent_version, operation, object_type)
  )`,
  `create index review_records_newest on kb.review_records (agent_id, agent_version, updated_at desc, operation, object_type)`,
  `create table kb.promotions (
    id uuid primary key,
    project_id uuid not null references kb.projects,
    agent_id uuid not null,
    agent_version integer not null,
    operation text not null,
    object_type text not null,
    reviews integer not null,
    acceptance_rate double precision not null,
    task_id uuid not null,
    promoted_at timestamptz not null default now(),
    ended_at timestamptz,
    end_reason text check (end_reason in ('reverted', 'reversed')),
    ended_by text,
    note text,
    foreign key (agent_id, agent_version, operation, object_type) references kb.review_records,
    check ((ended_at is null) = (end_reason is null))
  )`,
  // One stands at a time: of two decisions that both are enough, one promotes.
  `create unique index promotions_standing on kb.promotions (agent_id, agent_version, operation, object_type) where ended_at is null`,
  `create index promotions_of_version on kb.promotions (agent_id, agent_version, id)`,
  // By which promotion a call was made that its confidence alone would not have let be made.
  `alter table kb.tool_calls add column promotion_id uuid references kb.promotions`,
  ...["review_records", "promotions"].flatMap((table) => [
    `alter table kb.${table} enable row level security`,
    `create policy project on kb.${table} using (project_id = (select ${currentProject})) with check (project_id = (select ${currentProject}))`,
    `grant select, insert, update on kb.${table} to tropism_server`
  ])
]
