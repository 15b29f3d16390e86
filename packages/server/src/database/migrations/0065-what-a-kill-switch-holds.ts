/**
 * A kill switch holds whatever reaches others by itself: events to their subscribers, and questions to foreign servers, too.
 */

/** Whether no switch is on that stops a project. */
const mayWork = (project: string) =>
  `not exists (select 1 from kb.kill_switches switch where switch.project_id is null or switch.project_id = ${project})`

/** Projects with somebody to deliver to, walked from one to the next; a subscription whose time is up ends under a switch, too. */
const dueDeliveries = `
  with recursive found(project_id) as (
    (select project_id from kb.event_subscriptions where status = 'active' order by project_id limit 1)
    union all
    select (select s.project_id from kb.event_subscriptions s where s.status = 'active' and s.project_id > found.project_id
      order by s.project_id limit 1)
    from found where found.project_id is not null
  )
  select feed.project_id from found join kb.feeds feed on feed.project_id = found.project_id
  where ${mayWork("feed.project_id")} and exists (
    select 1 from kb.event_subscriptions s where s.project_id = feed.project_id and s.status = 'active'
      and s.position < feed.last_position and s.next_attempt_at <= now()
      and (s.claimed_until is null or s.claimed_until < now()))
  union
  select project_id from kb.event_subscriptions where expires_at <= now()`

const dueSources = `
  select project_id from (
    select distinct project_id from kb.mcp_event_sources
    where due_at <= now() and (claimed_until is null or claimed_until < now())
  ) due
  where ${mayWork("due.project_id")}`

/** The statements of this migration, in order. */
export const statements: ReadonlyArray<string> = [
  ["projects_with_due_deliveries", dueDeliveries],
  ["projects_with_due_sources", dueSources]
].map(
  ([name, body]) =>
    `create or replace function kb.${name}() returns setof uuid language sql security definer set search_path = kb, pg_temp as $$ ${body} $$`
)
