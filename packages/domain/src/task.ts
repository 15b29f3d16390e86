/**
 * Something for a person: a suggestion that waits for a decision, or a question that waits for an answer.
 *
 * A suggestion's payload is the specification's, and the digest binds a decision
 * to what the person saw. A task is decided, or answered, once; the database
 * keeps it so.
 */
import { Schema } from "effect"
import { Change, type Change as AnyChange } from "./change.ts"
import { ChangeType, GraphObject } from "./graph.ts"
import { AgentId, RunId, TaskId, Timestamp, UserId } from "./ids.ts"

export const TaskStatus = Schema.Literals(["pending", "completed", "rejected", "expired"])
export type TaskStatus = typeof TaskStatus.Type

/** Every legal step of a task, by the state that it leaves. */
export const taskTransitions: Readonly<Record<TaskStatus, ReadonlyArray<TaskStatus>>> = {
  pending: ["completed", "rejected", "expired"],
  completed: [],
  rejected: [],
  expired: []
}

export const SuggestionType = Schema.Literals([
  "object_create_suggestion",
  "object_update_suggestion",
  "object_delete_suggestion",
  "relationship_create_suggestion",
  "relationship_update_suggestion",
  "relationship_delete_suggestion"
])
export type SuggestionType = typeof SuggestionType.Type

export const TaskType = Schema.Literals([...SuggestionType.literals, "question"])
export type TaskType = typeof TaskType.Type

/** The task type that carries a change (S001-R35…R38). */
export const taskTypeOf: Readonly<Record<AnyChange["type"], SuggestionType>> = {
  create: "object_create_suggestion",
  update: "object_update_suggestion",
  delete: "object_delete_suggestion",
  createRelationship: "relationship_create_suggestion",
  updateRelationship: "relationship_update_suggestion",
  deleteRelationship: "relationship_delete_suggestion"
}

/** One object version that the run had read before it suggested. */
export const Evidence = Schema.Struct({ objectId: Schema.String, type: Schema.String, version: Schema.Int })
export type Evidence = typeof Evidence.Type

/** What an agent suggests and why (S001-R39…R41). */
export const SuggestionPayload = Schema.Struct({
  agentId: AgentId,
  agentRunId: RunId,
  confidence: Schema.optionalKey(Schema.Finite),
  reasoning: Schema.optionalKey(Schema.String),
  suggestedChanges: Change
})
export type SuggestionPayload = typeof SuggestionPayload.Type

/** What an agent asks a person, and the answer once there is one. */
export const QuestionPayload = Schema.Struct({
  agentId: AgentId,
  agentRunId: RunId,
  question: Schema.String,
  /** The answers to choose from; absent, the person writes freely. */
  options: Schema.optionalKey(Schema.Array(Schema.String)),
  answer: Schema.optionalKey(Schema.String)
})
export type QuestionPayload = typeof QuestionPayload.Type

const common = {
  id: TaskId,
  number: Schema.Int,
  status: TaskStatus,
  title: Schema.String,
  description: Schema.NullOr(Schema.String),
  /** SHA-256 of the canonical text of the suggested change, or of the question, hexadecimal. */
  digest: Schema.String,
  agentId: AgentId,
  agentName: Schema.String,
  runId: RunId,
  /** The version of the target that the agent saw; null when the change has no target. */
  baseVersion: Schema.NullOr(Schema.Int),
  evidence: Schema.Array(Evidence),
  /** The target as it is now: null when there is none or it is deleted. */
  target: Schema.NullOr(GraphObject),
  resolvedBy: Schema.NullOr(UserId),
  resolutionNote: Schema.NullOr(Schema.String),
  /** What approval did to the graph. */
  outcome: Schema.NullOr(
    Schema.Struct({
      entityId: Schema.String,
      version: Schema.Int,
      change: Schema.Union([ChangeType, Schema.Literal("unchanged")])
    })
  ),
  createdAt: Timestamp,
  resolvedAt: Schema.NullOr(Timestamp)
}

export const SuggestionTask = Schema.Struct({ ...common, type: SuggestionType, payload: SuggestionPayload })
export type SuggestionTask = typeof SuggestionTask.Type

/** Its run waits for the answer; `completed` is answered, `expired` is no longer wanted. */
export const QuestionTask = Schema.Struct({
  ...common,
  type: Schema.Literal("question"),
  payload: QuestionPayload
})
export type QuestionTask = typeof QuestionTask.Type

export const Task = Schema.Union([SuggestionTask, QuestionTask]).annotate({ identifier: "Task" })
export type Task = typeof Task.Type

export const isQuestion = (task: Task): task is QuestionTask => task.type === "question"
export const isSuggestion = (task: Task): task is SuggestionTask => task.type !== "question"
