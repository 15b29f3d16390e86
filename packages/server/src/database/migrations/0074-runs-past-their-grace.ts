/**
 * Runs that are past their deadline and their grace are found whoever holds them.
 *
 * A run whose worker died, stands still or waits for something is paused by any server that looks, and not only once its lease is over.
 * The grace is `runLimits.graceMs`.
 */

const isAtWork = `(child.status in ('queued', 'running')
  or child.status = 'paused' and child.pause_reason in ('question', 'subAgents', 'killSwitch'))`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create index agent_runs_deadlines on kb.agent_runs (deadline_at) where status in ('queued', 'running') and deadline_at is not null`,
  // Projects in which a waiting run has used its time, a run is past its grace, or one is at work that nobody above it wants any more.
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
    where child.parent_run_id is not null and ${isAtWork}
      and (parent.status in ('cancelled', 'failed') or call.status = 'abandoned'
        or parent.status = 'completed' and exists (
          select from kb.agent_runs above where above.id = any(child.ancestors) and above.status in ('cancelled', 'failed'))) $$`
]
