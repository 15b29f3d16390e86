/**
 * Servers that work together: where each can be reached, when it was heard last, and whose runs nobody works on any more.
 *
 * The table has the columns that `effect/cluster` writes (`SqlRunnerStorage`, whose shards are advisory locks). It holds
 * addresses and nothing of any project, so it lies in a schema of its own, outside the walls of the projects. A worker
 * of a cluster is named by its server's address and a name of its own: `address#worker`.
 */

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create schema kb_cluster`,
  `create table kb_cluster.tropism_runners (
    machine_id serial primary key,
    address text not null unique,
    runner text not null,
    healthy boolean not null default true,
    last_heartbeat timestamptz not null default now()
  )`,
  // Who works at an address since its last start: whoever did before is gone, though the address gives signs of life again.
  `create table kb_cluster.workers (address text primary key, worker_id text not null)`,
  `grant select, insert, update on kb_cluster.workers to tropism_server`,
  `grant usage on schema kb_cluster to tropism_server`,
  `grant select, insert, update, delete on kb_cluster.tropism_runners to tropism_server`,
  `grant usage on sequence kb_cluster.tropism_runners_machine_id_seq to tropism_server`,
  // Few rows: servers have a bounded number of hands, and each has one run.
  `create function kb.absent_workers(after_seconds float8) returns setof text
  language sql stable security definer set search_path = kb, pg_temp as $$
    select distinct run.worker_id from kb.agent_runs run
    where run.status = 'running' and run.lease_expires_at > now() and run.worker_id like '%#%'
      and not exists (select 1 from kb_cluster.workers worker join kb_cluster.tropism_runners server on server.address = worker.address
        where worker.worker_id = run.worker_id and server.last_heartbeat > now() - make_interval(secs => after_seconds))
  $$`,
  `create function kb.lapse_workers(workers text[]) returns int
  language sql security definer set search_path = kb, pg_temp as $$
    with lapsed as (
      update kb.agent_runs set lease_expires_at = now()
      where status = 'running' and lease_expires_at > now() and worker_id = any(workers) returning id
    ) select count(*)::int from lapsed
  $$`,
  `revoke all on function kb.absent_workers(float8), kb.lapse_workers(text[]) from public`,
  `grant execute on function kb.absent_workers(float8), kb.lapse_workers(text[]) to tropism_server`
]
