/**
 * Turns committed events into processing entries and queued runs, once for each event and agent.
 *
 * One transaction claims events, opens their processing entries, queues the runs that may begin at once and marks the events; an entry that
 * must wait has no run, and the releaser starts it later. Agents with few places left are locked while their runs are counted. A crash
 * before the commit leaves everything to do again, one after it nothing.
 *
 * **Invariant** A unique key, not this code, keeps an agent from handling an event twice. Projects take turns.
 */
import { isPurged, type NotedRefusal } from "@tropism/domain/graph"
import type { AgentId, EntryId, ProjectId, RunId, GraphEventId } from "@tropism/domain/ids"
import { findOscillation, oscillationBounds, type PropertyTurns } from "@tropism/domain/oscillation"
import type { ReactionConfig } from "@tropism/domain/reaction"
import { findRefusal, type Told } from "@tropism/domain/refusal"
import { isDroppedAtWork, isExclusive, isImmediate } from "@tropism/domain/waiting"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { Database, keepingPlans, orDie, ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { dispatchLimits } from "../limits.ts"
import { drive, share, untilNotified, Notifier } from "../outbox/notifier.ts"
import { type ClaimedEvent, type Dispatched, Outbox } from "../outbox/outbox.ts"
import { takePlaces } from "../runs/chain-caps.ts"
import { type NewEntry, ProcessingLog } from "../runs/processing-log.ts"
import { Runs } from "../runs/run-store.ts"
import type { NewRun } from "../runs/run-types.ts"
import { Projects } from "../tenancy/projects.ts"
import { beginningToWait, allowanceOf, lockAgents, type Standing, standingsOf } from "./agent-capacity.ts"
import { reactionRun } from "./reaction-run.ts"
import { makeReleases } from "./releases.ts"

/** How long events collect between rounds; a round costs nearly the same for one event and for many. */
export class DispatchPauseMs extends Context.Reference<number>("@tropism/server/dispatch/DispatchPauseMs", {
  defaultValue: () => dispatchLimits.roundPauseMs
}) {}

/** An agent that an event triggers. */
interface Match {
  readonly event: ClaimedEvent
  readonly candidate: Candidate
}

/** A match that gets its run at once. */
interface Immediate extends Match {
  readonly entryId: EntryId
  readonly runId: RunId
}

/** The refusals of one round, by event. */
type Refusals = Map<ClaimedEvent["id"], Array<NotedRefusal>>

export class Dispatcher extends Context.Service<
  Dispatcher,
  {
    /** Dispatches until interrupted. */
    readonly run: Effect.Effect<never>
    /**
     * Dispatches one batch of each project that has events; true when there were any. A server that found the feed locked meanwhile leaves
     * the new events to this one's next round.
     */
    readonly round: Effect.Effect<boolean>
  }
>()("@tropism/server/dispatch/Dispatcher") {
  static readonly layer = Layer.effect(
    Dispatcher,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const database = yield* Database
      const outbox = yield* Outbox
      const log = yield* ProcessingLog
      const runs = yield* Runs
      const projects = yield* Projects
      const ids = yield* Ids
      const notifier = yield* Notifier
      const { release } = yield* makeReleases
      const pauseMs = yield* DispatchPauseMs

      const withSql = Effect.provideService(SqlClient.SqlClient, sql)

      /** Judges each candidate and records why the others are refused. */
      const judge = Effect.fnUntraced(function* (events: ReadonlyArray<ClaimedEvent>, refusals: Refusals) {
        const byId = new Map(events.map((event) => [event.id, event]))
        const [{ chainLimits }, candidates] = yield* database.together(
          projects.settings,
          withSql(findCandidates(events))
        )
        const matches: Array<Match> = []
        for (const candidate of candidates) {
          for (const eventId of candidate.eventIds) {
            const event = byId.get(eventId)
            if (event === undefined || isEmptied(event)) continue
            const refusal = findRefusal(candidate.agentId, candidate.config, event, chainLimits)
            if (refusal === undefined) matches.push({ event, candidate })
            else note(refusals, event, candidate, refusal)
          }
        }
        const oscillations = yield* withSql(findOscillations([...new Set(matches.map(({ event }) => event))]))
        for (const { event, candidate } of matches) {
          const oscillation = oscillations.get(event.id)
          if (oscillation) note(refusals, event, candidate, oscillation)
        }
        const place = new Map(events.map(({ id }, index) => [id, index]))
        const awake = matches.filter(({ event }) => !oscillations.has(event.id))
        return awake.toSorted((a, b) => (place.get(a.event.id) ?? 0) - (place.get(b.event.id) ?? 0))
      })

      /** Opens waiting entries; those that may begin at once are released at the end of the transaction. */
      const openWaiting = Effect.fnUntraced(function* (
        matches: ReadonlyArray<Match & { readonly entryId?: EntryId }>,
        standings: ReadonlyMap<AgentId, Standing>
      ) {
        if (matches.length === 0) return
        const seen = new Set<AgentId>()
        const entries: Array<NewEntry> = []
        for (const match of matches) {
          const { agentId } = match.candidate
          const standing = standings.get(agentId)
          const isFirst = !seen.has(agentId) && standing?.hasWaiting !== true
          seen.add(agentId)
          const id = match.entryId ?? ((yield* ids.next) as EntryId)
          if (standing !== undefined) entries.push(waitingEntry(id, match, standing, isFirst))
        }
        const opened = yield* log.open(entries)
        yield* log.skip(entries.filter(({ id }) => !opened.has(id)))
        yield* sql.afterCommit(notifier.signal("releases"))
      })

      /** Opens entries with their runs, takes places in the chains and queues the runs that got both. */
      const wakeAtOnce = Effect.fnUntraced(function* (
        matches: ReadonlyArray<Match>,
        refusals: Refusals,
        standings: ReadonlyMap<AgentId, Standing>
      ) {
        if (matches.length === 0) return
        const wanted: Array<Immediate> = []
        for (const match of matches)
          wanted.push({
            ...match,
            entryId: (yield* ids.next) as EntryId,
            runId: (yield* ids.next) as RunId
          })
        const opened = yield* log.open(wanted.map(immediateEntry))
        const late = wanted.filter(({ entryId }) => !opened.has(entryId))
        yield* openWaiting(late, standings)
        const woken = wanted.filter(({ entryId }) => opened.has(entryId))
        const caps = yield* withSql(takePlaces(woken.map(({ event }) => [event.rootEventId]))).pipe(
          Effect.provideService(Projects, projects)
        )
        const granted: Array<Immediate> = []
        const capped: Array<Immediate> = []
        for (const [index, match] of woken.entries()) {
          const cap = caps[index]?.get(match.event.rootEventId)
          if (cap) note(refusals, match.event, match.candidate, cap)
          ;(cap ? capped : granted).push(match)
        }
        if (capped.length > 0) yield* log.withdraw(capped.map(({ entryId }) => entryId))
        yield* runs.queue(granted.map(newRun))
      })

      /** Returns the state of the triggered agents: which begin all their runs at once, and which of the others are locked. */
      const standingsFor = Effect.fnUntraced(function* (matches: ReadonlyArray<Match>) {
        const counts = Map.groupBy(matches, ({ candidate }) => candidate.agentId)
        const countOf = ({ agentId }: Standing): number => counts.get(agentId)?.length ?? 0
        const begins = (standing: Standing): boolean => beginsAtOnce(standing, countOf(standing))
        const isSure = (standing: Standing): boolean =>
          begins(standing) && hasPlenty(standing, countOf(standing))
        const idsOf = (standings: ReadonlyArray<Standing>) => standings.map(({ agentId }) => agentId)
        const seen = yield* withSql(standingsOf([...counts.keys()]))
        const unsure = seen.filter((standing) => !isSure(standing))
        // Lock agents before chains, in the releaser's order. An agent locked elsewhere is released after the commit, and does not delay
        // the others.
        const held = new Set(yield* withSql(lockAgents(idsOf(unsure), "pass")))
        // Only under the agent's lock is the number of its last places certain: a trigger may have just taken one.
        const last = unsure.filter((standing) => held.has(standing.agentId) && begins(standing))
        const counted = yield* withSql(standingsOf(idsOf(last)))
        const atOnce = new Set(idsOf([...seen.filter(isSure), ...counted.filter(begins)]))
        const standings = new Map([...seen, ...counted].map((each) => [each.agentId, each]))
        return { standings, atOnce, held: [...held].filter((id) => !atOnce.has(id)) }
      })

      const batch = Effect.gen(function* () {
        const events = yield* outbox.claim(dispatchLimits.batchEvents)
        if (events.length === 0) return 0
        const refusals: Refusals = new Map()
        const matches = yield* judge(events, refusals)
        const { atOnce, held, standings } = yield* standingsFor(matches)
        const isAtOnce = ({ candidate }: Match): boolean => atOnce.has(candidate.agentId)
        yield* wakeAtOnce(matches.filter(isAtOnce), refusals, standings)
        yield* openWaiting(
          matches.filter((match) => !isAtOnce(match)),
          standings
        )
        yield* outbox.settle(events.map(({ id }): Dispatched => ({ id, refusals: refusals.get(id) ?? [] })))
        if (held.length > 0) yield* release(held)
        yield* CrashPoint.hit("dispatch.beforeCommit")
        return events.length
      }).pipe(orDie)

      /** Whether the last round left undispatched events in a project. */
      let hasBacklog = false

      const round = Effect.gen(function* () {
        const due = yield* orDie(
          sql<{ projectId: ProjectId }>`select project_id from kb.projects_with_events() as project_id`
        )
        let isAnyDispatched = false
        hasBacklog = false
        for (const { projectId } of due) {
          const count = yield* share(
            "Dispatcher",
            projectId,
            keepingPlans(database.inProject(projectId, batch))
          )
          if (count === 0) continue
          hasBacklog ||= count === dispatchLimits.batchEvents
          isAnyDispatched = true
          yield* CrashPoint.hit("dispatch.afterCommit")
          yield* notifier.signal(`feed:${projectId}`)
        }
        if (isAnyDispatched) yield* notifier.signal("deliveries")
        return isAnyDispatched
      }).pipe(Effect.withSpan("Dispatcher.round"))

      const gather = Effect.suspend(() => (hasBacklog || pauseMs === 0 ? Effect.void : Effect.sleep(pauseMs)))
      const pacedRound = Effect.tap(round, (isAny) => (isAny ? gather : Effect.void))

      return Dispatcher.of({
        run: drive("Dispatcher", "events", untilNotified, pacedRound).pipe(
          Effect.provideService(Notifier, notifier)
        ),
        round
      })
    })
  )
}

/** Whether a purge erased the event's content, so that a run would find nothing. A deletion event has no other content and still counts. */
const isEmptied = (event: ClaimedEvent): boolean => isPurged(event) && event.type !== "deleted"

const note = (refusals: Refusals, event: ClaimedEvent, { agentId }: Candidate, told: Told): void => {
  const noted = { agentId, rule: told.rule, reason: told.reason }
  refusals.set(event.id, [...(refusals.get(event.id) ?? []), noted])
}

/** Whether all of an agent's matches may begin now: its rule requires no delay, it has no waiting entries, and there are places. */
const beginsAtOnce = (standing: Standing, count: number): boolean =>
  standing.config !== null &&
  isImmediate(standing.config) &&
  !standing.hasWaiting &&
  allowanceOf(standing).runs >= count

/** Whether enough places remain after these runs for any concurrent triggers. */
const hasPlenty = ({ liveRuns, maxPendingRuns }: Standing, count: number): boolean =>
  maxPendingRuns - liveRuns - count >= dispatchLimits.sparePlaces

const entryOf = (id: EntryId, { event, candidate }: Match) => ({
  id,
  agentId: candidate.agentId,
  entityType: event.entityType,
  graphObjectId: event.entityId,
  objectVersion: event.version,
  eventType: event.type,
  eventId: event.id,
  attempt: 1
})

const immediateEntry = (match: Immediate): NewEntry => ({
  ...entryOf(match.entryId, match),
  runId: match.runId,
  exclusive: isExclusive(match.candidate.config),
  dueAt: null,
  reason: null,
  standsInLine: false,
  skips: false
})

const isDropped = ({ candidate, event }: Match): boolean => isDroppedAtWork(candidate.config, event.type)

const waitingEntry = (id: EntryId, match: Match, standing: Standing, isFirst: boolean): NewEntry => ({
  ...entryOf(id, match),
  ...beginningToWait(match.candidate.config, standing, isFirst),
  // A run that a kill switch paused does not count as active: events are kept until it is released.
  skips: isDropped(match) && !standing.isStopped
})

const newRun = ({ event, candidate, runId }: Immediate): NewRun =>
  reactionRun(runId, candidate, [
    {
      eventId: event.id,
      eventType: event.type,
      entityType: event.entityType,
      graphObjectId: event.entityId,
      objectType: event.objectType,
      objectVersion: event.version,
      rootEventId: event.rootEventId,
      depth: event.depth
    }
  ])

// Finds the agents that may react to events.
//
// One index query per type and kind of event that occurs, so the cost follows the listening agents and not all agents. The pure rules of
// the domain judge the matches afterwards.

/** An agent that listens to events of this kind. */
interface Candidate {
  readonly agentId: AgentId
  readonly agentVersion: number
  readonly config: ReactionConfig
  /** The events that it listens to. */
  readonly eventIds: ReadonlyArray<GraphEventId>
}

/** Returns the enabled agents that listen to any of the events, by id; events from before an agent was enabled are excluded. */
const findCandidates = Effect.fn("findCandidates")(function* (events: ReadonlyArray<ClaimedEvent>) {
  if (events.length === 0) return []
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const rows = JSON.stringify(
    events.map(({ id, entityType, objectType, type, createdAt }) => ({
      id,
      entityType,
      objectType,
      type,
      createdAt: createdAt.toISOString()
    }))
  )
  return yield* sql<Candidate>`
    with event as materialized (
      select * from jsonb_to_recordset(${rows}::text::jsonb)
        as event(id uuid, "entityType" text, "objectType" text, type text, "createdAt" timestamptz)
    ),
    heard as materialized (
      select kind.*, listener.agent_id
      from (select distinct "entityType", "objectType", type from event) kind
      cross join lateral (
        select distinct agent_id from kb.agent_reactions
        where project_id = ${projectId} and entity_type = kind."entityType"
          and object_type = any(array[kind."objectType", '*']) and event_type = kind.type
        offset 0
      ) listener
    )
    select agent.id as agent_id, agent.version as agent_version, agent.reaction_config as config, array_agg(event.id) as event_ids
    from heard
    join event using ("entityType", "objectType", type)
    cross join lateral (
      select * from kb.agents where id = heard.agent_id and enabled and deleted_at is null offset 0
    ) agent
    where date_trunc('milliseconds', agent.enabled_at) <= event."createdAt"
    group by agent.id, agent.version, agent.reaction_config
    order by agent.id`
}, orDie)

// Finds changes by which agents only revert what other agents did.
//
// One query for a batch, and a limited number of versions for each event, so the cost does not follow an object's history. Only agents'
// changes without a person's approval are considered; a change by a person restarts the count.

/** Returns the events by which a property oscillates, with a sentence that describes it. */
const findOscillations = Effect.fn("findOscillations")(function* (
  events: ReadonlyArray<ClaimedEvent>
): Effect.fn.Return<ReadonlyMap<GraphEventId, Told>, never, SqlClient.SqlClient | ProjectTransaction> {
  const asked = events.filter(isByAgentAlone)
  if (asked.length === 0) return new Map()
  const turns = Map.groupBy(yield* readTurns(asked.map(({ id }) => id)), ({ eventId }) => eventId)
  const found = new Map<GraphEventId, Told>()
  for (const [eventId, ofEvent] of turns) {
    const reason = findOscillation(ofEvent)
    if (reason !== undefined) found.set(eventId, { rule: "oscillation", reason })
  }
  return found
})

/** With fewer versions no value can have returned often enough. */
const isByAgentAlone = ({ actorType, approvedBy, type, version }: ClaimedEvent): boolean =>
  type === "updated" && actorType === "agent" && approvedBy === null && version > oscillationBounds.returns

/** Reads the recent values of each changed property, as set by agents alone. */
const readTurns = Effect.fnUntraced(function* (eventIds: ReadonlyArray<GraphEventId>) {
  const sql = yield* SqlClient.SqlClient
  const { projectId } = yield* ProjectTransaction
  const { properties, versions, withinMs } = oscillationBounds
  return yield* sql<PropertyTurns & { readonly eventId: GraphEventId }>`
    select event.id as event_id, changed.property,
      array_agg(md5(coalesce((past.properties -> changed.property)::text, '')) order by past.version) as values
    from kb.graph_events event
    join lateral (
      select version, changed_properties, snapshot -> 'properties' as properties,
        bool_or(actor_type <> 'agent' or approved_by is not null) over (order by version desc) as is_before_person
      from kb.graph_events
      where entity_id = event.entity_id and version between event.version - ${versions - 1} and event.version
        and created_at > event.created_at - make_interval(secs => ${withinMs / 1_000}::float8)
      offset 0
    ) past on not past.is_before_person
    cross join lateral unnest(event.changed_properties[1:${properties}]) as changed(property)
    where event.project_id = ${projectId} and event.id = any(${eventIds}::uuid[]) and changed.property = any(past.changed_properties)
    group by event.id, changed.property`
}, orDie)
