/**
 * What waits for people, and what an operator should look at: counts over all projects, each up to a bound.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create function kb.bounded_gauges(most integer) returns table (dead_letters bigint, pending_tasks bigint, oldest_processing_seconds float8)
    language sql security definer set search_path = kb, pg_temp as $$
    select dead.count, pending.count, processing.oldest
    from (select count(*) from (select from agent_processing_log where dead_lettered_at is not null limit most) letters) dead,
      (select count(*) from (select from tasks where status = 'pending' and run_id is not null limit most) open) pending,
      (select coalesce(extract(epoch from now() - min(started_at)), 0)::float8 as oldest
        from agent_processing_log where status = 'processing') processing $$`,
  `revoke all on function kb.bounded_gauges(integer) from public`,
  `grant execute on function kb.bounded_gauges(integer) to tropism_server`
]
