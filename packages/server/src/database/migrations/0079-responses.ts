/**
 * A response of OpenAI's Responses API is a place in the log of a context, so that its id can be read, cancelled and gone on from.
 *
 * The log has what was said; a row has the place, and what the request said of the response itself.
 */

const currentProject = `(select nullif(current_setting('tropism.project', true), '')::uuid)`

const tables = [
  `create table kb.responses (
    project_id uuid not null,
    id uuid not null,
    context_name text not null,
    -- Where the log ended before the request, and the event after which the answer comes.
    begins_after integer not null,
    number integer not null,
    -- The request answered a question in a turn that was open.
    is_answer boolean not null,
    -- False: the id names nothing. The row stays, because the response before it ends where this one begins.
    is_stored boolean not null,
    terms jsonb not null,
    created_at timestamptz not null default now(),
    primary key (project_id, id),
    foreign key (project_id, context_name) references kb.contexts on delete cascade
  )`,
  `create index responses_places on kb.responses (project_id, context_name, number)`,
  `alter table kb.responses enable row level security`,
  `create policy project on kb.responses using (project_id = ${currentProject}) with check (project_id = ${currentProject})`,
  `grant select, insert, update on kb.responses to tropism_server`
]

/** As in migration 44; and responses are forgotten with what was said, and a fork that was forgotten needs no log any more. */
const forgetBrought = `
  create or replace function kb.forget_brought_contexts(wait_seconds double precision, most integer) returns integer
    language sql security definer set search_path = kb, pg_temp as $$
    with due as (
      select project_id, context_name from kb.brought_contexts
      where due_at <= now() order by due_at limit most for update skip locked
    ), needed as (
      select project_id, context_name from due
      where exists (select 1 from kb.agent_runs run where run.project_id = due.project_id and run.context_name = due.context_name
          and run.status in ('queued', 'running', 'paused'))
        or exists (select 1 from kb.contexts fork where fork.project_id = due.project_id and fork.forked_from = due.context_name
          and fork.forgotten_at is null)
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
    ), answers as (
      delete from kb.responses response using gone
      where response.project_id = gone.project_id and response.context_name = gone.context_name
    ), left_over as (
      update kb.contexts context set forgotten_at = now(), last_event_number = 0, open_turn_number = null from gone
      where context.project_id = gone.project_id and context.name = gone.context_name
    )
    select count(*)::int from gone $$`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, forgetBrought]
