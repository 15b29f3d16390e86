/**
 * Whether relationships begin or end at an object, asked in the statement that has just locked it.
 *
 * A volatile function looks with a snapshot of its own, so it sees what was committed until the lock was granted.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create function kb.is_related(object uuid) returns boolean language plpgsql volatile
    set search_path = kb, pg_temp set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
  begin
    return exists (select from graph_relationships where from_id = object and deleted_at is null)
      or exists (select from graph_relationships where to_id = object and deleted_at is null);
  end $$`,
  `revoke all on function kb.is_related(uuid) from public`,
  `grant execute on function kb.is_related(uuid) to tropism_server`
]
