/**
 * Counts what people say of suggestions, and promotes the agent version that has earned it.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * A decision is counted in its own transaction by one statement, which holds the
 * record until the decision is kept: of two that are counted at once the second
 * sees the first. The promotion that stands is unique, so many decisions that
 * are enough promote once. Records are held after tasks and before the graph.
 */
import { earnsTrust, reviewsIn, type Verdict } from "@tropism/domain/autonomy"
import { type ChangeKind, type Powers, waitsForTrust } from "@tropism/domain/capability"
import type { AgentId, PromotionId, TaskId } from "@tropism/domain/ids"
import { canonicalJson } from "@tropism/domain/json"
import type { PromotionPayload } from "@tropism/domain/task"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { ProjectTransaction } from "../database/database.ts"
import { Ids } from "../ids.ts"
import { digestOf } from "./digest.ts"
import { makeTaskReading } from "./reading.ts"

/** A record as a decision left it, and the agent as it is. */
interface Counted extends Pick<Powers, "executionMode" | "hybridPolicy"> {
  readonly agentId: AgentId
  readonly agentName: string
  readonly agentVersion: number
  readonly operation: ChangeKind
  readonly objectType: string
  /** The reviews since the last revert or reversal. */
  readonly accepted: number
  readonly edited: number
  readonly rejected: number
  /** Whether this version is the one that the agent has, and may act. */
  readonly isPresent: boolean
}

/** The verbs by which decisions are counted. */
export const makeEarning = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const ids = yield* Ids
  const { nextNumber } = yield* makeTaskReading

  /** Adds what became of tasks to their records; what is no suggestion has none. */
  const count = Effect.fnUntraced(function* (taskIds: ReadonlyArray<TaskId>, verdict: Verdict) {
    const { projectId } = yield* ProjectTransaction
    const column = sql(verdict)
    return yield* sql<Counted>`
      with decided as (
        select task.agent_id, task.agent_version, change ->> 'type' as operation,
          coalesce(change ->> 'objectType', change -> 'relationship' ->> 'type',
            (select type from kb.graph_objects object where object.id = (change ->> 'objectId')::uuid),
            (select type from kb.graph_relationships relationship where relationship.id = (change ->> 'relationshipId')::uuid)) as object_type
        from kb.tasks task
        cross join lateral (select task.payload -> 'suggestedChanges' as change) suggested
        where task.project_id = ${projectId} and task.id = any(${taskIds}::uuid[]) and task.agent_version is not null
      ), counted as (
        insert into kb.review_records as record (project_id, agent_id, agent_version, operation, object_type, ${column}, updated_at)
        select ${projectId}::uuid, agent_id, agent_version, operation, object_type, count(*), now() from decided
        where operation is not null and object_type is not null
        group by agent_id, agent_version, operation, object_type order by agent_id, agent_version, operation, object_type
        on conflict (agent_id, agent_version, operation, object_type)
          do update set ${column} = record.${column} + excluded.${column}, updated_at = now()
        returning *
      )
      select counted.agent_id, counted.agent_version, operation, object_type, accepted - accepted_before as accepted,
        edited - edited_before as edited, rejected - rejected_before as rejected, agent.name as agent_name, agent.execution_mode,
        agent.hybrid_policy, agent.version = counted.agent_version and agent.enabled and agent.deleted_at is null as is_present
      from counted join kb.agents agent on agent.id = counted.agent_id`
  })

  /** Lets the agent act without asking, unless that stands already, and tells people of it. */
  const promote = Effect.fnUntraced(function* (counted: Counted) {
    const { projectId } = yield* ProjectTransaction
    const { agentId, agentVersion, objectType, operation } = counted
    const promotionId = (yield* ids.next) as PromotionId
    const taskId = (yield* ids.next) as TaskId
    const reviews = reviewsIn(counted)
    const rate = counted.accepted / reviews
    const [promoted] = yield* sql`
      insert into kb.promotions (id, project_id, agent_id, agent_version, operation, object_type, reviews, acceptance_rate, task_id)
      values (${promotionId}, ${projectId}, ${agentId}, ${agentVersion}, ${operation}, ${objectType}, ${reviews}, ${rate}, ${taskId})
      on conflict (agent_id, agent_version, operation, object_type) where ended_at is null do nothing returning id`
    if (!promoted) return
    const payload: PromotionPayload = {
      promotionId,
      agentId,
      agentVersion,
      operation,
      objectType,
      reviews,
      rate
    }
    const number = yield* nextNumber
    yield* sql`
      insert into kb.tasks (id, project_id, number, type, title, description, payload, digest, agent_id, agent_version, evidence, depth)
      values (${taskId}, ${projectId}, ${number}, 'promotion', ${titleOf(counted)}, ${descriptionOf(counted)},
        ${JSON.stringify(payload)}::text::jsonb, ${yield* digestOf(canonicalJson(payload))}, ${agentId}, ${agentVersion}, '[]', 0)`
  })

  /** Counts a person's decision about suggestions, and promotes where that makes the reviews enough by the agent's present policy. */
  const reviewed = Effect.fnUntraced(function* (
    taskIds: ReadonlyArray<TaskId>,
    verdict: Exclude<Verdict, "expired">
  ) {
    for (const counted of yield* count(taskIds, verdict))
      if (mayEarn(counted) && earnsTrust(counted.hybridPolicy, counted)) yield* promote(counted)
  })

  /** Counts suggestions that nobody decided in time; no agent earns anything by that. */
  const expired = (taskIds: ReadonlyArray<TaskId>) => Effect.asVoid(count(taskIds, "expired"))

  return { reviewed, expired }
})

/** Whether there is anything to be earned: the agent asks for such changes where it is not sure, and nowhere else. */
const mayEarn = ({ executionMode, hybridPolicy, isPresent, operation }: Counted): boolean =>
  isPresent && waitsForTrust(executionMode, hybridPolicy, operation, { confidence: null, suggest: false })

/** What an agent does with things of a type, as the end of a sentence. */
const deeds: Readonly<Record<ChangeKind, (type: string) => string>> = {
  create: (type) => `creates ${type} objects`,
  update: (type) => `updates ${type} objects`,
  delete: (type) => `deletes ${type} objects`,
  createRelationship: (type) => `creates ${type} relationships`,
  updateRelationship: (type) => `updates ${type} relationships`,
  deleteRelationship: (type) => `deletes ${type} relationships`
}

const titleOf = ({ agentName, objectType, operation }: Counted): string =>
  `${agentName} now ${deeds[operation](objectType)} without asking`

const descriptionOf = (counted: Counted): string =>
  `Of ${reviewsIn(counted)} reviews of version ${counted.agentVersion}, ${counted.accepted} took the suggestion as it was. ` +
  `Approve to say that you have seen it; reject to let the agent ask again.`
