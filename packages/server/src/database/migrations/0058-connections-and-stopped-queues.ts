/**
 * Two gauges that told nothing, or too much.
 *
 * On a PostgreSQL that others run the servers log in as the owner and work as another role, and no role but the owner's sees what
 * the owner's logins do. And a queue that a kill switch holds is no queue that workers are too few for.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create function kb.owners_connections() returns table (active bigint, idle bigint)
    language sql security definer set search_path = kb, pg_temp as $$
    select count(*) filter (where state = 'active'), count(*) filter (where state is distinct from 'active')
    from pg_stat_activity where datname = current_database() and usename = current_user $$`,
  `revoke all on function kb.owners_connections() from public`,
  `grant execute on function kb.owners_connections() to tropism_server`,
  `create or replace function kb.gauges() returns table (queued_runs bigint, oldest_queued_seconds float8, live_leases bigint, lapsed_leases bigint,
    question_runs bigint, sub_agent_runs bigint, undispatched_events bigint, oldest_event_seconds float8, waiting_entries bigint)
    language sql security definer set search_path = kb, pg_temp as $$
    select queued.count, queued.oldest, leases.live, leases.lapsed, resting.question, resting.sub_agents, events.count, events.oldest, entries.count
    from (select count(*), coalesce(extract(epoch from now() - min(run.created_at) filter (where held.project_id is null and not everywhere.stops)), 0)::float8 as oldest
        from agent_runs run
        left join kill_switches held on held.project_id = run.project_id
        cross join (select exists (select from kill_switches where project_id is null) as stops) everywhere
        where run.status = 'queued') queued,
      (select count(*) filter (where lease_expires_at >= now()) as live, count(*) filter (where lease_expires_at < now()) as lapsed
        from agent_runs where status = 'running') leases,
      (select count(*) filter (where pause_reason = 'question') as question, count(*) filter (where pause_reason = 'subAgents') as sub_agents
        from agent_runs where status = 'paused' and pause_reason in ('question', 'subAgents')) resting,
      (select count(*), coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as oldest
        from graph_events where dispatched_at is null) events,
      (select count(*) from agent_processing_log where status = 'pending' and run_id is null) entries $$`
]
