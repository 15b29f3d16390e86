/**
 * Contexts of clients that keep their conversations themselves end, and no
 * occurrence is forgotten while its source could tell it again.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const tables = [
  // A context of which nothing is left but its name, its agent and its owner: what its runs say is theirs stays so.
  `alter table kb.contexts add column forgotten_at timestamptz`,
  `create table kb.brought_contexts (
    project_id uuid not null,
    context_name text not null,
    -- From when on nobody needs it; later each time that somebody speaks there.
    due_at timestamptz not null,
    primary key (project_id, context_name),
    foreign key (project_id, context_name) references kb.contexts
  )`,
  `create index brought_contexts_due on kb.brought_contexts (due_at)`,
  `insert into kb.brought_contexts (project_id, context_name, due_at)
    select project_id, name, now() + interval '31 days' from kb.contexts
    where name like 'completion-%' and owner is not null and forked_from is null`,
  `create index contexts_forks on kb.contexts (project_id, forked_from) where forked_from is not null`,
  // No page of the list reads what is not in it.
  `drop index kb.contexts_list`,
  `drop index kb.contexts_list_agent`,
  `create index contexts_list on kb.contexts (project_id, created_at desc, name desc) where forgotten_at is null`,
  `create index contexts_list_agent on kb.contexts (project_id, agent_id, created_at desc, name desc) where forgotten_at is null`
]

/**
 * Forgets what was said in contexts that are due. Whoever speaks or forks there holds the row and moves it on, so a row that is
 * taken here has nobody; one with a live run, or whose events others read from a fork, waits.
 */
const forgetBrought = `
  create function kb.forget_brought_contexts(wait_seconds double precision, most integer) returns integer
    language sql security definer set search_path = kb, pg_temp as $$
    with due as (
      select project_id, context_name from kb.brought_contexts
      where due_at <= now() order by due_at limit most for update skip locked
    ), needed as (
      select project_id, context_name from due
      where exists (select 1 from kb.agent_runs run where run.project_id = due.project_id and run.context_name = due.context_name
          and run.status in ('queued', 'running', 'paused'))
        or exists (select 1 from kb.contexts fork where fork.project_id = due.project_id and fork.forked_from = due.context_name)
    ), waiting as (
      update kb.brought_contexts brought set due_at = now() + make_interval(secs => wait_seconds) from needed
      where brought.project_id = needed.project_id and brought.context_name = needed.context_name
    ), gone as (
      delete from kb.brought_contexts brought using (select * from due except select * from needed) done
      where brought.project_id = done.project_id and brought.context_name = done.context_name
      returning brought.project_id, brought.context_name
    ), events as (
      delete from kb.context_events event using gone
      where event.project_id = gone.project_id and event.context_name = gone.context_name
    ), snapshots as (
      delete from kb.context_snapshots snapshot using gone
      where snapshot.project_id = gone.project_id and snapshot.context_name = gone.context_name
    ), words as (
      delete from kb.passages passage using gone
      where passage.project_id = gone.project_id and passage.context_name = gone.context_name
    ), left_over as (
      update kb.contexts context set forgotten_at = now(), last_event_number = 0, open_turn_number = null from gone
      where context.project_id = gone.project_id and context.name = gone.context_name
    )
    select count(*)::int from gone $$`

/** As before; and one that is said to have happened later than it was told stays until its source would be passed over. */
const forgetOccurrences = `
  create or replace function kb.forget_occurrences(keep_seconds double precision, most integer) returns integer
    language sql security definer set search_path = kb, pg_temp as $$
    with old as (
      select id from kb.mcp_occurrences occurrence
      where created_at < now() - make_interval(secs => keep_seconds)
        and happened_at < now() - make_interval(secs => keep_seconds)
        and not exists (select 1 from kb.agent_processing_log entry where entry.occurrence_id = occurrence.id)
      order by created_at limit most for update skip locked
    ), forgotten as (
      delete from kb.mcp_occurrences occurrence using old where occurrence.id = old.id returning 1
    )
    select count(*)::int from forgotten $$`

const rights = [
  `alter table kb.brought_contexts enable row level security`,
  `create policy project on kb.brought_contexts using (project_id = ${currentProject}) with check (project_id = ${currentProject})`,
  `grant select, insert, update on kb.brought_contexts to tropism_server`,
  `revoke all on function kb.forget_brought_contexts(double precision, integer) from public`,
  `grant execute on function kb.forget_brought_contexts(double precision, integer) to tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, forgetBrought, forgetOccurrences, ...rights]
