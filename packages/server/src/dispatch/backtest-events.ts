/**
 * Chooses the events of a backtest, by the rule by which the dispatcher wakes the agent.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * What is committed counts, whether the dispatcher has come to it or not: first
 * the events that have no place in the feed yet, then the feed, backwards in
 * pages of places, so that the cost follows the window and not what lies behind
 * it. What would have woken the version under test is judged by the same pure
 * rule, actor and depth included.
 */
import { type GraphEvent, isPurged } from "@tropism/domain/graph"
import type { AgentId, BacktestId, GraphEventId, ObjectId, ProjectId, RunId } from "@tropism/domain/ids"
import { type ReactionConfig, refuses } from "@tropism/domain/reaction"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { onlyRow, ProjectTransaction } from "../database/database.ts"
import { Projects } from "../database/projects.ts"
import { backtestLimits } from "./backtest-limits.ts"

/** Which events are wanted. */
export interface Wanted {
  readonly id: BacktestId
  readonly agentId: AgentId
  readonly fromAt: Date
  readonly toAt: Date
  readonly maxEvents: number
  /** Chosen by somebody, instead of the window; null where the window counts. */
  readonly objectIds: ReadonlyArray<ObjectId> | null
}

/** A select of events, each with its `place` among those of its kind. */
type Page = Statement.Fragment

/** An event of the window. */
type Found = Pick<
  GraphEvent,
  | "id"
  | "entityType"
  | "objectType"
  | "type"
  | "changedProperties"
  | "snapshot"
  | "actorType"
  | "actorId"
  | "depth"
>

export const makeBacktestEvents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const projects = yield* Projects

  /** Places of the feed, newest first. */
  const ofFeed = (projectId: ProjectId, first: number, last: number): Page => sql`
    select *, position as place from kb.graph_events
    where project_id = ${projectId} and position >= ${first} and position <= ${last}`

  /**
   * Events that had no place when the feed ended there, before one of them in the order in which they were written.
   *
   * **Details** One that is given its place meanwhile is among them still, and so in no page of the feed.
   */
  const behindFeed = (projectId: ProjectId, end: number, before: string | null): Page => {
    const earlier = before === null ? sql`true` : sql`seq < ${before}::bigint`
    return sql`
      select * from (
        (select *, seq as place from kb.graph_events where project_id = ${projectId} and position > ${end} and ${earlier})
        union all
        (select *, seq as place from kb.graph_events where project_id = ${projectId} and dispatched_at is null and ${earlier}
          order by seq desc limit ${backtestLimits.pagePlaces})
      ) event order by seq desc limit ${backtestLimits.pagePlaces}`
  }

  /** How many events of the window lie in a page, where the page ends, and whether it reaches behind the window. */
  const measure = ({ fromAt, toAt }: Wanted, page: Page) =>
    Effect.flatMap(
      sql<{ looked: number; isPast: boolean; first: string | null }>`
        select (count(*) filter (where created_at >= ${fromAt.toISOString()}::timestamptz and created_at < ${toAt.toISOString()}::timestamptz))::int as looked,
          coalesce(max(created_at) < ${fromAt.toISOString()}::timestamptz, false) as is_past, min(place)::text as first
        from (${page}) page`,
      onlyRow
    )

  /** The events of a page whose kind the rule names, the newest first. */
  const ofKind = (
    { fromAt, toAt }: Wanted,
    { events, objectTypes, relationshipTypes }: ReactionConfig,
    page: Page
  ) => {
    const kinds = [
      ...(objectTypes.length === 0 ? [] : objectTypes.map((type) => `graphObject ${type}`)),
      ...(relationshipTypes ?? []).map((type) => `relationship ${type}`)
    ]
    const all = [
      ...(objectTypes.length === 0 ? ["graphObject"] : []),
      ...(relationshipTypes?.length === 0 ? ["relationship"] : [])
    ]
    return sql<Found>`
      select id, entity_type, object_type, type, changed_properties, snapshot, actor_type, actor_id, depth
      from (${page}) page
      where created_at >= ${fromAt.toISOString()}::timestamptz and created_at < ${toAt.toISOString()}::timestamptz and type = any(${events}::text[])
        and (entity_type = any(${all}::text[]) or entity_type || ' ' || object_type = any(${kinds}::text[]))
      order by place desc`
  }

  /** The newest events that would have woken the agent, and how many there were of how many. */
  const choose = Effect.fnUntraced(function* (wanted: Wanted, config: ReactionConfig) {
    const { projectId } = yield* ProjectTransaction
    const { chainLimits } = yield* projects.settings
    const [feed] = yield* sql<{ last: string }>`
      select last_position::text as last from kb.feeds where project_id = ${projectId}`
    const end = Number(feed?.last ?? 0)
    const chosen: Array<GraphEventId> = []
    let [looked, matched] = [0, 0]
    /** Looks at a page; answers where it ends. */
    const look = Effect.fnUntraced(function* (page: Page) {
      const measured = yield* measure(wanted, page)
      looked += measured.looked
      if (measured.looked === 0) return measured
      for (const event of yield* ofKind(wanted, config, page)) {
        if (isPurged(event) || refuses(wanted.agentId, config, event, chainLimits.maxDepth)) continue
        matched += 1
        if (chosen.length < wanted.maxEvents) chosen.push(event.id)
      }
      return measured
    })
    let page = yield* look(behindFeed(projectId, end, null))
    while (page.first !== null && !page.isPast && looked < backtestLimits.lookedEvents)
      page = yield* look(behindFeed(projectId, end, page.first))
    for (
      let last = end;
      last > 0 && looked < backtestLimits.lookedEvents;
      last -= backtestLimits.pagePlaces
    ) {
      const first = Math.max(1, last - backtestLimits.pagePlaces + 1)
      if ((yield* look(ofFeed(projectId, first, last))).isPast) break
    }
    return { looked, matched, chosen: chosen.toReversed() }
  })

  /** The newest event of each chosen object that was not purged since, the oldest first, and how many would have woken the agent. */
  const chooseByObjects = Effect.fnUntraced(function* (
    wanted: Wanted,
    objectIds: ReadonlyArray<ObjectId>,
    config: ReactionConfig | null
  ) {
    const { projectId } = yield* ProjectTransaction
    const { chainLimits } = yield* projects.settings
    const events = (yield* sql<Found>`
      select event.id, event.entity_type, event.object_type, event.type, event.changed_properties, event.snapshot, event.actor_type,
        event.actor_id, event.depth
      from unnest(${objectIds}::uuid[]) chosen(id)
      cross join lateral (
        select event_id from kb.graph_object_versions where object_id = chosen.id and project_id = ${projectId}
        order by version desc limit 1
      ) newest
      join kb.graph_events event on event.id = newest.event_id and event.project_id = ${projectId}
      order by event.seq desc`).filter((event) => !isPurged(event))
    const wakes = (event: Found) =>
      config !== null && refuses(wanted.agentId, config, event, chainLimits.maxDepth) === undefined
    return {
      looked: events.length,
      matched: events.filter(wakes).length,
      chosen: events
        .slice(0, wanted.maxEvents)
        .map(({ id }) => id)
        .toReversed()
    }
  })

  /** The agent's own runs that handled these events when they happened. */
  const handlersOf = Effect.fnUntraced(function* (wanted: Wanted, events: ReadonlyArray<GraphEventId>) {
    const { projectId } = yield* ProjectTransaction
    const rows = yield* sql<{ eventId: GraphEventId; runs: ReadonlyArray<RunId> }>`
      select handled.id::uuid as event_id, array_agg(distinct run.id) as runs
      from kb.agent_runs run cross join lateral (
        select event ->> 'id' as id from jsonb_array_elements(coalesce(run.trigger -> 'events', '[]')) event
      ) handled
      where run.project_id = ${projectId} and run.agent_id = ${wanted.agentId} and run.created_at >= ${wanted.fromAt.toISOString()}::timestamptz
        and run.backtest_id is null and handled.id = any(${events}::text[])
      group by handled.id`
    return new Map(rows.map(({ eventId, runs }) => [eventId, runs]))
  })

  /** Chooses the events and keeps which they are. */
  const keepChosen = Effect.fn("BacktestEvents.keep")(function* (
    wanted: Wanted,
    config: ReactionConfig | null
  ) {
    const { projectId } = yield* ProjectTransaction
    const { chosen, ...counts } = yield* wanted.objectIds !== null
      ? chooseByObjects(wanted, wanted.objectIds, config)
      : config === null
        ? Effect.die(new Error(`Backtest ${wanted.id} is of a version that does not react`))
        : choose(wanted, config)
    const handlers = chosen.length === 0 ? new Map() : yield* handlersOf(wanted, chosen)
    const rows = chosen.map((id, index) => ({ id, number: index + 1, runs: handlers.get(id) ?? [] }))
    yield* sql`
      insert into kb.backtest_events (project_id, backtest_id, number, event_id, handled_by)
      select ${projectId}::uuid, ${wanted.id}::uuid, row.number, row.id, row.runs
      from jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb) as row(number int, id uuid, runs uuid[])`
    return { ...counts, chosen: chosen.length }
  })

  return { keepChosen }
})
