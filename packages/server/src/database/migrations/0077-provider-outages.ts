/**
 * Runs wait for a provider that is away, and a circuit breaker for each chain of models decides when one of them asks again.
 *
 * A waiting run is `queued` with a route in `waits_for`. The indexes of the queue leave it out: 10,000 waiting runs cost a claim
 * nothing. The breakers belong to no project, so the server's role reaches them through functions alone. They hold no text of a provider.
 */

const currentProject = `nullif(current_setting('tropism.project', true), '')::uuid`

const isWaiting = (run: string) => `${run}.status = 'queued' and ${run}.waits_for is not null`

/** Nobody holds the probe: its time is over, or its run neither waits for a worker nor works. */
const isProbeFree = `(outage.probe_until is null or outage.probe_until < now() or not exists (
  select from kb.agent_runs prober where prober.id = outage.probe_run_id
    and (prober.status = 'running' or prober.status = 'queued' and prober.waits_for is null)))`

const isHeld = (projectId: string) =>
  `exists (select from kb.kill_switches switch where switch.project_id is null or switch.project_id = ${projectId})`

const isDue = `(outage.is_open is not true or outage.next_try_at <= now() and ${isProbeFree})`

const tables = [
  `alter table kb.agent_runs add column waits_for text, add column waits_since timestamptz, add column waits_until timestamptz,
    add column wait_tries integer not null default 0, add column wait_message text`,
  `create table kb.provider_outages (
    route text primary key,
    since timestamptz not null default now(),
    reason text not null,
    failures integer not null default 1,
    failed_probes integer not null default 0,
    is_open boolean not null,
    next_try_at timestamptz not null,
    probe_run_id uuid,
    probe_until timestamptz
  )`,
  `alter table kb.provider_outages enable row level security`,
  `revoke all on kb.provider_outages from tropism_server`,
  // Those in the place of two that knew no waiting runs.
  `drop index kb.agent_runs_queued`,
  `drop index kb.agent_runs_first`,
  `create index agent_runs_queued on kb.agent_runs (project_id, id) where status = 'queued' and waits_for is null`,
  `create index agent_runs_first on kb.agent_runs (project_id, priority, id) where status = 'queued' and waits_for is null`,
  `create index agent_runs_of_routes on kb.agent_runs (waits_for, wait_tries, waits_until) where status = 'queued' and waits_for is not null`,
  `create index agent_runs_waiting_here on kb.agent_runs (project_id, waits_for) where status = 'queued' and waits_for is not null`,
  `create index agent_runs_waiting_longest on kb.agent_runs (waits_since) where status = 'queued' and waits_for is not null`,
  // The breakers that runs of this project wait for.
  `create view kb.provider_outages_here as
    select outage.route, outage.since, outage.reason, outage.next_try_at from kb.provider_outages outage
    where outage.is_open and exists (select from kb.agent_runs run
      where run.project_id = (select ${currentProject}) and ${isWaiting("run")} and run.waits_for = outage.route)`,
  `grant select on kb.provider_outages_here to tropism_server`
]

/** A function that runs with the owner's rights and is open to the server's role alone. */
const definer = (signature: string, types: string, returns: string, language: string, body: string) => [
  `create function kb.${signature} returns ${returns} language ${language} security definer set search_path = kb, pg_temp as $$ ${body} $$`,
  `revoke all on function kb.${signature.slice(0, signature.indexOf("("))}(${types}) from public`,
  `grant execute on function kb.${signature.slice(0, signature.indexOf("("))}(${types}) to tropism_server`
]

/** Walks the index from route to route, so that the cost follows the routes and not the runs. */
const routesWaitedFor = `with recursive found(name) as (
    (select run.waits_for from kb.agent_runs run where ${isWaiting("run")} order by run.waits_for limit 1)
    union all
    select (select run.waits_for from kb.agent_runs run where ${isWaiting("run")} and run.waits_for > found.name order by run.waits_for limit 1)
    from found where found.name is not null)`

/** How waiting runs go on; `alsoOf` is a further condition on those that may be the next to ask. */
export const waking = (alsoOf: string): ReadonlyArray<string> => [
  // Routes with a waiting run that may go on: their breaker is closed, or its probe is due; or the run has waited for too long.
  ...definer(
    "routes_to_wake(longest_wait_seconds float8)",
    "float8",
    "setof text",
    "sql",
    `${routesWaitedFor}
     select found.name from found left join kb.provider_outages outage on outage.route = found.name
     where found.name is not null and ${isDue} and exists (
       select from kb.agent_runs run where ${isWaiting("run")} and run.waits_for = found.name and run.waits_until <= now()
         and not ${isHeld("run.project_id")}${alsoOf})
     union all
     (select run.waits_for from kb.agent_runs run
      where ${isWaiting("run")} and run.waits_since < now() - make_interval(secs => longest_wait_seconds) limit 1)`
  ),
  // Lets them go on: one for a probe, a batch where the breaker is closed, a batch of those that have waited for too long.
  ...definer(
    "wake_waiting_runs(most integer, probe_seconds float8, longest_wait_seconds float8)",
    "integer, float8, float8",
    "integer",
    "plpgsql",
    `#variable_conflict use_column
     declare
       woken integer := 0;
       ids uuid[];
       name text;
       outage kb.provider_outages;
     begin
       for name in select distinct due from kb.routes_to_wake(longest_wait_seconds) due order by due limit most loop
         select * into outage from kb.provider_outages one where one.route = name;
         if not ${isDue} then ids := '{}';
         else
           ids := array(select run.id from kb.agent_runs run
             where ${isWaiting("run")} and run.waits_for = name and run.waits_until <= now() and not ${isHeld("run.project_id")}${alsoOf}
             order by run.wait_tries, run.waits_until limit case when outage.is_open then 1 else most end for update skip locked);
         end if;
         if outage.is_open and cardinality(ids) > 0 then
           update kb.provider_outages outage set probe_run_id = ids[1], probe_until = now() + make_interval(secs => probe_seconds)
           where outage.route = name and ${isDue};
           if not found then ids := '{}'; end if;
         end if;
         ids := ids || array(select run.id from kb.agent_runs run
           where ${isWaiting("run")} and run.waits_for = name and run.waits_since < now() - make_interval(secs => longest_wait_seconds)
           limit most for update skip locked);
         update kb.agent_runs run set waits_for = null, waits_until = null where run.id = any(ids);
         woken := woken + cardinality(ids);
       end loop;
       return woken;
     end`
  )
]

const functions = [
  // What is known of the breakers, for a server that keeps it at hand.
  ...definer(
    "known_outages(most integer)",
    "integer",
    "table (route text, failures integer, is_open boolean)",
    "sql stable",
    `select route, failures, is_open from kb.provider_outages order by route limit most`
  ),
  // A request failed: opens the breaker, or moves it; answers since when it is open, and whether it is.
  ...definer(
    `note_outage(name text, why text, opens boolean, asker uuid, pause_seconds float8, first_pause_seconds float8,
      longest_pause_seconds float8, opens_at integer)`,
    "text, text, boolean, uuid, float8, float8, float8, integer",
    "table (since timestamptz, is_open boolean)",
    "sql",
    `insert into kb.provider_outages as outage (route, reason, is_open, next_try_at)
     values (name, why, opens, now() + make_interval(secs => greatest(pause_seconds, first_pause_seconds * (0.75 + random() / 2))))
     on conflict (route) do update set
       reason = excluded.reason,
       failures = outage.failures + 1,
       failed_probes = outage.failed_probes + case when outage.probe_run_id = asker then 1 else 0 end,
       is_open = outage.is_open or excluded.is_open or outage.failures + 1 >= opens_at,
       since = case when outage.is_open then outage.since else now() end,
       next_try_at = case
         when outage.is_open and outage.probe_run_id is distinct from asker
           then greatest(outage.next_try_at, now() + make_interval(secs => pause_seconds))
         else now() + make_interval(secs => greatest(pause_seconds,
           least(longest_pause_seconds, first_pause_seconds * power(2, least(outage.failed_probes + 1, 20))) * (0.75 + random() / 2))) end,
       probe_until = case when outage.probe_run_id = asker then null else outage.probe_until end,
       probe_run_id = nullif(outage.probe_run_id, asker)
     returning outage.since, outage.is_open`
  ),
  // Whether a run may ask now: the breaker is closed, or the run is its probe, or becomes it.
  ...definer(
    "admit_to_route(name text, asker uuid, probe_seconds float8)",
    "text, uuid, float8",
    "table (is_admitted boolean, failures integer, since timestamptz, reason text)",
    "sql",
    `with taken as (
       update kb.provider_outages outage set probe_run_id = asker, probe_until = now() + make_interval(secs => probe_seconds)
       where outage.route = name and outage.is_open
         and (outage.probe_run_id = asker or outage.next_try_at <= now() and ${isProbeFree})
       returning outage.failures
     )
     select not outage.is_open or exists (select from taken), outage.failures, outage.since, outage.reason
     from kb.provider_outages outage where outage.route = name`
  ),
  // An answer came: closes the breaker, unless a request failed since the one that was answered began.
  ...definer(
    "close_outage(name text, seen_failures integer)",
    "text, integer",
    "boolean",
    "sql",
    `with closed as (
       delete from kb.provider_outages where route = name and (not is_open or failures = seen_failures) returning 1)
     select exists (select from closed)`
  ),
  ...waking(""),
  ...definer(
    "outage_gauges(most integer)",
    "integer",
    "table (open_outages bigint, oldest_outage_seconds float8, provider_runs bigint)",
    "sql stable",
    `select (select count(*) from kb.provider_outages where is_open),
       coalesce(extract(epoch from now() - (select min(since) from kb.provider_outages where is_open)), 0)::float8,
       (select count(*) from (select from kb.agent_runs run where ${isWaiting("run")} limit most) one)`
  )
]

const queue = [
  // As in the first migration, but for runs that wait for a provider.
  `create or replace function kb.projects_with_queued_runs() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$
    with recursive found(project_id) as (
      (select project_id from kb.agent_runs where status = 'queued' and waits_for is null order by project_id limit 1)
      union all
      select (select run.project_id from kb.agent_runs run
        where run.status = 'queued' and run.waits_for is null and run.project_id > found.project_id order by run.project_id limit 1)
      from found where found.project_id is not null
    )
    select project_id from found where project_id is not null $$`,
  // As in migration 64: a run that waits for a provider does not wait for a worker.
  `create or replace function kb.gauges() returns table (queued_runs bigint, oldest_queued_seconds float8, live_leases bigint, lapsed_leases bigint,
    question_runs bigint, sub_agent_runs bigint, undispatched_events bigint, oldest_event_seconds float8, waiting_entries bigint)
    language sql security definer set search_path = kb, pg_temp as $$
    select queued.count, queued.oldest, leases.live, leases.lapsed, resting.question, resting.sub_agents, events.count, events.oldest, entries.count
    from (select count(*), coalesce(extract(epoch from now() - min(run.queued_at)
            filter (where run.backtest_id is null and held.project_id is null and not everywhere.stops)), 0)::float8 as oldest
        from agent_runs run
        left join kill_switches held on held.project_id = run.project_id
        cross join (select exists (select from kill_switches where project_id is null) as stops) everywhere
        where run.status = 'queued' and run.waits_for is null) queued,
      (select count(*) filter (where lease_expires_at >= now()) as live, count(*) filter (where lease_expires_at < now()) as lapsed
        from agent_runs where status = 'running') leases,
      (select count(*) filter (where pause_reason = 'question') as question, count(*) filter (where pause_reason = 'subAgents') as sub_agents
        from agent_runs where status = 'paused' and pause_reason in ('question', 'subAgents')) resting,
      (select count(*), coalesce(extract(epoch from now() - min(created_at)), 0)::float8 as oldest
        from graph_events where dispatched_at is null) events,
      (select count(*) from agent_processing_log where status = 'pending' and run_id is null) entries $$`,
  // A run that is woken is queued from then on.
  `create trigger note_woken before update of waits_for on kb.agent_runs
    for each row when (new.status = 'queued' and old.waits_for is not null and new.waits_for is null) execute function kb.note_queued()`
]

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [...tables, ...functions, ...queue]
