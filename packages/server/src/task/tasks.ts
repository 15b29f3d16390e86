/**
 * Suggestions that wait for a person, and the person's decision.
 *
 * Flow: graph → outbox → dispatch → run → tool → **task**
 *
 * A decision is one statement that names the state it leaves, so of fifty
 * simultaneous approvals one wins. Decision, change and history are one
 * transaction: there is no approved task without its change. The change is the
 * agent's, approved by the person, so the agent is not woken by it.
 */
import type { Actor, Cause } from "@tropism/domain/actor"
import { type Change, digestText } from "@tropism/domain/change"
import type { GraphObject } from "@tropism/domain/graph"
import type { AgentId, GraphEventId, ObjectId, RunId, TaskId, ToolCallId, UserId } from "@tropism/domain/ids"
import { changedProperties, type Properties } from "@tropism/domain/json"
import {
  type Evidence,
  isQuestion,
  type QuestionTask,
  type SuggestionPayload,
  type Task,
  taskTypeOf
} from "@tropism/domain/task"
import { Context, Effect, Layer, Schema } from "effect"
import { SqlClient } from "effect/sql"
import { CrashPoint } from "../crash-point.ts"
import { orDie, ProjectTransaction } from "../database/database.ts"
import { Gateway } from "../graph/gateway.ts"
import { Objects } from "../graph/objects.ts"
import type { ChangeRefused } from "../graph/refused.ts"
import { Ids } from "../ids.ts"
import { digestOf } from "./digest.ts"
import { makeTaskReading, type TaskFilter } from "./reading.ts"

/** Why a decision was not taken. */
export class DecisionRefused extends Schema.TaggedError<DecisionRefused>()("DecisionRefused", {
  reason: Schema.Literals(["alreadyDecided", "digestMismatch", "outdated", "notEditable", "isQuestion"]),
  detail: Schema.String
}) {}

/** What an agent wants a person to decide. */
export interface Suggestion {
  readonly change: Change
  readonly agentId: AgentId
  readonly agentName: string
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly confidence: number | null
  readonly reasoning: string | null
  readonly target: GraphObject | null
  readonly evidence: ReadonlyArray<Evidence>
  readonly rootEventId: GraphEventId
  /** The depth that the change will have in its chain. */
  readonly depth: number
}

type Read<A> = Effect.Effect<A, never, ProjectTransaction>

export class Tasks extends Context.Service<
  Tasks,
  {
    readonly suggest: (suggestion: Suggestion) => Read<{ readonly id: TaskId; readonly number: number }>
    readonly get: (id: TaskId) => Read<Task | undefined>
    readonly list: (
      filter: TaskFilter,
      before: string | undefined,
      limit: number
    ) => Read<ReadonlyArray<Task>>
    /** Makes the suggested change; undefined when there is no such task. */
    readonly approve: (
      id: TaskId,
      by: UserId,
      digest: string | null,
      edited: Properties | null
    ) => Effect.Effect<Task | undefined, DecisionRefused | ChangeRefused, ProjectTransaction>
    /** Ends the task with no change; undefined when there is no such task. */
    readonly reject: (
      id: TaskId,
      by: UserId,
      reason: string | null
    ) => Effect.Effect<Task | undefined, DecisionRefused, ProjectTransaction>
  }
>()("@tropism/server/task/Tasks") {
  static readonly layer = Layer.effect(
    Tasks,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const ids = yield* Ids
      const gateway = yield* Gateway
      const objects = yield* Objects
      const { get, list, nextNumber } = yield* makeTaskReading

      const suggest = Effect.fn("Tasks.suggest")(function* (suggestion: Suggestion) {
        const { projectId } = yield* ProjectTransaction
        const { change, target } = suggestion
        const id = (yield* ids.next) as TaskId
        const number = yield* nextNumber
        const payload: SuggestionPayload = {
          agentId: suggestion.agentId,
          agentRunId: suggestion.runId,
          ...(suggestion.confidence === null ? {} : { confidence: suggestion.confidence }),
          ...(suggestion.reasoning === null ? {} : { reasoning: suggestion.reasoning }),
          suggestedChanges: change
        }
        yield* sql`
          insert into kb.tasks (id, project_id, number, type, title, description, payload, digest, agent_id, run_id, tool_call_id,
            target_id, base_version, evidence, root_event_id, depth)
          values (${id}, ${projectId}, ${number}, ${taskTypeOf[change.type]}, ${titleOf(change, target)}, ${suggestion.reasoning},
            ${JSON.stringify(payload)}::text::jsonb, ${yield* digestOf(digestText(change))}, ${suggestion.agentId}, ${suggestion.runId},
            ${suggestion.toolCallId}, ${target?.id ?? null}, ${target?.version ?? null}, ${JSON.stringify(suggestion.evidence)}::text::jsonb,
            ${suggestion.rootEventId}, ${suggestion.depth})`
        return { id, number }
      }, orDie)

      /** Takes the decision, once: the state column is compared and set in one statement. */
      const decide = Effect.fnUntraced(function* (
        id: TaskId,
        to: "completed" | "rejected",
        by: UserId,
        note: string | null
      ) {
        const { projectId } = yield* ProjectTransaction
        const [row] = yield* sql<DecidedRow>`
          update kb.tasks set status = ${to}, resolved_by = ${by}, resolution_note = ${note}, resolved_at = now()
          where id = ${id} and project_id = ${projectId} and status = 'pending' and type <> 'question' returning *`
        if (row) return row
        const task = yield* get(id)
        if (!task) return undefined
        if (isQuestion(task)) return yield* toBeAnswered(task)
        return yield* new DecisionRefused({
          reason: "alreadyDecided",
          detail: `Task ${task.number} is ${task.status} already${task.resolvedBy === null ? "" : `: ${task.resolvedBy} decided it`}`
        })
      })

      /** Refuses a change whose target has moved in the properties that it would write. */
      const refuseOutdated = Effect.fnUntraced(function* (row: DecidedRow, change: Change) {
        if (row.targetId === null || row.baseVersion === null) return
        const now = yield* objects.get(row.targetId)
        if (!now) return yield* outdated("The object was deleted after the agent suggested this")
        if (now.version === row.baseVersion) return
        if (change.type === "delete")
          return yield* outdated("The object changed after the agent suggested to delete it")
        const base = yield* objects.version(row.targetId, row.baseVersion)
        const moved = changedProperties(base?.properties ?? {}, now.properties)
        const clashes = "data" in change ? Object.keys(change.data).filter((key) => moved.includes(key)) : []
        if (clashes.length > 0) {
          return yield* outdated(
            `The object changed after the agent suggested this, in what it would write: ${clashes.join(", ")}`
          )
        }
      })

      const approve = Effect.fn("Tasks.approve")(function* (
        id: TaskId,
        by: UserId,
        digest: string | null,
        edited: Properties | null
      ) {
        const row = yield* decide(id, "completed", by, null)
        if (!row) return undefined
        if (digest !== null && digest !== row.digest) {
          return yield* new DecisionRefused({
            reason: "digestMismatch",
            detail: "The suggestion is not the one that you saw: read it again"
          })
        }
        const change = yield* editedChange(row.payload.suggestedChanges, edited)
        yield* refuseOutdated(row, change)
        const actor: Actor = { actorType: "agent", actorId: row.agentId }
        const cause: Cause = {
          runId: row.runId,
          toolCallId: row.toolCallId,
          taskId: id,
          approvedBy: by,
          rootEventId: row.rootEventId,
          depth: row.depth
        }
        const applied = yield* gateway.apply(change, { actor, cause })
        const entity = applied.entity.kind === "object" ? applied.entity.object : applied.entity.relationship
        const outcome = { entityId: entity.id, version: entity.version, change: applied.change }
        yield* sql`update kb.tasks set outcome = ${JSON.stringify(outcome)}::text::jsonb where id = ${id}`
        yield* CrashPoint.hit("task.beforeCommit")
        return yield* get(id)
      }, orDie)

      const reject = Effect.fn("Tasks.reject")(function* (id: TaskId, by: UserId, reason: string | null) {
        const row = yield* decide(id, "rejected", by, reason)
        return row && (yield* get(id))
      }, orDie)

      return Tasks.of({ suggest, get, list, approve, reject })
    })
  )
}

interface DecidedRow {
  readonly agentId: AgentId
  readonly runId: RunId
  readonly toolCallId: ToolCallId
  readonly payload: SuggestionPayload
  readonly digest: string
  readonly targetId: ObjectId | null
  readonly baseVersion: number | null
  readonly rootEventId: GraphEventId
  readonly depth: number
}

/** A question is no decision: whoever tries to take one learns where it is answered. */
const toBeAnswered = ({ id, number, runId }: QuestionTask) =>
  new DecisionRefused({
    reason: "isQuestion",
    detail: `Task ${number} is a question: answer it with POST /runs/${runId}/answer and {"answer": …, "taskId": "${id}"}`
  })

const outdated = (detail: string) => new DecisionRefused({ reason: "outdated", detail })

/** The change with a person's own properties in place of the suggested ones. */
const editedChange = (change: Change, edited: Properties | null): Effect.Effect<Change, DecisionRefused> => {
  if (edited === null) return Effect.succeed(change)
  return "data" in change
    ? Effect.succeed({ ...change, data: edited })
    : Effect.fail(
        new DecisionRefused({ reason: "notEditable", detail: "A deletion has no properties to edit" })
      )
}

const titleOf = (change: Change, target: GraphObject | null): string => {
  const name = target ? `${target.type} ${target.key ?? target.id}` : ""
  switch (change.type) {
    case "create":
      return `Create ${change.objectType}${change.key === null ? "" : ` ${change.key}`}`
    case "update":
      return `Update ${name}: ${Object.keys(change.data).join(", ")}`
    case "delete":
      return `Delete ${name}`
    case "createRelationship":
      return `Relate by ${change.relationship.type}`
    case "updateRelationship":
      return `Update a relationship: ${Object.keys(change.data).join(", ")}`
    case "deleteRelationship":
      return `Delete a relationship`
  }
}
