/**
 * Says why each property of an object has its value, back to the root event.
 *
 * Flow: **graph** → outbox → dispatch → run → tool → task
 *
 * The event that last named a property among what it changed set its value. What
 * caused that event is a run, which an event had woken, and so on to the root.
 * Reads the records of later stages and imports none of their code.
 */
import type { ActorType } from "@tropism/domain/actor"
import type { GraphEventId, ObjectId, PromotionId, TaskId, ToolCallId, UserId } from "@tropism/domain/ids"
import type { PropertyProvenance, Provenance, ProvenanceHop } from "@tropism/domain/provenance"
import type { TaskType } from "@tropism/domain/task"
import { Context, Effect, Layer, type Schema } from "effect"
import { SqlClient } from "effect/sql"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { graphLimits } from "../limits.ts"
import type { ObjectRow } from "./rows.ts"

export class Provenances extends Context.Service<
  Provenances,
  {
    /**
     * Why the properties of an object have their values, or one of them, also when it was removed.
     *
     * **Details** Of a deleted object the last values. Undefined when there is no such object; no property where it never had the one that is asked for.
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

      /** The object as it is or as its deletion found it, and who deleted it. */
      const lastOf = Effect.fnUntraced(function* (id: ObjectId) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<LastRow>`
          select object.id, object.type, object.key, object.properties, object.version, deletion.event_id, deletion.actor_type,
            deletion.actor_id, agent.name as agent_name, deletion.approved_by, deletion.run_id, deletion.created_at as deleted_at
          from kb.graph_objects object
          left join kb.graph_object_versions deletion
            on object.deleted_at is not null and deletion.object_id = object.id and deletion.version = object.version
          left join kb.agents agent on agent.id = case deletion.actor_type when 'agent' then deletion.actor_id::uuid end
          where object.id = ${id} and object.project_id = ${projectId} and object.purged_at is null`
        return row
      })

      /** The newest event that changed each property; a restoration set none. */
      const originsOf = Effect.fnUntraced(function* (id: ObjectId, property: string | undefined) {
        const { projectId } = yield* ProjectTransaction
        return yield* sql<OriginRow>`
          with origin as (
            select distinct on (property) property, event.* from kb.graph_events event, unnest(changed_properties) property
            where entity_id = ${id} and project_id = ${projectId} and (type <> 'created' or version = 1)
              ${property === undefined ? sql`` : sql`and property = ${property}`}
            order by property, version desc
          )
          select origin.property, origin.version, origin.actor_type, origin.actor_id, agent.name as agent_name, origin.approved_by,
            origin.id as event_id, origin.root_event_id, origin.created_at, call.id as call_id, call.tool, call.promotion_id,
            call.arguments ->> 'reasoning' as reasoning,
            case jsonb_typeof(call.arguments -> 'confidence') when 'number' then (call.arguments ->> 'confidence')::float8 end as confidence,
            task.id as task_id, task.number as task_number, task.type as task_type, task.title as task_title
          from origin
          left join kb.agents agent on agent.id = case origin.actor_type when 'agent' then origin.actor_id::uuid end
          left join kb.tool_calls call on call.id = origin.tool_call_id
          left join kb.tasks task on task.id = origin.task_id
          order by origin.property collate "C"`
      })

      /** From each event back to its root: a run is caused by the newest event that woke it. */
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
        const origins = (yield* originsOf(id, property)).filter(
          (origin) => property !== undefined || Object.hasOwn(object.properties, origin.property)
        )
        const hops = yield* hopsFrom([...new Set(origins.map((origin) => origin.eventId))])
        const chains = Map.groupBy(hops, (hop) => hop.startId)
        return {
          objectId: object.id,
          type: object.type,
          key: object.key,
          version: object.version,
          deleted: toDeletion(object),
          properties: origins.map((origin) =>
            toProperty(origin, object.properties[origin.property], chains.get(origin.eventId) ?? [])
          )
        }
      }, orDie)

      return Provenances.of({ of })
    })
  )
}

/** An object, and the version that deleted it where one did. */
type LastRow = Pick<ObjectRow, "id" | "type" | "key" | "properties" | "version"> &
  Omit<Deletion, "eventId" | "createdAt"> & {
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
  readonly property: string
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
  row: OriginRow,
  value: Schema.Json | undefined,
  chain: ReadonlyArray<HopRow>
): PropertyProvenance => ({
  property: row.property,
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
