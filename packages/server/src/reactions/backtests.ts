/**
 * Starts, lists and cancels backtests.
 *
 * Starting one only inserts a row; the backtester does the rest. A unique key allows one backtest per agent at a time. The agent need not
 * be enabled: a backtest shows what it would have done.
 */
import type { Agent } from "@tropism/domain/agent"
import {
  type Backtest,
  backtestBounds,
  type BacktestInput,
  type BacktestStatus
} from "@tropism/domain/backtest"
import { microsPerDollar, tellDollars } from "@tropism/domain/chain"
import { ContextName } from "@tropism/domain/context-event"
import { type ChangeType, type EntityType, type GraphEvent, isPurged } from "@tropism/domain/graph"
import type {
  AgentId,
  BacktestId,
  ObjectId,
  UserId,
  GraphEventId,
  ProjectId,
  RunId
} from "@tropism/domain/ids"
import { type ReactionConfig, refuses } from "@tropism/domain/reaction"
import { isResumable, PauseReason } from "@tropism/domain/run"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { Agents } from "../agents/agents.ts"
import { CrashPoint } from "../crash-point.ts"
import {
  brokenUniqueKey,
  lastId,
  orDie,
  ProjectTransaction,
  Database,
  onlyRow
} from "../database/database.ts"
import { Ids } from "../ids.ts"
import { Notifier, drive, share, untilNotified } from "../outbox/notifier.ts"
import { RunCancellation } from "../runs/cancellation.ts"
import { Runs } from "../runs/run-store.ts"
import { Projects } from "../tenancy/projects.ts"
import { reactionRun } from "./reaction-run.ts"

/** Why a backtest was not started or not cancelled. */
export class BacktestRefused extends Schema.TaggedError<BacktestRefused>()("BacktestRefused", {
  reason: Schema.Literals(["noVersion", "noReaction", "noObject", "noWindow", "underWay", "over"]),
  detail: Schema.String,
  /** The index of the missing object. */
  index: Schema.optional(Schema.Int)
}) {}

type InProject<A, E = never> = Effect.Effect<A, E, ProjectTransaction>

export class Backtests extends Context.Service<
  Backtests,
  {
    readonly begin: (agent: Agent, input: BacktestInput, by: UserId) => InProject<Backtest, BacktestRefused>
    readonly get: (agentId: AgentId, id: BacktestId) => InProject<Backtest | undefined>
    /** Returns an agent's backtests, newest first. */
    readonly list: (
      agentId: AgentId,
      before: string | undefined,
      limit: number
    ) => InProject<ReadonlyArray<Backtest>>
    /** Cancels a backtest with all its runs; undefined when there is none. */
    readonly cancel: (agentId: AgentId, id: BacktestId) => InProject<Backtest | undefined, BacktestRefused>
  }
>()("@tropism/server/dispatch/Backtests") {
  static readonly layer = Layer.effect(
    Backtests,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const agents = yield* Agents
      const ids = yield* Ids
      const notifier = yield* Notifier
      const { cancelLive, end, isLive } = yield* makeBacktestRuns

      const select = (which: Statement.Fragment, limit: number) =>
        sql<BacktestRow>`
          select test.*, agent.name as agent_name, test.chosen_events - waiting.count - live.count as done
          from kb.backtests test join kb.agents agent on agent.id = test.agent_id
          cross join lateral (
            select count(*)::int as count from kb.backtest_events event where event.backtest_id = test.id and event.run_id is null
          ) waiting
          cross join lateral (select count(*)::int as count from kb.agent_runs run where run.backtest_id = test.id and ${isLive}) live
          where ${which} order by test.id desc limit ${limit}`

      const get = Effect.fn("Backtests.get")(function* (agentId: AgentId, id: BacktestId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* select(
          sql`test.project_id = ${projectId} and test.agent_id = ${agentId} and test.id = ${id}`,
          1
        )
        return row && toBacktest(row)
      }, orDie)

      const list = Effect.fn("Backtests.list")(function* (
        agentId: AgentId,
        before: string | undefined,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* select(
          sql`test.project_id = ${projectId} and test.agent_id = ${agentId}
            and test.id < ${before ?? lastId}::uuid`,
          limit
        )
        return rows.map(toBacktest)
      }, orDie)

      /** Returns the version to test; over days it must react to events. */
      const checkVersion = Effect.fnUntraced(function* (agent: Agent, number: number, isOverDays: boolean) {
        const version = yield* agents.version(agent.id, number)
        if (!version)
          return yield* refuse(
            "noVersion",
            `${agent.name} has no version ${number}: its newest is ${agent.version}`
          )
        const { reactionConfig, triggerType } = version.definition
        if (isOverDays && (triggerType !== "reaction" || reactionConfig === null))
          return yield* refuse(
            "noReaction",
            `Version ${number} of ${agent.name} does not react to events (its trigger is ${triggerType}), so there are none to run it over: choose objects instead`
          )
      })

      /** Fails for the first object that has no event here. */
      const checkObjects = Effect.fnUntraced(function* (objectIds: ReadonlyArray<ObjectId>) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<{ id: ObjectId }>`
          select id from kb.graph_objects where project_id = ${projectId} and id = any(${objectIds}::uuid[])`
        const there = new Set(rows.map(({ id }) => id))
        const index = objectIds.findIndex((id) => !there.has(id))
        if (index !== -1)
          return yield* new BacktestRefused({ reason: "noObject", detail: "There is no such object", index })
      })

      /** Checks that the input names either days or objects. */
      const checkChoice = Effect.fnUntraced(function* ({ days, objectIds }: BacktestInput) {
        if ((days ?? null) === null && (objectIds ?? null) === null)
          return yield* refuse(
            "noWindow",
            "Say how many days back the events lie, or choose objects by objectIds"
          )
        if ((days ?? null) !== null && (objectIds ?? null) !== null)
          return yield* refuse("noWindow", "Give days or objectIds, not both")
        if (objectIds) yield* checkObjects(objectIds)
      })

      const begin = Effect.fn("Backtests.begin")(function* (agent: Agent, input: BacktestInput, by: UserId) {
        const { projectId } = yield* ProjectTransaction
        const version = input.version ?? agent.version
        yield* checkChoice(input)
        yield* checkVersion(agent, version, !input.objectIds)
        const days = input.days ?? null
        const id = (yield* ids.next) as BacktestId
        const maxCostMicros =
          typeof input.maxCostUsd === "number" ? Math.round(input.maxCostUsd * microsPerDollar) : null
        yield* sql
          .withTransaction(
            sql`
            insert into kb.backtests (id, project_id, agent_id, agent_version, days, object_ids, max_events, max_cost_micros, from_at, to_at, created_by)
            values (${id}, ${projectId}, ${agent.id}, ${version}, ${days}, ${input.objectIds ?? null}::uuid[],
              ${input.maxEvents ?? input.objectIds?.length ?? backtestBounds.defaultEvents}, ${maxCostMicros},
              ${days === null ? sql`(select min(created_at) from kb.graph_objects where id = any(${input.objectIds ?? []}::uuid[]))` : sql`now() - make_interval(days => ${days}::int)`}, now(), ${by})`
          )
          .pipe(
            Effect.catchIf(
              (error) => brokenUniqueKey(error) === "backtests_live",
              () =>
                refuse("underWay", `${agent.name} has a backtest under way: wait for its end, or cancel it`)
            )
          )
        yield* sql.afterCommit(notifier.signal("backtests"))
        const begun = yield* get(agent.id, id)
        return begun ?? (yield* Effect.die(new Error(`Backtest ${id} is gone while it is made`)))
      }, orDie)

      const cancel = Effect.fn("Backtests.cancel")(function* (agentId: AgentId, id: BacktestId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ status: Backtest["status"] }>`
          select status from kb.backtests where id = ${id} and agent_id = ${agentId} and project_id = ${projectId} for no key update`
        if (!row) return undefined
        if (!(yield* end(id, "cancelled", null)))
          return yield* refuse("over", `The backtest is ${row.status} already`)
        yield* cancelLive(id, "Its backtest was cancelled")
        return yield* get(agentId, id)
      }, orDie)

      return Backtests.of({ begin, get, list, cancel })
    })
  )
}

const refuse = (reason: BacktestRefused["reason"], detail: string) =>
  Effect.fail(new BacktestRefused({ reason, detail }))

interface BacktestRow extends Pick<
  Backtest,
  | "id"
  | "agentId"
  | "agentName"
  | "agentVersion"
  | "status"
  | "days"
  | "objectIds"
  | "maxEvents"
  | "detail"
  | "createdBy"
> {
  readonly maxCostMicros: bigint | null
  readonly fromAt: Date
  readonly toAt: Date
  readonly lookedEvents: number
  readonly matchedEvents: number
  readonly chosenEvents: number
  readonly done: number
  readonly createdAt: Date
  readonly startedAt: Date | null
  readonly completedAt: Date | null
}

const toBacktest = (row: BacktestRow): Backtest => ({
  id: row.id,
  agentId: row.agentId,
  agentName: row.agentName,
  agentVersion: row.agentVersion,
  status: row.status,
  days: row.days,
  objectIds: row.objectIds,
  maxEvents: row.maxEvents,
  maxCostUsd: row.maxCostMicros === null ? null : Number(row.maxCostMicros) / microsPerDollar,
  from: row.fromAt.toISOString(),
  to: row.toAt.toISOString(),
  events: { looked: row.lookedEvents, matched: row.matchedEvents, chosen: row.chosenEvents, done: row.done },
  detail: row.detail,
  createdBy: row.createdBy,
  createdAt: row.createdAt.toISOString(),
  startedAt: row.startedAt?.toISOString() ?? null,
  completedAt: row.completedAt?.toISOString() ?? null
})

// Advances backtests: selects their events, gives each its run, and ends them.
//
// The backtest's row lock decides which server takes the next step, so a server that dies has done all of it or nothing. An event and its
// run are written in one transaction, so each event is run once. Only a few runs are queued at a time, and the budget is checked before
// more are queued.

/** A backtest that has not ended, locked for this transaction. */
interface DueBacktest {
  readonly id: BacktestId
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly status: "queued" | "running"
  readonly fromAt: Date
  readonly toAt: Date
  readonly maxEvents: number
  readonly objectIds: ReadonlyArray<ObjectId> | null
  readonly maxCostMicros: bigint | null
  readonly isAgentGone: boolean
}

/** An event that has no run yet. */
interface NextEvent {
  readonly number: number
  readonly eventId: GraphEventId
  readonly eventType: ChangeType
  readonly entityType: EntityType
  readonly graphObjectId: string
  readonly objectType: string
  readonly objectVersion: number
}

export class Backtester extends Context.Service<
  Backtester,
  {
    /** Advances backtests until interrupted. */
    readonly run: Effect.Effect<never>
    /** Takes one turn for each project with a backtest; true when anything changed. */
    readonly round: Effect.Effect<boolean>
  }
>()("@tropism/server/dispatch/Backtester") {
  static readonly layer = Layer.effect(
    Backtester,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const agents = yield* Agents
      const runs = yield* Runs
      const ids = yield* Ids
      const notifier = yield* Notifier
      const { keepChosen } = yield* makeBacktestEvents
      const { cancelLive, countLive, end, spentMicros } = yield* makeBacktestRuns

      const due = Effect.gen(function* () {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<DueBacktest>`
          select test.id, test.agent_id, test.agent_version, test.status, test.from_at, test.to_at, test.object_ids, test.max_events, test.max_cost_micros,
            agent.deleted_at is not null as is_agent_gone
          from kb.backtests test join kb.agents agent on agent.id = test.agent_id
          where test.project_id = ${projectId} and test.status in ('queued', 'running')
          order by test.id limit ${backtestLimits.batchBacktests} for no key update of test skip locked`
      })

      /** Selects the events; the state transition ensures that this happens once. */
      const begin = Effect.fnUntraced(function* (test: DueBacktest) {
        const version = yield* agents.version(test.agentId, test.agentVersion)
        const config = version?.definition.reactionConfig ?? null
        const { chosen, looked, matched } = yield* keepChosen(test, config)
        yield* sql`
          update kb.backtests set status = 'running', started_at = now(), looked_events = ${looked}, matched_events = ${matched}, chosen_events = ${chosen}
          where id = ${test.id} and status = 'queued'`
        yield* CrashPoint.hit("backtest.beforeBegun")
      })

      const nextEvents = (test: DueBacktest, limit: number) =>
        sql<NextEvent>`
          select chosen.number, event.id as event_id, event.type as event_type, event.entity_type, event.entity_id as graph_object_id,
            event.object_type, event.version as object_version
          from kb.backtest_events chosen join kb.graph_events event on event.id = chosen.event_id
          where chosen.backtest_id = ${test.id} and chosen.run_id is null order by chosen.number limit ${limit}`

      /** Queues a run for each event, as a chain of its own without notifications. */
      const queue = Effect.fnUntraced(function* (test: DueBacktest, events: ReadonlyArray<NextEvent>) {
        const begun: Array<{ readonly number: number; readonly runId: RunId; readonly event: NextEvent }> = []
        for (const event of events)
          begun.push({ number: event.number, runId: (yield* ids.next) as RunId, event })
        yield* runs.queue(
          begun.map(({ event, runId }) => ({
            ...reactionRun(runId, test, [
              { ...event, rootEventId: runId as string as GraphEventId, depth: 0 }
            ]),
            contextName: ContextName.make(`run-${runId}`),
            backtestId: test.id
          }))
        )
        yield* sql`
          update kb.backtest_events chosen set run_id = row."runId"
          from jsonb_to_recordset(${JSON.stringify(begun.map(({ number, runId }) => ({ number, runId })))}::text::jsonb)
            as row(number int, "runId" uuid)
          where chosen.backtest_id = ${test.id} and chosen.number = row.number`
        yield* CrashPoint.hit("backtest.beforeQueued")
      })

      /** Queues more runs, or ends a backtest that has nothing left to do; returns whether anything changed. */
      const goOn = Effect.fnUntraced(function* (test: DueBacktest) {
        const live = yield* countLive(test.id)
        const spent = test.maxCostMicros === null ? 0 : yield* spentMicros(test.id)
        const isSpent = test.maxCostMicros !== null && spent >= Number(test.maxCostMicros)
        const events =
          live < backtestLimits.liveRuns ? yield* nextEvents(test, backtestLimits.liveRuns - live) : []
        if (events.length > 0 && !isSpent) {
          yield* queue(test, events)
          return true
        }
        if (live > 0) return false
        yield* end(test.id, "completed", events.length > 0 ? yield* spentSentence(test, spent) : null)
        return true
      })

      const spentSentence = Effect.fnUntraced(function* (test: DueBacktest, spent: number) {
        const { left } = yield* Effect.flatMap(
          sql<{ left: number }>`
            select count(*)::int as left from kb.backtest_events where backtest_id = ${test.id} and run_id is null`,
          onlyRow
        )
        return `It has spent ${tellDollars(spent)} of at most ${tellDollars(Number(test.maxCostMicros))}: ${left} ${left === 1 ? "event was" : "events were"} not run`
      })

      const turn = Effect.gen(function* () {
        let moved = 0
        for (const test of yield* due) {
          if (test.isAgentGone) {
            yield* end(test.id, "failed", "The agent was deleted")
            yield* cancelLive(test.id, "The agent was deleted")
            moved += 1
            continue
          }
          if (test.status === "queued") yield* begin(test)
          if (yield* goOn(test)) moved += 1
        }
        return moved
      }).pipe(orDie)

      const round = Effect.gen(function* () {
        const projects = yield* orDie(
          sql<{ projectId: ProjectId }>`select project_id from kb.projects_with_backtests() as project_id`
        )
        let moved = 0
        for (const { projectId } of projects)
          moved += yield* share("Backtester", projectId, database.inProject(projectId, turn))
        if (moved > 0) yield* CrashPoint.hit("backtest.afterCommit")
        return moved > 0
      }).pipe(Effect.withSpan("Backtester.round"))

      return Backtester.of({
        run: drive("Backtester", "backtests", untilNotified, round).pipe(
          Effect.provideService(Notifier, notifier)
        ),
        round
      })
    })
  )
}

// Selects the events of a backtest by the dispatcher's own rule.
//
// Committed events count, dispatched or not: first those without a position in the feed, then the feed, backwards in pages of positions, so
// the cost follows the window and not the history before it. The same pure rule decides what would have triggered the version under test,
// including actor and depth.

/** The events to select. */
export interface Wanted {
  readonly id: BacktestId
  readonly agentId: AgentId
  readonly fromAt: Date
  readonly toAt: Date
  readonly maxEvents: number
  /** Objects that a person chose instead of a window; null for the window. */
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

const makeBacktestEvents = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const projects = yield* Projects

  /** Selects positions of the feed, newest first. */
  const ofFeed = (projectId: ProjectId, first: number, last: number): Page => sql`
    select *, position as place from kb.graph_events
    where project_id = ${projectId} and position >= ${first} and position <= ${last}`

  /**
   * Selects events that had no position at this end of the feed, before `before` in the order of writing.
   *
   * **Details** An event that gets its position meanwhile is still included, and therefore in no page of the feed.
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

  /** Counts a page's events in the window and returns where the page ends and whether it goes past the window. */
  const measure = ({ fromAt, toAt }: Wanted, page: Page) =>
    Effect.flatMap(
      sql<{ looked: number; isPast: boolean; first: string | null }>`
        select (count(*) filter (where created_at >= ${fromAt.toISOString()}::timestamptz and created_at < ${toAt.toISOString()}::timestamptz))::int as looked,
          coalesce(max(created_at) < ${fromAt.toISOString()}::timestamptz, false) as is_past, min(place)::text as first
        from (${page}) page`,
      onlyRow
    )

  /** Selects the events of a page whose kind the rule names, newest first. */
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

  /** Returns the newest events that would have triggered the agent, with the number of matching and of examined events. */
  const choose = Effect.fnUntraced(function* (wanted: Wanted, config: ReactionConfig) {
    const { projectId } = yield* ProjectTransaction
    const { chainLimits } = yield* projects.settings
    const [feed] = yield* sql<{ last: string }>`
      select last_position::text as last from kb.feeds where project_id = ${projectId}`
    const end = Number(feed?.last ?? 0)
    const chosen: Array<GraphEventId> = []
    let [looked, matched] = [0, 0]
    /** Examines a page and returns where it ends. */
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

  /** Returns the newest event of each chosen object that was not purged, oldest first, and how many would have triggered the agent. */
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

  /** Returns the agent's original runs for these events. */
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

  /** Selects and stores the events of a backtest. */
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

// Tracks and cancels the runs of a backtest.

/** Pause reasons that are final: a backtest run is never resumed. */
const final = PauseReason.literals.filter(isResumable)

const makeBacktestRuns = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const endings = yield* RunCancellation

  /** The condition, on a row of kb.agent_runs called `run`, that the run is still live. */
  const isLive = sql`(run.status in ('queued', 'running') or (run.status = 'paused' and not ${sql.in("run.pause_reason", final)}))`

  const countLive = Effect.fnUntraced(function* (id: BacktestId) {
    const { live } = yield* Effect.flatMap(
      sql<{ live: number }>`
        select count(*)::int as live from kb.agent_runs run where run.backtest_id = ${id} and ${isLive}`,
      onlyRow
    )
    return live
  })

  /** Returns the cost of its model requests. */
  const spentMicros = Effect.fnUntraced(function* (id: BacktestId) {
    const { projectId } = yield* ProjectTransaction
    const [spent] = yield* sql<{ costMicros: bigint }>`
      select cost_micros from kb.budgets where project_id = ${projectId} and scope = 'backtest' and scope_id = ${id} and period = ''`
    return Number(spent?.costMicros ?? 0)
  })

  /** Ends a backtest; false when it had already ended. */
  const end = Effect.fnUntraced(function* (
    id: BacktestId,
    status: Extract<BacktestStatus, "completed" | "cancelled" | "failed">,
    detail: string | null
  ) {
    const ended = yield* sql`
      update kb.backtests set status = ${status}, detail = ${detail}, completed_at = now()
      where id = ${id} and status in ('queued', 'running') returning id`
    return ended.length > 0
  })

  /** Cancels the queued and running runs. */
  const cancelLive = Effect.fnUntraced(function* (id: BacktestId, because: string) {
    const live = yield* sql<{ id: RunId; contextName: string }>`
      select run.id, run.context_name from kb.agent_runs run where run.backtest_id = ${id} and ${isLive} order by run.id`
    for (const run of live)
      yield* Effect.catchTag(endings.cancel(run, { because }), "RunNotInState", () => Effect.void)
  })

  return { cancelLive, countLive, end, isLive, spentMicros }
})

// The limits of backtests, with their units in their names; limits on a person's input are in `domain/backtest.ts`.

const backtestLimits = {
  /** Backtests of one project per transaction. */
  batchBacktests: 20,
  /** Queued and running runs of one backtest; keeping few makes it cheap to stop. */
  liveRuns: 8,
  /** Positions of the feed per query. */
  pagePlaces: 2_000,
  /** Events of the window that are examined in all. */
  lookedEvents: 500_000
} as const
