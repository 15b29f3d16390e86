/**
 * Explains why each property of an object has its value, back to the root event.
 *
 * The last event that changed a property set its value. The object stores that version per property, so the cost does
 * not depend on the length of its history. The event's cause is a run, which an event woke, and so on to the root. Reads
 * tables of later modules and imports none of their code.
 */
import type { ActorType } from "@tropism/domain/actor"
import { byCodePoint } from "@tropism/domain/code-points"
import type { Purge } from "@tropism/domain/graph"
import type { GraphEventId, ObjectId, PromotionId, TaskId, ToolCallId, UserId } from "@tropism/domain/ids"
import { ownValue } from "@tropism/domain/json-diff"
import type { PropertyProvenance, Provenance, ProvenanceHop } from "@tropism/domain/provenance"
import type { TaskType } from "@tropism/domain/task"
import { Context, Effect, Layer, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { graphLimits } from "../limits.ts"
import type { ObjectRow } from "./recording.ts"

export class Provenances extends Context.Service<
  Provenances,
  {
    /**
     * Returns the cause of each property's value, or of one property, even when it was removed.
     *
     * **Details** A deleted object has its last values. Undefined when there is no such object; no entry for a property it never
     * had.
     */
    readonly of: (
      id: ObjectId,
      property: string | undefined
    ) => Effect.Effect<Provenance | undefined, never, ProjectTransaction>
  }
>()("@tropism/server/graph/Provenances") {
  static readonly layer = Layer.effect(
    Provenances,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient

      /** The object as it is or was at its deletion, and who deleted it. */
      const lastOf = Effect.fnUntraced(function* (id: ObjectId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<LastRow>`
          select object.id, object.type, object.key, object.properties, object.property_versions, object.version, deletion.event_id, deletion.actor_type,
            deletion.actor_id, agent.name as agent_name, deletion.approved_by, deletion.run_id, deletion.created_at as deleted_at
          from kb.graph_objects object
          left join kb.graph_object_versions deletion
            on object.deleted_at is not null and deletion.object_id = object.id and deletion.version = object.version
          left join kb.agents agent on agent.id = case deletion.actor_type when 'agent' then deletion.actor_id::uuid end
          where object.id = ${id} and object.project_id = ${projectId} and object.purged_at is null`
        return row
      })

      /** The newest version that changed each property, from the events alone; a restore sets none. */
      const versionsOf = Effect.fnUntraced(function* (id: ObjectId) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<{ property: string; version: number }>`
          select property, max(version)::int as version from kb.graph_events, unnest(changed_properties) property
          where entity_id = ${id} and project_id = ${projectId} and (type <> 'created' or version = 1) group by property`
        return new Map(rows.map(({ property, version }) => [property, version]))
      })

      /** The newest version that changed a property, even a removed one; undefined when it never existed. */
      const lastVersionOf = Effect.fnUntraced(function* (id: ObjectId, property: string) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<{ version: number }>`
          select version from kb.graph_events
          where entity_id = ${id} and project_id = ${projectId} and (type <> 'created' or version = 1) and ${property} = any(changed_properties)
          order by version desc limit 1`
        return row?.version
      })

      /** The version that set each current property, or the requested one. */
      const settersOf = Effect.fnUntraced(function* (object: LastRow, property: string | undefined) {
        const names =
          property === undefined ? Object.keys(object.properties).toSorted(byCodePoint) : [property]
        const isKnown = object.propertyVersions !== null || object.version === 1
        if (property !== undefined && !(isKnown && Object.hasOwn(object.properties, property))) {
          const version = yield* lastVersionOf(object.id, property)
          return version === undefined ? [] : [{ property, version }]
        }
        const versions = isKnown
          ? new Map(Object.entries(object.propertyVersions ?? {}))
          : yield* versionsOf(object.id)
        return names.map((name) => ({ property: name, version: versions.get(name) ?? 1 }))
      })

      /** The events that made versions of an object. */
      const originsOf = Effect.fnUntraced(function* (id: ObjectId, versions: ReadonlyArray<number>) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<OriginRow>`
          select origin.version, origin.actor_type, origin.actor_id, agent.name as agent_name, origin.approved_by,
            origin.id as event_id, origin.root_event_id, origin.created_at, call.id as call_id, call.tool, call.promotion_id,
            call.arguments ->> 'reasoning' as reasoning,
            case jsonb_typeof(call.arguments -> 'confidence') when 'number' then (call.arguments ->> 'confidence')::float8 end as confidence,
            task.id as task_id, task.number as task_number, task.type as task_type, task.title as task_title
          from kb.graph_events origin
          left join kb.agents agent on agent.id = case origin.actor_type when 'agent' then origin.actor_id::uuid end
          left join kb.tool_calls call on call.id = origin.tool_call_id
          left join kb.tasks task on task.id = origin.task_id
          where origin.entity_id = ${id} and origin.project_id = ${projectId} and origin.version = any(${versions}::int[])`
      })

      /** Follows each event back to its root; the newest event that woke a run is its cause. */
      const hopsFrom = Effect.fnUntraced(function* (starts: ReadonlyArray<GraphEventId>) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<HopRow>`
          with recursive hop as (
            select id as start_id, id as event_id, 1 as place from kb.graph_events where id = any(${starts}::uuid[]) and project_id = ${projectId}
            union all
            select hop.start_id, cause.id, hop.place + 1 from hop
            join kb.graph_events event on event.id = hop.event_id
            join kb.agent_runs run on run.id = event.run_id
            join kb.graph_events cause on cause.id = (run.trigger -> 'events' -> -1 ->> 'id')::uuid
            where hop.place < ${graphLimits.provenanceHops}
          )
          select hop.start_id, event.id as event_id, event.position, event.type, event.entity_type, event.object_type, event.entity_id,
            event.snapshot ->> 'key' as key, event.version, event.actor_type, event.actor_id, actor.name as agent_name, event.approved_by,
            event.created_at, run.id as run_id, run.agent_id as run_agent_id, runner.name as run_agent_name,
            run.agent_version as run_agent_version, run.model, run.trigger ->> 'type' as trigger, run.user_id as triggered_by
          from hop join kb.graph_events event on event.id = hop.event_id
          left join kb.agents actor on actor.id = case event.actor_type when 'agent' then event.actor_id::uuid end
          left join kb.agent_runs run on run.id = event.run_id
          left join kb.agents runner on runner.id = run.agent_id
          order by hop.start_id, hop.place`
      })

      const of = Effect.fn("Provenances.of")(function* (id: ObjectId, property: string | undefined) {
        const object = yield* lastOf(id)
        if (!object) return undefined
        const setters = yield* settersOf(object, property)
        const origins = yield* originsOf(id, [...new Set(setters.map(({ version }) => version))])
        const byVersion = new Map(origins.map((origin) => [origin.version, origin]))
        const chains = Map.groupBy(
          yield* hopsFrom(origins.map((origin) => origin.eventId)),
          (hop) => hop.startId
        )
        return {
          objectId: object.id,
          type: object.type,
          key: object.key,
          version: object.version,
          deleted: toDeletion(object),
          properties: setters.flatMap(({ property, version }) => {
            const origin = byVersion.get(version)
            return origin === undefined
              ? []
              : [
                  toProperty(
                    property,
                    origin,
                    ownValue(object.properties, property),
                    chains.get(origin.eventId) ?? []
                  )
                ]
          })
        }
      }, orDie)

      return Provenances.of({ of })
    })
  )
}

/** An object, with the version that deleted it, if any. */
type LastRow = Pick<ObjectRow, "id" | "type" | "key" | "properties" | "version"> &
  Omit<Deletion, "eventId" | "createdAt"> & {
    /** Properties set after the first version; null when the object was not written since this is stored. */
    readonly propertyVersions: Readonly<Record<string, number>> | null
    readonly eventId: GraphEventId | null
    readonly deletedAt: Date | null
  }

type Deletion = NonNullable<Provenance["deleted"]>

const toDeletion = (row: LastRow): Deletion | null =>
  row.eventId === null || row.deletedAt === null
    ? null
    : {
        eventId: row.eventId,
        actorType: row.actorType,
        actorId: row.actorId,
        agentName: row.agentName,
        approvedBy: row.approvedBy,
        runId: row.runId,
        createdAt: row.deletedAt.toISOString()
      }

interface OriginRow {
  readonly version: number
  readonly actorType: ActorType
  readonly actorId: string | null
  readonly agentName: string | null
  readonly approvedBy: UserId | null
  readonly eventId: GraphEventId
  readonly rootEventId: GraphEventId
  readonly createdAt: Date
  readonly callId: ToolCallId | null
  readonly tool: string | null
  readonly reasoning: string | null
  readonly confidence: number | null
  readonly promotionId: PromotionId | null
  readonly taskId: TaskId | null
  readonly taskNumber: bigint | null
  readonly taskType: TaskType | null
  readonly taskTitle: string | null
}

type HopRun = NonNullable<ProvenanceHop["run"]>

interface HopRow extends Omit<ProvenanceHop, "position" | "createdAt" | "run"> {
  readonly startId: GraphEventId
  readonly position: bigint | null
  readonly createdAt: Date
  readonly runId: HopRun["id"] | null
  readonly runAgentId: HopRun["agentId"]
  readonly runAgentName: string
  readonly runAgentVersion: number
  readonly model: string | null
  readonly trigger: string
  readonly triggeredBy: UserId | null
}

const toProperty = (
  property: string,
  row: OriginRow,
  value: Schema.Json | undefined,
  chain: ReadonlyArray<HopRow>
): PropertyProvenance => ({
  property,
  value: value ?? null,
  removed: value === undefined,
  version: row.version,
  actorType: row.actorType,
  actorId: row.actorId,
  agentName: row.agentName,
  approvedBy: row.approvedBy,
  toolCall:
    row.callId === null
      ? null
      : {
          id: row.callId,
          tool: row.tool ?? "",
          reasoning: row.reasoning,
          confidence: row.confidence,
          promotionId: row.promotionId
        },
  task:
    row.taskId === null || row.taskType === null
      ? null
      : { id: row.taskId, number: Number(row.taskNumber), type: row.taskType, title: row.taskTitle ?? "" },
  chain: chain.map(toHop),
  rootEventId: row.rootEventId,
  createdAt: row.createdAt.toISOString()
})

const toHop = (row: HopRow): ProvenanceHop => ({
  eventId: row.eventId,
  position: row.position === null ? null : Number(row.position),
  type: row.type,
  entityType: row.entityType,
  objectType: row.objectType,
  entityId: row.entityId,
  key: row.key,
  version: row.version,
  actorType: row.actorType,
  actorId: row.actorId,
  agentName: row.agentName,
  approvedBy: row.approvedBy,
  createdAt: row.createdAt.toISOString(),
  run:
    row.runId === null
      ? null
      : {
          id: row.runId,
          agentId: row.runAgentId,
          agentName: row.runAgentName,
          agentVersion: row.runAgentVersion,
          model: row.model,
          trigger: row.trigger,
          triggeredBy: row.triggeredBy
        }
})

// Reads the records of purges: what was purged, by whom and when.

export class Purges extends Context.Service<
  Purges,
  {
    /** Lists the records newest first, after the one whose id is `before`. */
    readonly list: (
      before: string | undefined,
      limit: number
    ) => Effect.Effect<ReadonlyArray<Purge>, never, ProjectTransaction>
    /** The record of one entity; a relationship purged with its object has none. */
    readonly of: (entityId: string) => Effect.Effect<Purge | undefined, never, ProjectTransaction>
  }
>()("@tropism/server/graph/Purges") {
  static readonly layer = Layer.effect(
    Purges,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const list = Effect.fn("Purges.list")(function* (before: string | undefined, limit: number) {
        const { projectId } = yield* ProjectTransaction
        const rows = yield* sql<PurgeRow>`
          select * from kb.graph_purges where project_id = ${projectId}
            ${before === undefined ? sql`` : sql`and id < ${before}::uuid`} order by id desc limit ${limit}`
        return rows.map(toPurge)
      }, orDie)
      const of = Effect.fn("Purges.of")(function* (entityId: string) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<PurgeRow>`
          select * from kb.graph_purges where project_id = ${projectId} and entity_id = ${entityId}`
        return row && toPurge(row)
      }, orDie)
      return Purges.of({ list, of })
    })
  )
}

interface PurgeRow extends Omit<Purge, "purgedAt"> {
  readonly purgedAt: Date
}

const toPurge = (row: PurgeRow): Purge => ({
  id: row.id,
  entityType: row.entityType,
  entityId: row.entityId,
  objectType: row.objectType,
  purgedBy: row.purgedBy,
  versions: row.versions,
  relationships: row.relationships,
  purgedAt: row.purgedAt.toISOString()
})
