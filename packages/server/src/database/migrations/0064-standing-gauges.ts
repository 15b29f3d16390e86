/**
 * How long a run waits is counted from when it was queued last, and what stands still without a sound has gauges.
 *
 * A run that goes on after a question or a limit was made long ago, and a
 * backtest's runs wait because nobody waits for them: neither says that workers
 * are too few.
 */

const queuedAt = [
  // What was queued before this migration counts from it: the table is not written anew.
  `alter table kb.agent_runs add column queued_at timestamptz not null default now()`,
  `create function kb.note_queued() returns trigger language plpgsql as $$
  begin
    new.queued_at := now();
    return new;
  end $$`,
  // Whichever verb queues a run again; one that is made queued has the column's default.
  `create trigger note_queued before update of status on kb.agent_runs
    for each row when (new.status = 'queued' and old.status <> 'queued') execute function kb.note_queued()`,
  `create or replace function kb.gauges() returns table (queued_runs bigint, oldest_queued_seconds float8, live_leases bigint, lapsed_leases bigint,
    question_runs bigint, sub_agent_runs bigint, undispatched_events bigint, oldest_event_seconds float8, waiting_entries bigint)
    language sql security definer set search_path = kb, pg_temp as $$
    select queued.count, queued.oldest, leases.live, leases.lapsed, resting.question, resting.sub_agents, events.count, events.oldest, entries.count
    from (select count(*), coalesce(extract(epoch from now() - min(run.queued_at)
            filter (where run.backtest_id is null and held.project_id is null and not everywhere.stops)), 0)::float8 as oldest
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

const resting = (reason: string) =>
  `(select count(*) from (select from agent_runs where status = 'paused' and pause_reason = '${reason}' limit most) one)`

const standing = [
  // One in the place of two, of which one knew no reasons and the other not all.
  `drop index kb.agent_runs_resting`,
  `drop index kb.agent_runs_paused`,
  `create index agent_runs_resting on kb.agent_runs (pause_reason) where status = 'paused'`,
  `create index agents_disabled on kb.agents (id) where not enabled and deleted_at is null and disabled_reason is not null`,
  // Schedules are due as kb.projects_with_due_schedules says; agents that are not enabled have none. An agent that rests for another's reason did not disable itself.
  `create function kb.standing_gauges(most integer, others_reason text) returns table (step_limit_runs bigint, timeout_runs bigint,
    budget_runs bigint, kill_switch_runs bigint, overdue_schedule_seconds float8, disabled_agents bigint)
    language sql security definer set search_path = kb, pg_temp as $$
    select ${["stepLimit", "timeout", "budget", "killSwitch"].map(resting).join(",\n      ")},
      coalesce(extract(epoch from now() - (select next_fire_at from agent_schedules schedule
        where next_fire_at <= now()
          and not exists (select from kill_switches switch where switch.project_id is null or switch.project_id = schedule.project_id)
        order by next_fire_at limit 1)), 0)::float8,
      (select count(*) from (select from agents
        where not enabled and deleted_at is null and disabled_reason is not null and disabled_reason <> others_reason limit most) one) $$`,
  `revoke all on function kb.standing_gauges(integer, text) from public`,
  `grant execute on function kb.standing_gauges(integer, text) to tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...queuedAt, ...standing]
