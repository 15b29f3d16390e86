/**
 * A context's row says whether a session is open in its log, so that whatever is written at rest begins one, and a sweep ends it.
 *
 * Only contexts of live runs had an open session until now.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.contexts add column is_session_open boolean not null default false`,
  `update kb.contexts context set is_session_open = true
   where exists (
     select 1 from kb.agent_runs run where run.project_id = context.project_id and run.context_name = context.name
       and run.status in ('queued', 'running', 'paused'))
   and (
     select type from kb.context_events event
     where event.project_id = context.project_id and event.context_name = context.name
       and event.type in ('SessionStartedEvent', 'SessionEndedEvent')
     order by number desc limit 1) = 'SessionStartedEvent'`,
  `create index contexts_in_session on kb.contexts (project_id, name) where is_session_open`,
  `create function kb.projects_with_resting_sessions(rested_seconds float8, as_of timestamptz) returns setof uuid
   language sql security definer set search_path = kb, pg_temp as $$
     select distinct context.project_id from kb.contexts context
     join kb.context_events said on said.project_id = context.project_id and said.context_name = context.name
       and said.number = context.last_event_number
     where context.is_session_open and context.open_turn_number is null and context.forgotten_at is null
       and said.created_at <= as_of - make_interval(secs => rested_seconds)
       and not exists (
         select 1 from kb.agent_runs run where run.project_id = context.project_id
           and run.context_name = context.name and run.status in ('queued', 'running')) $$`,
  `revoke all on function kb.projects_with_resting_sessions(float8, timestamptz) from public`,
  `grant execute on function kb.projects_with_resting_sessions(float8, timestamptz) to tropism_server`
]
