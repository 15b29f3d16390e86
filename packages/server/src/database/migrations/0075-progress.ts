/**
 * A run says when anything last came of its attempt, and a run or entry that failed says why in one word.
 *
 * `progress_of` is the attempt that `progressed_at` is about: a server of the version before extends leases and says nothing of progress.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.agent_runs add column progressed_at timestamptz, add column progress_of uuid, add column failure_reason text`,
  `alter table kb.agent_processing_log add column failure_reason text`,
  // Projects with runs at work of which nothing came for so long, as of their last heartbeat.
  `create function kb.projects_with_silent_runs(lease_seconds double precision, after_seconds double precision) returns setof uuid
   language sql security definer set search_path = kb, pg_temp as $$
     select distinct project_id from kb.agent_runs
     where status = 'running' and lease_expires_at > now() and progress_of = attempt_token
       and progressed_at < lease_expires_at - make_interval(secs => lease_seconds + after_seconds) $$`,
  `revoke all on function kb.projects_with_silent_runs(double precision, double precision) from public`,
  `grant execute on function kb.projects_with_silent_runs(double precision, double precision) to tropism_server`
]
