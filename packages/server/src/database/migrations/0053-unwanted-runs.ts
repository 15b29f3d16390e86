/**
 * A run is unwanted, too, when its parent completed and a run above that was cancelled or has failed.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // Projects in which a waiting run has used its time, or a run is alive that nobody above it wants any more.
  `create or replace function kb.projects_with_due_waits() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    select project_id from kb.agent_runs
    where status = 'paused' and pause_reason = 'subAgents' and deadline_at is not null and deadline_at < now()
    union
    select child.project_id from kb.agent_runs child
    join kb.agent_runs parent on parent.id = child.parent_run_id
    left join kb.tool_calls call on call.id = child.spawned_by
    where child.parent_run_id is not null and child.status in ('queued', 'running', 'paused')
      and (parent.status in ('cancelled', 'failed') or call.status = 'abandoned'
        or parent.status = 'completed' and exists (
          select from kb.agent_runs above where above.id = any(child.ancestors) and above.status in ('cancelled', 'failed'))) $$`
]
