/**
 * A restore may write a row before the row of its own table that it refers to.
 *
 * A run may have a smaller id than the run that spawned it, which another server
 * made by its own clock, and a fork may be older than what it was forked from: a
 * batch of a restore that ended between the two was refused. Elsewhere both are
 * checked at once, as before.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // Both change the catalog alone: no row is read.
  `alter table kb.agent_runs alter constraint agent_runs_parent_run_id_fkey deferrable initially immediate`,
  `alter table kb.contexts alter constraint contexts_fork deferrable initially immediate`,
  `create or replace function kb.begin_restore(new_name text, new_settings jsonb, digest text, dumped_at timestamptz, restorer text)
  returns void language plpgsql security definer set search_path = kb, pg_temp as $$
  declare
    project uuid := nullif(current_setting('tropism.project', true), '')::uuid;
  begin
    set constraints agent_runs_parent_run_id_fkey, contexts_fork deferred;
    insert into projects (id, name, created_by, settings) values (project, new_name, restorer, new_settings);
    insert into restores (project_id, dump_digest, taken_at, restored_by) values (project, digest, dumped_at, restorer);
  end $$`
]
