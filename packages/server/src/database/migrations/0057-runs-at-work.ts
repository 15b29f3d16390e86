/**
 * What goes on by itself is told from what rests until a person says something.
 *
 * A schedule's run that waits for an answer, for runs that it spawned or for a kill switch has not ended, so the next instant does
 * not overlap it. And who looks each second for runs that nobody wants any more looks past those that rest at a limit: they do
 * nothing, and there may be as many as there ever were sub-runs.
 */

/** A run that works, or will without anybody's doing. */
const isAtWork = (run: string) =>
  `(${run}.status in ('queued', 'running') or ${run}.status = 'paused' and ${run}.pause_reason in ('question', 'subAgents', 'killSwitch'))`

/** Nobody above it wants it any more: its parent ended badly, does not wait for it, or completed below a run that ended badly. */
const isUnwanted = `(parent.status in ('cancelled', 'failed') or call.status = 'abandoned'
  or parent.status = 'completed' and exists (
    select from kb.agent_runs above where above.id = any(child.ancestors) and above.status in ('cancelled', 'failed')))`

const children = `kb.agent_runs child
  join kb.agent_runs parent on parent.id = child.parent_run_id
  left join kb.tool_calls call on call.id = child.spawned_by`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create index agent_runs_scheduled on kb.agent_runs (agent_id) where due_at is not null and ${isAtWork("agent_runs")}`,
  `create index agent_runs_children_at_work on kb.agent_runs (parent_run_id) where parent_run_id is not null and ${isAtWork("agent_runs")}`,
  `create index agent_runs_children_at_rest on kb.agent_runs (parent_run_id)
    where parent_run_id is not null and status = 'paused' and pause_reason in ('stepLimit', 'timeout', 'budget')`,
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
  // Projects in which a waiting run has used its time, or a run is at work that nobody above it wants any more.
  `create or replace function kb.projects_with_due_waits() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    select project_id from kb.agent_runs
    where status = 'paused' and pause_reason = 'subAgents' and deadline_at is not null and deadline_at < now()
    union
    select child.project_id from ${children}
    where child.parent_run_id is not null and ${isAtWork("child")} and ${isUnwanted} $$`,
  // Projects in which one rests at a limit that nobody above it wants any more.
  `create function kb.projects_with_unwanted_rests() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    select distinct child.project_id from ${children}
    where child.parent_run_id is not null and child.status = 'paused' and child.pause_reason in ('stepLimit', 'timeout', 'budget')
      and ${isUnwanted} $$`,
  `revoke all on function kb.projects_with_unwanted_rests() from public`,
  `grant execute on function kb.projects_with_unwanted_rests() to tropism_server`
]
