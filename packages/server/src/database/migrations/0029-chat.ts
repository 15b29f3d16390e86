/**
 * The newest run of a conversation is found by an index, and keys of requests are forgotten.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  // Only what people said began these: what reacts has a context of its own each time.
  `create index agent_runs_of_conversations on kb.agent_runs (project_id, context_name, id) where trigger_type = 'context'`,
  `create index idempotency_keys_age on kb.idempotency_keys (created_at)`,
  // The sweep looks across projects, which the server's own role cannot.
  `create function kb.forget_idempotency_keys(keep_seconds double precision, most integer) returns integer
    language sql security definer set search_path = kb, pg_temp as $$
    with old as (
      select project_id, user_id, route, key from kb.idempotency_keys
      where created_at < now() - make_interval(secs => keep_seconds)
      order by created_at limit most for update skip locked
    ), forgotten as (
      delete from kb.idempotency_keys kept using old
      where kept.project_id = old.project_id and kept.user_id = old.user_id and kept.route = old.route and kept.key = old.key
      returning 1
    )
    select count(*)::int from forgotten $$`,
  `revoke all on function kb.forget_idempotency_keys(double precision, integer) from public`,
  `grant execute on function kb.forget_idempotency_keys(double precision, integer) to tropism_server`
]
