/**
 * What an agent may have left undone: objects, each with the event that stands for it.
 *
 * Flow: graph → outbox → **dispatch** → run → tool → task
 *
 * For an object that is the event of its newest version of a kind that the agent
 * reacts to. How the agent stands to it is read from its newest entry, or from
 * the number that is left when the entry is no longer kept. A page looks at a
 * bounded number of objects, by index, however much the agent has handled.
 */
import type { Agent } from "@tropism/domain/agent"
import type { GraphEvent } from "@tropism/domain/graph"
import type { EntryId, GraphEventId, ObjectId } from "@tropism/domain/ids"
import type { EntryStatus } from "@tropism/domain/processing"
import type { NamedObject } from "@tropism/domain/named-object"
import { Effect } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { lastId, orDie, ProjectTransaction } from "../database/database.ts"
import { objectNamed } from "../graph/object-names.ts"
import { dispatchLimits } from "../limits.ts"

/** An event and how an agent stands to it. */
export interface Subject extends Omit<
  GraphEvent,
  "id" | "position" | "approvedBy" | "runId" | "toolCallId" | "taskId" | "createdAt"
> {
  readonly eventId: GraphEventId
  readonly createdAt: Date
  readonly isDispatched: boolean
  /** The newest attempt, when there was any and it is still kept. */
  readonly entryId: EntryId | null
  readonly entryStatus: EntryStatus | null
  readonly attempt: number | null
  /** How many of the attempts were not skipped. */
  readonly tries: number | null
  readonly entryReason: string | null
  readonly entryError: string | null
  /** Whether an entry of this version or a later one was completed and is no longer kept. */
  readonly wasHandled: boolean
}

/** A part of the objects of an agent's types. */
export interface Looked {
  /** Those that the agent has not handled, newest object first. */
  readonly subjects: ReadonlyArray<Subject & { readonly subject: NamedObject }>
  /** The object up to which was looked, when there are more behind it. */
  readonly lookedTo: ObjectId | null
}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export interface Subjects {
  /** Objects that the agent has not handled, after a given one; fewer than `limit` when the look was at its bound. */
  readonly page: (agent: Agent, before: string | undefined, limit: number) => Read<Looked>
  /** The events that stand for objects; none for an object that is not there or has no event that concerns the agent. */
  readonly ofObjects: (agent: Agent, ids: ReadonlyArray<ObjectId>) => Read<ReadonlyArray<Subject>>
  readonly ofEvents: (agent: Agent, ids: ReadonlyArray<GraphEventId>) => Read<ReadonlyArray<Subject>>
  /** The newest events of objects and relationships, of whatever kind, in the order of the ids. */
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

  // Each is asked by index for each row: the limits keep the planner from reading whole tables for a page.
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

  /** The newest version of an object whose event is of a kind that the agent reacts to. */
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
    // Each type by its own index, so that a rare one is found among many others.
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
