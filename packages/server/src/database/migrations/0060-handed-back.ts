/**
 * A run that its worker handed back has no attempt any more that a kill switch could take out of the count.
 */

const isStopped =
  "exists (select 1 from kb.kill_switches switch where switch.project_id is null or switch.project_id = run.project_id)"

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // A switch stops the clock of what it stops, and of what waits to go on; whoever goes on has the time that was left.
  `create or replace function kb.follow_kill_switches() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    with stopped as (
      update kb.agent_runs run
      set status = 'paused', pause_reason = 'killSwitch', attempt_token = null, lease_expires_at = null,
        attempt = attempt - case when attempt_token is null then 0 else 1 end,
        time_left_ms = (extract(epoch from deadline_at - now()) * 1000)::bigint, deadline_at = null
      where status = 'running' and ${isStopped}
      returning id
    ), held as (
      update kb.agent_runs run
      set time_left_ms = (extract(epoch from deadline_at - now()) * 1000)::bigint, deadline_at = null
      where (status = 'queued' or (status = 'paused' and pause_reason = 'subAgents')) and deadline_at is not null and ${isStopped}
    ), resumed as (
      update kb.agent_runs run set status = 'queued', pause_reason = null
      where status = 'paused' and pause_reason = 'killSwitch' and not ${isStopped}
      returning id
    ), ticking as (
      update kb.agent_runs run
      set deadline_at = now() + make_interval(secs => time_left_ms::float8 / 1000), time_left_ms = null
      where status = 'paused' and pause_reason = 'subAgents' and time_left_ms is not null and not ${isStopped}
    )
    select id from stopped union all select id from resumed $$`
]
