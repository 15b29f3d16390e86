/**
 * What stands still without a sound has gauges: subscriptions that are suspended, sources that nobody asks, and what kill switches
 * hold.
 *
 * The owner asks how large the database is: the server's role may have no right to connect but by way of it.
 */

const resting = (reason: string) =>
  `(select count(*) from (select from agent_runs where status = 'paused' and pause_reason = '${reason}' limit most) one)`

/** How long that row of a table is due which is due for the longest, and which no kill switch holds. */
const overdue = (table: string, instant: string, condition: string) => `
  coalesce(extract(epoch from now() - (select ${instant} from ${table} one
    where ${instant} <= now() and ${condition}
      and not exists (select from kill_switches switch where switch.project_id is null or switch.project_id = one.project_id)
    order by ${instant} limit 1)), 0)::float8`

/** A project of which some are asked has its turns: the others wait for those. */
const isNobodyAsking = `not exists (select from mcp_event_sources asked where asked.project_id = one.project_id and asked.claimed_until >= now())`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  `create index event_subscriptions_suspended on kb.event_subscriptions (id) where status = 'suspended'`,
  // Its answer has more columns than before.
  `drop function kb.standing_gauges(integer, text)`,
  `create function kb.standing_gauges(most integer, others_reason text) returns table (step_limit_runs bigint, timeout_runs bigint,
    budget_runs bigint, kill_switch_runs bigint, overdue_schedule_seconds float8, overdue_source_seconds float8, disabled_agents bigint,
    suspended_subscriptions bigint, project_switches bigint, server_switches bigint, database_bytes bigint)
    language sql security definer set search_path = kb, pg_temp as $$
    select ${["stepLimit", "timeout", "budget", "killSwitch"].map(resting).join(",\n      ")},
      ${overdue("agent_schedules", "next_fire_at", "true")},
      ${overdue("mcp_event_sources", "due_at", isNobodyAsking)},
      (select count(*) from (select from agents
        where not enabled and deleted_at is null and disabled_reason is not null and disabled_reason <> others_reason limit most) one),
      (select count(*) from (select from event_subscriptions where status = 'suspended' limit most) one),
      (select count(*) from kill_switches where project_id is not null), (select count(*) from kill_switches where project_id is null),
      pg_database_size(current_database()) $$`,
  `revoke all on function kb.standing_gauges(integer, text) from public`,
  `grant execute on function kb.standing_gauges(integer, text) to tropism_server`
]
