/**
 * Collects the input of `explain`: the agents as of an event's dispatch, and their processing entries.
 *
 * One agent or a page of them takes the same three queries, and one more when the object was purged. Definitions come from the versions at
 * the time of the dispatch. Nothing is judged here.
 */
import type { Explanation } from "@tropism/api/explanations-api"
import type { Agent } from "@tropism/domain/agent"
import {
  type Explained,
  type ExplainedAgent,
  explainEvent,
  explainOccurrence,
  type Handling
} from "@tropism/domain/explanation"
import { type GraphEvent, isPurged } from "@tropism/domain/graph"
import type { AgentId, GraphEventId, EntryId, ObjectId } from "@tropism/domain/ids"
import type { NamedObject } from "@tropism/domain/named-object"
import type { PendingEvent, EntryStatus } from "@tropism/domain/processing"
import { findRefusal } from "@tropism/domain/refusal"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { decodeDefinition } from "../agents/agents.ts"
import { lastId, orDie, ProjectTransaction } from "../database/database.ts"
import { objectNamed } from "../graph/objects.ts"
import { Purges } from "../graph/provenance.ts"
import { dispatchLimits } from "../limits.ts"
import { makeOccurrences, RetentionDays } from "../runs/processing-log.ts"
import { type EntryRow, entryTold, toEntry } from "../runs/run-queries.ts"
import { Projects } from "../tenancy/projects.ts"

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class Explanations extends Context.Service<
  Explanations,
  {
    /** Explains an event to one agent, even a deleted one; undefined when there is no such agent. */
    readonly one: (event: GraphEvent, agentId: AgentId) => Read<Explanation | undefined>
    /** Does the same for an event of an external server; undefined when there is no such occurrence or agent. */
    readonly ofOccurrence: (id: GraphEventId, agentId: AgentId) => Read<Explanation | undefined>
    /**
     * Explains an external event to the agents of the project that were not deleted before it, newest first; undefined when there is no
     * such occurrence.
     */
    readonly listOfOccurrence: (
      id: GraphEventId,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Explanation & { readonly id: AgentId }> | undefined>
    /** Explains an event to the agents of the project that were not deleted before it, newest first. */
    readonly list: (
      event: GraphEvent,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Explanation & { readonly id: AgentId }>>
  }
>()("@tropism/server/dispatch/Explanations") {
  static readonly layer = Layer.effect(
    Explanations,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const retentionDays = yield* RetentionDays
      const purges = yield* Purges
      const occurrences = yield* makeOccurrences

      const dispatchOf = Effect.fnUntraced(function* (event: GraphEvent) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ dispatchedAt: Date | null }>`
          select dispatched_at from kb.graph_events where id = ${event.id} and project_id = ${projectId}`
        return row?.dispatchedAt ?? null
      })

      const agentsWhere = Effect.fnUntraced(function* (
        where: Statement.Fragment,
        dispatchedAt: Date | null,
        limit: number
      ) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<AgentRow>`
          select agent.id, agent.name, agent.created_at, agent.deleted_at, agent.enabled, agent.disabled_reason, agent.updated_at,
            now() - make_interval(days => ${retentionDays}::int) as logged_since,
            version.version, version.definition, break.since as enabled_since
          from kb.agents agent
          left join lateral (
            select version, definition from kb.agent_versions
            where agent_id = agent.id and created_at <= coalesce(${dispatchedAt}::timestamptz, now()) order by version desc limit 1
          ) version on true
          left join lateral (
            select min(later.created_at) as since from kb.agent_versions later
            where later.agent_id = agent.id and later.version <= version.version and later.version > coalesce((
              select max(version) from kb.agent_versions disabled
              where disabled.agent_id = agent.id and disabled.version <= version.version and not (disabled.definition->>'enabled')::boolean), 0)
          ) break on true
          where agent.project_id = ${projectId} and ${where} order by agent.id desc limit ${limit}`
      })

      const handlingsOf = Effect.fnUntraced(function* (
        eventId: GraphEventId,
        agentIds: ReadonlyArray<AgentId>
      ) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<EntryRow & Pick<Handling, "runStatus" | "waitMessage">>`
          select distinct on (entry.agent_id) ${entryTold(sql, sql`entry`)}, run.status as run_status,
            case when run.status = 'queued' and run.waits_for is not null then run.wait_message end as wait_message
          from kb.agent_processing_log entry left join kb.agent_runs run on run.id = entry.run_id
          where entry.project_id = ${projectId} and (entry.event_id = ${eventId} or entry.occurrence_id = ${eventId}) and entry.agent_id = any(${agentIds}::uuid[])
          order by entry.agent_id, entry.attempt desc`
        return new Map(
          rows.map((row): [AgentId, Handling] => [
            row.agentId,
            { entry: toEntry(row), runStatus: row.runStatus, waitMessage: row.waitMessage }
          ])
        )
      })

      const explainTo = Effect.fnUntraced(function* (
        event: GraphEvent,
        where: Statement.Fragment,
        limit: number
      ) {
        const dispatchedAt = yield* dispatchOf(event)
        const purge = isPurged(event) ? yield* purges.of(event.entityId) : undefined
        const agents = yield* agentsWhere(where, dispatchedAt, limit)
        const handlings = yield* handlingsOf(
          event.id,
          agents.map(({ id }) => id)
        )
        return yield* Effect.forEach(agents, (row) =>
          Effect.map(toExplained(row, dispatchedAt), (agent) => {
            const handling = handlings.get(row.id)
            return toExplanation(
              row,
              event.id,
              handling,
              explainEvent(agent, event, dispatchedAt?.toISOString() ?? null, handling, purge)
            )
          })
        )
      }, orDie)

      /** An external event counts as dispatched when it was stored. */
      const occurrenceTo = Effect.fnUntraced(function* (
        id: GraphEventId,
        where: Statement.Fragment,
        limit: number
      ) {
        const told = (yield* occurrences.getAll([id])).get(id)
        if (!told) return undefined
        const dispatchedAt = new Date(told.createdAt)
        const agents = yield* agentsWhere(
          sql`${where} and (agent.deleted_at is null or agent.deleted_at > ${told.createdAt}::timestamptz)`,
          dispatchedAt,
          limit
        )
        const handlings = yield* handlingsOf(
          id,
          agents.map((agent) => agent.id)
        )
        return yield* Effect.forEach(agents, (row) =>
          Effect.map(toExplained(row, dispatchedAt), (agent) => {
            const handling = handlings.get(row.id)
            return toExplanation(row, id, handling, explainOccurrence(agent, told, handling))
          })
        )
      }, orDie)

      const ofOccurrence = Effect.fn("Explanations.ofOccurrence")(function* (
        id: GraphEventId,
        agentId: AgentId
      ) {
        const found = yield* occurrenceTo(id, sql`agent.id = ${agentId}`, 1)
        return found?.[0]
      })

      const listOfOccurrence = Effect.fn("Explanations.listOfOccurrence")(
        (id: GraphEventId, before: string | undefined, limit: number) =>
          occurrenceTo(id, sql`agent.id < ${before ?? lastId}::uuid`, limit)
      )

      const one = Effect.fn("Explanations.one")(function* (event: GraphEvent, agentId: AgentId) {
        const [found] = yield* explainTo(event, sql`agent.id = ${agentId}`, 1)
        return found
      })

      const list = Effect.fn("Explanations.list")(
        (event: GraphEvent, before: string | undefined, limit: number) =>
          explainTo(
            event,
            sql`agent.id < ${before ?? lastId}::uuid
              and (agent.deleted_at is null or agent.deleted_at > ${event.createdAt}::timestamptz)`,
            limit
          )
      )

      return Explanations.of({ one, list, ofOccurrence, listOfOccurrence })
    })
  )
}

interface AgentRow {
  readonly id: AgentId
  readonly name: string
  readonly createdAt: Date
  readonly deletedAt: Date | null
  readonly enabled: boolean
  readonly disabledReason: string | null
  readonly updatedAt: Date
  readonly version: number | null
  readonly definition: unknown
  readonly enabledSince: Date | null
  readonly loggedSince: Date
}

const toExplained = Effect.fnUntraced(function* (row: AgentRow, dispatchedAt: Date | null) {
  const definition = row.version === null ? null : yield* Effect.orDie(decodeDefinition(row.definition))
  // An automatic disabling stores its reason in the row; a person's does not.
  const isStopped =
    !row.enabled && row.disabledReason !== null && row.updatedAt <= (dispatchedAt ?? row.updatedAt)
  const agent: ExplainedAgent = {
    id: row.id,
    createdAt: row.createdAt.toISOString(),
    deletedAt: row.deletedAt?.toISOString() ?? null,
    definition,
    enabledSince: definition?.enabled === true ? (row.enabledSince?.toISOString() ?? null) : null,
    stopped: isStopped ? { since: row.updatedAt.toISOString(), reason: row.disabledReason } : null,
    loggedSince: row.loggedSince.toISOString()
  }
  return agent
})

const toExplanation = (
  row: AgentRow,
  eventId: GraphEventId,
  handling: Handling | undefined,
  explained: Explained
) => ({
  id: row.id,
  agentId: row.id,
  agentName: row.name,
  agentVersion: row.version,
  eventId,
  ...explained,
  entry: handling?.entry ?? null,
  run: runOf(handling)
})

const runOf = (handling: Handling | undefined): Explanation["run"] =>
  handling?.entry.runId && handling.runStatus
    ? { id: handling.entry.runId, status: handling.runStatus }
    : null

// Lists the events that an agent has not handled, with the reasons.
//
// Enabling an agent never replays old events; they are found here. Events that the agent's own rule excludes (its own changes, other
// properties) are not pending, nor are those in progress.

export class PendingEvents extends Context.Service<
  PendingEvents,
  {
    /** Returns a page of at most `limit` objects, newest first, and the object after which the next page begins. */
    readonly page: (
      agent: Agent,
      before: string | undefined,
      limit: number
    ) => Effect.Effect<
      { readonly items: ReadonlyArray<PendingEvent>; readonly nextCursor: string | null },
      never,
      ProjectTransaction
    >
  }
>()("@tropism/server/dispatch/PendingEvents") {
  static readonly layer = Layer.effect(
    PendingEvents,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const projects = yield* Projects
      const subjects = yield* makeSubjects

      const page = Effect.fn("PendingEvents.page")(function* (
        agent: Agent,
        before: string | undefined,
        limit: number
      ) {
        const { reactionConfig } = agent
        if (reactionConfig === null) return { items: [], nextCursor: null }
        const [row] = yield* sql<{
          enabledAt: Date | null
        }>`select enabled_at from kb.agents where id = ${agent.id}`
        const { chainLimits } = yield* projects.settings
        const { lookedTo, subjects: found } = yield* subjects.page(agent, before, limit)
        const items = found.flatMap((subject) => {
          const refusal = findRefusal(agent.id, reactionConfig, subject, chainLimits)
          // The cap of a chain withheld an event that matches the agent's own rule.
          return refusal === undefined || refusal.rule === "chainDepth"
            ? [toPendingEvent(subject, agent, row?.enabledAt ?? null)]
            : []
        })
        return { items, nextCursor: lookedTo }
      }, orDie)

      return PendingEvents.of({ page })
    })
  )
}

const toPendingEvent = (
  subject: Looked["subjects"][number],
  agent: Agent,
  enabledAt: Date | null
): PendingEvent => ({
  objectId: subject.entityId as PendingEvent["objectId"],
  objectType: subject.objectType,
  subject: subject.subject,
  version: subject.version,
  eventId: subject.eventId,
  entryId: subject.entryId,
  ...whyOf(subject, agent, enabledAt)
})

const whyOf = (
  { createdAt, entryError, entryReason, entryStatus, refusals }: Subject,
  agent: Agent,
  enabledAt: Date | null
): Pick<PendingEvent, "why" | "reason"> => {
  if (entryStatus === "skipped") return { why: "skipped", reason: entryReason ?? "The agent was busy" }
  if (entryStatus === "failed" || entryStatus === "abandoned")
    return { why: entryStatus, reason: entryError ?? `The entry is ${entryStatus}` }
  const noted = refusals.find((refusal) => refusal.agentId === agent.id)
  if (noted) return { why: "refused", reason: noted.reason }
  return enabledAt === null || createdAt < enabledAt
    ? { why: "notEnabled", reason: "The agent was not enabled when this came; enabling it replays nothing" }
    : { why: "notConcerned", reason: "The agent did not have this rule when this came" }
}

// Finds the objects that an agent may not have handled, each with its representative event.
//
// The event is that of the object's newest version of a kind that the agent reacts to. Its status comes from the newest entry, or from the
// version number that remains when the entry is deleted. A page reads a limited number of objects by index, however many the agent has
// handled.

/** An event with its status for an agent. */
export interface Subject extends Omit<
  GraphEvent,
  "id" | "position" | "approvedBy" | "runId" | "toolCallId" | "taskId" | "createdAt"
> {
  readonly eventId: GraphEventId
  readonly createdAt: Date
  readonly isDispatched: boolean
  /** The newest attempt, if there was one and it is still stored. */
  readonly entryId: EntryId | null
  readonly entryStatus: EntryStatus | null
  readonly attempt: number | null
  /** How many of the attempts were not skipped. */
  readonly tries: number | null
  readonly entryReason: string | null
  readonly entryError: string | null
  /** Whether an entry of this version or a later one was completed and has been deleted. */
  readonly wasHandled: boolean
}

/** A part of the objects of an agent's types. */
interface Looked {
  /** The objects that the agent has not handled, newest first. */
  readonly subjects: ReadonlyArray<Subject & { readonly subject: NamedObject }>
  /** The last object that was examined, when there are more after it. */
  readonly lookedTo: ObjectId | null
}

export interface Subjects {
  /** Returns objects that the agent has not handled, after the given one; fewer than `limit` when the search reached its limit. */
  readonly page: (agent: Agent, before: string | undefined, limit: number) => Read<Looked>
  /** Returns the events of objects; none for an object that is missing or has no event of interest to the agent. */
  readonly ofObjects: (agent: Agent, ids: ReadonlyArray<ObjectId>) => Read<ReadonlyArray<Subject>>
  readonly ofEvents: (agent: Agent, ids: ReadonlyArray<GraphEventId>) => Read<ReadonlyArray<Subject>>
  /** Returns the newest events of objects and relationships, of any kind, in the order of the ids. */
  readonly ofNewest: (agent: Agent, ids: ReadonlyArray<string>) => Read<ReadonlyArray<Subject>>
}

export const makeSubjects = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const columns = sql`event.id as event_id, event.entity_type, event.entity_id, event.object_type, event.version, event.type,
    event.changed_properties, event.snapshot, event.actor_type, event.actor_id, event.root_event_id, event.depth, event.undoes, event.refusals,
    event.created_at, event.position is not null as is_dispatched, entry.id as entry_id, entry.status as entry_status, entry.attempt, entry.tries,
    entry.reason as entry_reason, entry.error_message as entry_error, coalesce(handled.object_version >= event.version, false) as was_handled`

  const attemptsAt = (entry: Statement.Fragment, agent: Agent) => sql`
    ${entry}.agent_id = ${agent.id} and ${entry}.graph_object_id = event.entity_id
      and ${entry}.object_version = event.version and ${entry}.event_type = event.type`

  // The limits make the planner use an index for each row instead of reading whole tables for a page.
  const stand = (agent: Agent) => sql`
    left join lateral (
      select id, status, attempt, reason, error_message, attempt - case when attempt = 1 then (status = 'skipped')::int else (
        select count(*)::int from kb.agent_processing_log skipped
        where ${attemptsAt(sql`skipped`, agent)} and skipped.status = 'skipped'
      ) end as tries from kb.agent_processing_log entry where ${attemptsAt(sql`entry`, agent)}
      order by entry.attempt desc limit 1
    ) entry on true
    left join lateral (
      select object_version from kb.agent_handled_versions handled
      where handled.agent_id = ${agent.id} and handled.graph_object_id = event.entity_id limit 1
    ) handled on true`

  /** Selects an object's newest version whose event is of a kind that the agent reacts to. */
  const concerning = ({ reactionConfig }: Agent) => {
    const events = reactionConfig?.events ?? []
    return sql`case when ${events.includes("updated")} and object.version > 1 then object.version when ${events.includes("created")} then 1 end`
  }

  const page = Effect.fn("Subjects.page")(function* (
    agent: Agent,
    before: string | undefined,
    limit: number
  ) {
    const { projectId } = yield* ProjectTransaction
    const types = agent.reactionConfig?.objectTypes ?? []
    const last = before ?? lastId
    const ofType = (condition: Statement.Fragment) => sql`
      select object.id, ${concerning(agent)} as version from kb.graph_objects object
      where object.project_id = ${projectId} and object.deleted_at is null and object.id < ${last} ${condition}
      order by object.id desc limit ${dispatchLimits.pendingLookObjects}`
    // Query each type by its own index, so that a rare type is found among many objects.
    const objects =
      types.length === 0
        ? ofType(sql``)
        : sql`select object.* from unnest(${types}::text[]) as wanted(type)
            cross join lateral (${ofType(sql`and object.type = wanted.type`)}) object`
    const rows = yield* sql<
      Subject & { readonly subject: NamedObject; readonly looked: number; readonly lookedTo: ObjectId | null }
    >`
      with looked as materialized (
        select id, version from (${objects}) object order by id desc limit ${dispatchLimits.pendingLookObjects}
      ), found as (
        select looked.id as object_id, ${objectNamed(sql, sql`event.project_id`, sql`looked.id`)} as subject, ${columns} from looked
        cross join lateral (
          select * from kb.graph_events event where event.entity_id = looked.id and event.version = looked.version limit 1
        ) event
        ${stand(agent)}
        where event.position is not null and (entry.status is null or entry.status in ('failed', 'abandoned', 'skipped'))
          and coalesce(handled.object_version < event.version, true)
        order by looked.id desc limit ${limit}
      )
      select look.*, found.* from (
        select count(*)::int as looked, (select id from looked order by id limit 1) as looked_to from looked
      ) look left join found on true order by found.object_id desc`
    const subjects = rows.filter((row) => row.eventId !== null)
    const isCut = subjects.length === limit
    const end = isCut ? (subjects.at(-1)?.entityId as ObjectId | undefined) : rows[0]?.lookedTo
    const looked: Looked = {
      subjects,
      lookedTo: isCut || rows[0]?.looked === dispatchLimits.pendingLookObjects ? (end ?? null) : null
    }
    return looked
  }, orDie)

  const ofObjects = Effect.fn("Subjects.ofObjects")(function* (agent: Agent, ids: ReadonlyArray<ObjectId>) {
    const { projectId } = yield* ProjectTransaction
    return yield* sql<Subject>`
      select ${columns} from kb.graph_objects object
      join kb.graph_events event on event.entity_id = object.id and event.version = ${concerning(agent)}
      ${stand(agent)}
      where object.project_id = ${projectId} and object.id = any(${ids}::uuid[]) and object.deleted_at is null`
  }, orDie)

  const ofEvents = Effect.fn("Subjects.ofEvents")(function* (agent: Agent, ids: ReadonlyArray<GraphEventId>) {
    const { projectId } = yield* ProjectTransaction
    return yield* sql<Subject>`
      select ${columns} from kb.graph_events event ${stand(agent)}
      where event.project_id = ${projectId} and event.id = any(${ids}::uuid[])`
  }, orDie)

  const ofNewest = Effect.fn("Subjects.ofNewest")(function* (agent: Agent, ids: ReadonlyArray<string>) {
    const { projectId } = yield* ProjectTransaction
    return yield* sql<Subject>`
      select ${columns} from unnest(${ids}::uuid[]) with ordinality as wanted(id, place)
      cross join lateral (
        select * from kb.graph_events event where event.entity_id = wanted.id and event.project_id = ${projectId}
        order by event.version desc limit 1
      ) event
      ${stand(agent)} order by wanted.place`
  }, orDie)

  const subjects: Subjects = { page, ofObjects, ofEvents, ofNewest }
  return subjects
})
