/**
 * What of a project is not final, how it stands, and how long it may stand so when nothing goes wrong.
 *
 * The bounds are the server's own. Whatever is due is found by the lookout's next
 * look, and by another if a round clashed. A run whose worker lives may come to
 * nothing until its heartbeats have said so for too long and a sweep ends it. What a
 * dead program holds is free when its claim is over, an entry without its run is
 * given up when it has looked stuck, and time that is up is found by its sweep; a run that
 * is past its deadline and grace rests at the next look, whoever holds it.
 * What waits for others has no bound of its own: it moves when they do. It is
 * read with one statement, which changes nothing.
 */
import type { ProjectId } from "@tropism/domain/ids"
import { SqlClient } from "effect/sql"
import { modelLimits, outboxLimits, runLimits } from "../src/limits.ts"
import { sharesOf } from "../src/runs/worker.ts"
import { eventLimits } from "../src/mcp/events.ts"
import { reviewLimits } from "../src/review/limits.ts"
import { sourceLimits } from "../src/tools/external-mcp/events.ts"
import { longestWindowSeconds, simulatedSlots } from "./reacting.ts"

/** Something that is not final. */
export interface OpenWork {
  /** What it is, in words. */
  readonly name: string
  /** How it stands; as long as this is the same, nothing has become of it. */
  readonly standing: string
  /** How long it may stand so, in milliseconds; null where it waits for others. */
  readonly withinMs: number | null
}

/** What is due is found by the next look; a round that failed is done again after another, and the third look is ours. */
const soonMs = 3 * outboxLimits.lookIntervalMs

const stuckMs = runLimits.stuckAfterMs + runLimits.stuckIntervalMs + soonMs

/** A run at work without progress: the first heartbeat that misses it comes as late as another, and the one that has missed enough. */
const quietMs = stuckMs + 2 * runLimits.heartbeatIntervalMs

/** A run that waits for its provider: the longest pause between two probes, jitter included, and a probe whose model is silent or whose server died. */
const providerMs =
  1.25 * runLimits.providerProbeMaxMs + modelLimits.firstPieceTimeoutMs + 2 * runLimits.leaseMs + soonMs

const expiryMs = reviewLimits.expiryIntervalMs + soonMs

/** A question to a foreign server that nobody puts any more; a pause after failures is shorter. */
const sourceMs = Math.max(sourceLimits.claimMs, sourceLimits.backOffMaxMs) + soonMs

const deliveryMs = eventLimits.claimMs + soonMs

/**
 * How long everything that waits for others may stand still at once.
 *
 * **Details** Nobody is at work then, so each waits for an instant, which comes when the window of its rate limit is over, or
 * for a sweep, the rarest of which is that of parked entries and unwanted runs. People answer within three seconds, most times.
 */
export const lineMs = Math.max(1_000 * longestWindowSeconds, runLimits.stuckIntervalMs) + 5 * soonMs

/** Hands that one project has at one server, all others taken. */
const handsOfProject = simulatedSlots - sharesOf(simulatedSlots).spare

/** Reads what is open; `toldAll` is the end of the cursor of every source that has been told all, where there are any. */
export const readOpenWork = (sql: SqlClient.SqlClient, projectId: ProjectId, toldAll: string | undefined) =>
  sql<OpenWork>`
    with live as (
      select run.*, head.last_event_number, run.status = 'running' and run.lease_expires_at < now() as is_lapsed
      from kb.agent_runs run left join kb.contexts head on head.project_id = run.project_id and head.name = run.context_name
      where run.project_id = ${projectId} and (run.status in ('queued', 'running')
        or run.status = 'paused' and run.pause_reason in ('question', 'subAgents', 'killSwitch', 'toolResult'))
    ), crowd as (
      select count(*) filter (where status = 'running') >= ${handsOfProject}::int as is_full from live
    )
    select format('event %s, not dispatched', id) as name, '' as standing, ${soonMs}::int as within_ms
      from kb.graph_events where project_id = ${projectId} and dispatched_at is null
    union all select format('run %s of a trigger by %s, %s', id, trigger ->> 'type',
        case when is_lapsed then 'its worker silent' else status || coalesce(' for ' || pause_reason, '') end),
      concat_ws(' ', status, pause_reason, waits_for, wait_tries, attempt, step_count, last_event_number, length(partial_text), is_lapsed, is_full),
      case when status = 'queued' and waits_for is not null then ${providerMs}::int when status = 'running' and not is_lapsed then ${quietMs}::int
        when status = 'paused' or priority = 2 or is_full then null else ${soonMs}::int end
      from live, crowd
    union all select format('run %s, past its deadline and its grace', id), '', ${soonMs}::int
      from live where status in ('queued', 'running') and deadline_at < now() - make_interval(secs => ${runLimits.graceMs / 1_000}::float8)
    union all select format('entry %s, waiting for its run', id), concat_ws(' ', attempt, due_at, parked, reason), null
      from kb.agent_processing_log where project_id = ${projectId} and status in ('pending', 'processing') and run_id is null
    union all select format('entry %s, %s though its run is over', id, status), status, ${stuckMs}::int
      from kb.agent_processing_log entry where project_id = ${projectId} and status in ('pending', 'processing')
        and run_id is not null and not exists (select from live where live.id = entry.run_id)
    union all select 'a run that has used its time, or that no run above it wants', '', null
      from kb.projects_with_due_waits() due where due = ${projectId}
    union all select 'a run at rest that no run above it wants', '', null
      from kb.projects_with_unwanted_rests() due where due = ${projectId}
    union all select format('schedule of agent %s, due', agent_id), concat_ws(' ', next_fire_at, backlog_from),
      case when next_fire_at <= now() then ${soonMs}::int end
      from kb.agent_schedules schedule join kb.agents agent on agent.id = schedule.agent_id
      where schedule.project_id = ${projectId} and agent.enabled and agent.deleted_at is null
        and (next_fire_at <= now() or backlog_from is not null)
    union all select format('source %s, not told all', id), concat_ws(' ', cursor, failures, claimed_until), ${sourceMs}::int
      from kb.mcp_event_sources where project_id = ${projectId} and due_at is not null
        and coalesce(cursor, '') not like '%' || ${toldAll ?? ""}
    union all select format('backtest %s, %s', id, status), status, null
      from kb.backtests where project_id = ${projectId} and status in ('queued', 'running')
    union all select format('suggestion %s, its time over', id), '', ${expiryMs}::int
      from kb.tasks where project_id = ${projectId} and status = 'pending' and expires_at <= now()
    union all select format('subscription %s, not told all', subscription.id), concat_ws(' ', subscription.position, attempts, claimed_until), ${deliveryMs}::int
      from kb.event_subscriptions subscription join kb.feeds feed on feed.project_id = subscription.project_id
      where subscription.project_id = ${projectId} and status = 'active' and subscription.position < last_position
    order by name`

/** Lets no schedule fire any more, but for what is due already: from here on nothing comes in from outside. */
export const endCalendar = (sql: SqlClient.SqlClient, projectId: ProjectId) =>
  sql`update kb.agent_schedules set next_fire_at = next_fire_at + interval '1000 days'
    where project_id = ${projectId} and next_fire_at > now()`
