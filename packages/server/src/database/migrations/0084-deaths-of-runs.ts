/**
 * Tells a run that broke its server from those that only died with it.
 *
 * `deaths` counts the attempts that ended with their server since the step in `deaths_step`; an older count does not hold. `shares_blame`
 * says of the present attempt whether others would be as guilty of the server's death; null where its end is none.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `alter table kb.agent_runs add column deaths integer not null default 0, add column deaths_step integer not null default 0,
    add column shares_blame boolean`,
  // A run at work that died once before is a suspect when its lease runs out.
  `create index agent_runs_suspects on kb.agent_runs (project_id, deaths, id) where deaths > 0 and status in ('queued', 'running')`,
  `create function kb.projects_with_suspects(suspect_deaths integer) returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    select distinct project_id from kb.agent_runs
    where deaths > 0 and deaths_step = step_count and attempt > 0
      and (status = 'queued' and waits_for is null and deaths >= suspect_deaths
        or status = 'running' and lease_expires_at < now()
          and deaths + case when shares_blame is null then 0 else 1 end >= suspect_deaths) $$`,
  `revoke all on function kb.projects_with_suspects(integer) from public`,
  `grant execute on function kb.projects_with_suspects(integer) to tropism_server`
]
