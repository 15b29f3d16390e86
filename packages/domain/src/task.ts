/**
 * Something for a person: a suggestion or an undo to decide, a question to answer, a promotion to look at, or a todo.
 *
 * A suggestion's payload is the specification's, and the digest binds a decision
 * to what the person saw. A task is decided, answered or done once; the database
 * keeps it so. A todo is its owner's own, with a number of its own; everything
 * else is the project's.
 */
import { Schema } from "effect"
import { Change, type Change as AnyChange } from "./change.ts"
import { ChangeKind } from "./capability.ts"
import { ChangeType, GraphObject, Relationship } from "./graph.ts"
import { AgentId, PromotionId, RunId, TaskId, Timestamp, UserId } from "./ids.ts"
import { RunStatus } from "./run.ts"
import { Staleness } from "./staleness.ts"
import { Taint } from "./taint.ts"
import { UndoOutcome, UndoPayload } from "./undo.ts"

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

export const TaskType = Schema.Literals([...SuggestionType.literals, "undo", "question", "todo", "promotion"])
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

/** How many object versions one suggestion is based on: the newest that its run had read. */
export const evidenceBounds = { maxReads: 200 } as const

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

export const questionBounds = {
  /** Of an answer, through whichever door it comes. */
  answerMaxChars: 20_000
} as const

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

/** What an agent version has earned, and by what. */
export const PromotionPayload = Schema.Struct({
  promotionId: PromotionId,
  agentId: AgentId,
  agentVersion: Schema.Int,
  operation: ChangeKind,
  objectType: Schema.String,
  reviews: Schema.Int,
  rate: Schema.Finite
})
export type PromotionPayload = typeof PromotionPayload.Type

/** What every task says of itself. */
const common = {
  id: TaskId,
  /** Its place among the project's tasks, or, of a todo, among its owner's todos; from 1 on. */
  number: Schema.Int,
  status: TaskStatus,
  title: Schema.String,
  description: Schema.NullOr(Schema.String),
  resolvedBy: Schema.NullOr(UserId),
  resolutionNote: Schema.NullOr(Schema.String),
  createdAt: Timestamp,
  resolvedAt: Schema.NullOr(Timestamp)
}

/** What every task says that an agent put before people. */
const fromAgent = {
  ...common,
  /** SHA-256 of the canonical text of the suggested change, or of the question, hexadecimal. */
  digest: Schema.String,
  agentId: AgentId,
  agentName: Schema.String,
  runId: RunId,
  /** Who is asked to decide; anybody with the role may. Null is nobody in particular. */
  assignee: Schema.NullOr(UserId)
}

/** Whether the agent that suggested something may still act; a person may decide what it suggested in any case. */
export const AgentState = Schema.Literals(["enabled", "disabled", "deleted"])
export type AgentState = typeof AgentState.Type

export const SuggestionTask = Schema.Struct({
  ...fromAgent,
  type: SuggestionType,
  payload: SuggestionPayload,
  agentState: AgentState,
  /** The version of the agent that suggested this. */
  agentVersion: Schema.Int,
  /** How often the agent has said this, the first time included; what it said before is kept as its revisions. */
  revision: Schema.Int,
  refinedAt: Schema.NullOr(Timestamp),
  /** When it stops to wait for a decision; null is never. */
  expiresAt: Schema.NullOr(Timestamp),
  /** The version of the target that the agent saw; null when the change has no target. */
  baseVersion: Schema.NullOr(Schema.Int),
  evidence: Schema.Array(Evidence),
  /** What of untrusted sources the run had read: whoever approves vouches for what it suggests. */
  untrusted: Schema.Array(Taint),
  /** The target as it is now: null when there is none or it is deleted. */
  target: Schema.NullOr(GraphObject),
  /** The relationship that the change is about, as it is now. */
  relationship: Schema.NullOr(Relationship),
  /** Whether the graph moved since; null once the suggestion does not wait any more. */
  staleness: Schema.NullOr(Staleness),
  /**
   * Why the capabilities of the agent, and of those that it acts for, forbid the change as they are now, so that an approval is refused;
   * null where they permit it, and once the suggestion does not wait any more.
   */
  denial: Schema.NullOr(Schema.String),
  /** The run that looks, or has looked, at this again because a person asked for it; the newest. */
  rerun: Schema.NullOr(Schema.Struct({ runId: RunId, status: RunStatus })),
  /** What approval did to the graph. */
  outcome: Schema.NullOr(
    Schema.Struct({
      entityId: Schema.String,
      version: Schema.Int,
      change: Schema.Union([ChangeType, Schema.Literal("unchanged")]),
      /** The version that the change was of, when it was applied on top of others: what they had set elsewhere stays. */
      rebasedFrom: Schema.optionalKey(
        Schema.Struct({ version: Schema.Int, moved: Schema.Array(Schema.String) })
      )
    })
  )
})
export type SuggestionTask = typeof SuggestionTask.Type

/** What a suggestion said before it was refined. */
export const TaskRevision = Schema.Struct({
  revision: Schema.Int,
  payload: SuggestionPayload,
  digest: Schema.String,
  runId: RunId,
  agentVersion: Schema.Int,
  baseVersion: Schema.NullOr(Schema.Int),
  evidence: Schema.Array(Evidence),
  /** When the agent said it. */
  createdAt: Timestamp
}).annotate({ identifier: "TaskRevision" })
export type TaskRevision = typeof TaskRevision.Type

/** Its run waits for the answer; `completed` is answered, `expired` is no longer wanted. */
export const QuestionTask = Schema.Struct({
  ...fromAgent,
  type: Schema.Literal("question"),
  payload: QuestionPayload
})
export type QuestionTask = typeof QuestionTask.Type

/** An agent need not ask any more: `completed` is seen by a person, `rejected` taken back, `expired` ended otherwise. */
export const PromotionTask = Schema.Struct({
  ...common,
  type: Schema.Literal("promotion"),
  payload: PromotionPayload,
  digest: Schema.String,
  agentId: AgentId,
  agentName: Schema.String
})
export type PromotionTask = typeof PromotionTask.Type
/** What a run, an agent's version or a chain did, to be taken back; its items are a list of their own. */
export const UndoTask = Schema.Struct({
  ...common,
  type: Schema.Literal("undo"),
  payload: UndoPayload,
  /** SHA-256 of the plan, hexadecimal. */
  digest: Schema.String,
  /** How often it was planned. */
  revision: Schema.Int,
  outcome: Schema.NullOr(UndoOutcome)
})
export type UndoTask = typeof UndoTask.Type

/** Something that its owner wants to do; `completed` is done. */
export const TodoTask = Schema.Struct({
  ...common,
  type: Schema.Literal("todo"),
  owner: UserId
})
export type TodoTask = typeof TodoTask.Type

export const Task = Schema.Union([SuggestionTask, UndoTask, QuestionTask, TodoTask, PromotionTask]).annotate({
  identifier: "Task"
})
export type Task = typeof Task.Type

export const isQuestion = (task: Task): task is QuestionTask => task.type === "question"
export const isUndo = (task: Task): task is UndoTask => task.type === "undo"
/** What a person may hand to another: it waits for anybody with the role. */
export const AssignableType = Schema.Literals([...SuggestionType.literals, "question"])

export const isTodo = (task: Task): task is TodoTask => task.type === "todo"
export const isPromotion = (task: Task): task is PromotionTask => task.type === "promotion"
export const isSuggestion = (task: Task): task is SuggestionTask =>
  (SuggestionType.literals as ReadonlyArray<string>).includes(task.type)
