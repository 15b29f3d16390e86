/**
 * How many runs rest, whatever they wait for: counted over all projects up to a bound, through an index of their own.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create index agent_runs_paused on kb.agent_runs (id) where status = 'paused'`,
  `create function kb.paused_runs(most integer) returns bigint
    language sql stable security definer set search_path = kb, pg_temp as $$
    select count(*) from (select from agent_runs where status = 'paused' limit most) paused $$`,
  `revoke all on function kb.paused_runs(integer) from public`,
  `grant execute on function kb.paused_runs(integer) to tropism_server`
]
