/**
 * A tool call that waits for a client has a time by which it must be answered, and says who answered it.
 *
 * A run that waits for such a result is at work like one that waits for a person: `pause_reason` is `toolResult`.
 */

/** A run that works, or will without anybody's doing. */
const isAtWork = (run: string) =>
  `(${run}.status in ('queued', 'running') or ${run}.status = 'paused' and ${run}.pause_reason in ('question', 'subAgents', 'killSwitch', 'toolResult'))`

/** No run above it wants it any more. */
const isUnwanted = `(parent.status in ('cancelled', 'failed') or call.status = 'abandoned'
  or parent.status = 'completed' and exists (
    select from kb.agent_runs above where above.id = any(child.ancestors) and above.status in ('cancelled', 'failed')))`

const resting = (reason: string) =>
  `(select count(*) from (select from agent_runs where status = 'paused' and pause_reason = '${reason}' limit most) one)`

/** For how long that row of a table is due which is due for the longest, and which no kill switch holds. */
const overdue = (table: string, instant: string, condition: string) => `
  coalesce(extract(epoch from now() - (select ${instant} from ${table} one
    where ${instant} <= now() and ${condition}
      and not exists (select from kill_switches switch where switch.project_id is null or switch.project_id = one.project_id)
    order by ${instant} limit 1)), 0)::float8`

const isUnclaimed = `not exists (select from mcp_event_sources asked where asked.project_id = one.project_id and asked.claimed_until >= now())`

const calls = [
  `alter table kb.tool_calls add column answer_due_at timestamptz, add column answered_by text`,
  `create index tool_calls_awaited on kb.tool_calls (answer_due_at) where status = 'started' and answer_due_at is not null`,
  `create index tool_calls_of_clients on kb.tool_calls (project_id, context_name, call_id) where answer_due_at is not null`,
  // Projects in which a client has not answered a call in time.
  `create function kb.projects_with_overdue_calls() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
     select distinct project_id from kb.tool_calls where status = 'started' and answer_due_at <= now() $$`,
  `revoke all on function kb.projects_with_overdue_calls() from public`,
  `grant execute on function kb.projects_with_overdue_calls() to tropism_server`
]

const runs = [
  `drop index kb.agent_runs_scheduled`,
  `drop index kb.agent_runs_children_at_work`,
  `create index agent_runs_scheduled on kb.agent_runs (agent_id) where due_at is not null and ${isAtWork("agent_runs")}`,
  `create index agent_runs_children_at_work on kb.agent_runs (parent_run_id) where parent_run_id is not null and ${isAtWork("agent_runs")}`,
  `create or replace function kb.projects_with_due_schedules() returns setof uuid
   language sql security definer set search_path = kb, pg_temp as $$
     select project_id from (
       select project_id from kb.agent_schedules where next_fire_at <= now()
       union
       select project_id from kb.agent_schedules schedule
       where backlog_from is not null and not exists (
         select 1 from kb.agent_runs run
         where run.agent_id = schedule.agent_id and run.due_at is not null and ${isAtWork("run")})
     ) due
     where not exists (select 1 from kb.kill_switches switch where switch.project_id is null or switch.project_id = due.project_id)
   $$`,
  `create or replace function kb.projects_with_due_waits() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    select project_id from kb.agent_runs
    where status = 'paused' and pause_reason = 'subAgents' and deadline_at is not null and deadline_at < now()
    union
    select project_id from kb.agent_runs
    where status in ('queued', 'running') and deadline_at is not null and deadline_at < now() - interval '30 seconds'
    union
    select child.project_id from kb.agent_runs child
    join kb.agent_runs parent on parent.id = child.parent_run_id
    left join kb.tool_calls call on call.id = child.spawned_by
    where child.parent_run_id is not null and ${isAtWork("child")} and ${isUnwanted} $$`
]

const gauges = [
  // Its answer has one column more than before.
  `drop function kb.standing_gauges(integer, text)`,
  `create function kb.standing_gauges(most integer, others_reason text) returns table (step_limit_runs bigint, timeout_runs bigint,
    budget_runs bigint, kill_switch_runs bigint, tool_result_runs bigint, overdue_schedule_seconds float8, overdue_source_seconds float8,
    disabled_agents bigint, suspended_subscriptions bigint, project_switches bigint, server_switches bigint, database_bytes bigint)
    language sql security definer set search_path = kb, pg_temp as $$
    select ${["stepLimit", "timeout", "budget", "killSwitch", "toolResult"].map(resting).join(",\n      ")},
      ${overdue("agent_schedules", "next_fire_at", "true")},
      ${overdue("mcp_event_sources", "due_at", isUnclaimed)},
      (select count(*) from (select from agents
        where not enabled and deleted_at is null and disabled_reason is not null and disabled_reason <> others_reason limit most) one),
      (select count(*) from (select from event_subscriptions where status = 'suspended' limit most) one),
      (select count(*) from kill_switches where project_id is not null), (select count(*) from kill_switches where project_id is null),
      pg_database_size(current_database()) $$`,
  `revoke all on function kb.standing_gauges(integer, text) from public`,
  `grant execute on function kb.standing_gauges(integer, text) to tropism_server`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...calls, ...runs, ...gauges]
