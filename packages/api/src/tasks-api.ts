/**
 * Tasks: what waits for a person and the person's decision, and todos.
 *
 * A todo is seen and done by its owner alone.
 */
import { AgentId, ProjectId, TaskId, UserId } from "@tropism/domain/ids"
import { Properties } from "@tropism/domain/json"
import { Task, TaskRevision, TaskStatus, TaskType, TodoTask } from "@tropism/domain/task"
import { TodoDescription, TodoTitle } from "@tropism/domain/todo"
import { undoBounds } from "@tropism/domain/undo"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { alsoUnchanged } from "./also-unchanged.ts"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { ifMatch } from "./expected-version.ts"
import { Instant } from "./instant.ts"
import { Page, PageQuery, told } from "./page.ts"
import {
  Conflict,
  Forbidden,
  InvalidInput,
  NotFound,
  PreconditionFailed,
  TooManyRequests
} from "./problems.ts"

export const decisionBounds = { maxTasks: 200 } as const

/** `digest` binds the approval to the payload the person saw: another payload is 409. */
export const Approval = Schema.Struct({
  digest: Schema.optional(Schema.NullOr(Schema.String.check(Schema.isMaxLength(200)))),
  /** Properties to write instead of the suggested ones: edit, then approve. */
  suggestedChanges: Schema.optional(
    Schema.NullOr(
      Schema.Struct({
        data: Properties,
        /** The version that the person has seen: what moved up to it is no conflict. Absent, it is the one that the agent saw. */
        baseVersion: Schema.optional(
          Schema.NullOr(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 })))
        )
      })
    )
  ),
  /** Of an undo: the ids of items that stay as they are. */
  leaveOut: Schema.optional(
    Schema.NullOr(
      Schema.Array(Schema.String.check(Schema.isMaxLength(100))).check(
        Schema.isMaxLength(undoBounds.maxEntities)
      )
    )
  )
}).annotate({ identifier: "Approval" })
export type Approval = typeof Approval.Type

const Digest = Schema.optional(Schema.NullOr(Schema.String.check(Schema.isMaxLength(200))))
/** Why something is rejected, as the agent hears it. */
export const RejectionReason = Schema.String.check(Schema.isMaxLength(2_000))
const Reason = Schema.optional(Schema.NullOr(RejectionReason))

/** The agent hears the reason; `digest` binds the rejection as it does an approval. */
export const Rejection = Schema.Struct({
  reason: Reason,
  digest: Digest
}).annotate({ identifier: "Rejection" })
export type Rejection = typeof Rejection.Type

/** The reason is kept with each of them. */
export const RejectionOfAll = Schema.Struct({ reason: Reason }).annotate({ identifier: "RejectionOfAll" })
export type RejectionOfAll = typeof RejectionOfAll.Type

/** One decision about many tasks, each in a transaction of its own, in this order. */
export const Decisions = Schema.Struct({
  decision: Schema.Literals(["approve", "reject"]),
  /** Of a rejection. */
  reason: Reason,
  tasks: Schema.Array(Schema.Struct({ taskId: TaskId, digest: Digest })).check(
    Schema.isBetweenLength(1, decisionBounds.maxTasks)
  )
}).annotate({ identifier: "Decisions" })
export type Decisions = typeof Decisions.Type

/** What came of a decision: the task as it is now, or the problem that the task's own door would answer. */
export const Decided = Schema.Struct({
  taskId: TaskId,
  task: Schema.optionalKey(Task),
  problem: Schema.optionalKey(Schema.Union([Conflict, InvalidInput, NotFound, Forbidden]))
}).annotate({ identifier: "Decided" })

/** A todo of whoever sends it. */
export const NewTodo = Schema.Struct({
  title: TodoTitle,
  description: Schema.optional(Schema.NullOr(TodoDescription))
}).annotate({ identifier: "NewTodo" })
export type NewTodo = typeof NewTodo.Type

/**
 * New words for a todo, where a description without any text takes the description away; or for whom and until when a
 * suggestion or a question waits, where null is nobody and never, and `me` is whoever asks.
 */
export const TaskChange = Schema.Struct({
  title: Schema.optional(Schema.NullOr(TodoTitle)),
  description: Schema.optional(Schema.NullOr(TodoDescription)),
  assignee: Schema.optional(Schema.NullOr(UserId)),
  expiresAt: Schema.optional(Schema.NullOr(Instant))
})
  .check(
    Schema.makeFilter(({ assignee, description, expiresAt, title }: Readonly<Record<string, unknown>>) => {
      const isOfTodo = (title ?? description ?? null) !== null
      const isOfWait = assignee !== undefined || expiresAt !== undefined
      if (isOfTodo && isOfWait) return "Change the words of a todo, or for whom a suggestion waits, not both"
      return isOfTodo || isOfWait ? undefined : "At least title, description, assignee or expiresAt required"
    })
  )
  .annotate({ identifier: "TaskChange" })
export type TaskChange = typeof TaskChange.Type

const project = { projectId: ProjectId }
const task = { projectId: ProjectId, taskId: TaskId }

export class TasksApi extends HttpApiGroup.make("tasks")
  .add(
    HttpApiEndpoint.get("list", "/tasks", {
      params: project,
      query: {
        ...PageQuery,
        status: told(TaskStatus, "Only tasks in this state"),
        type: told(TaskType, "Only tasks of this type"),
        assignee: told(UserId, "Only what this user is asked to decide; `me` is whoever asks"),
        agentId: told(AgentId, "Only what this agent put before people"),
        number: told(
          Schema.FiniteFromString.check(
            Schema.isInt(),
            Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 })
          ),
          "Only what has this number: one of the project's, and one of your todos"
        )
      },
      success: Page(Task),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/tasks/:taskId", {
      params: task,
      success: Task,
      error: NotFound
    }).annotateMerge(alsoUnchanged),
    HttpApiEndpoint.post("add", "/tasks", {
      params: project,
      payload: NewTodo,
      success: TodoTask.pipe(HttpApiSchema.status(201)),
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.patch("change", "/tasks/:taskId", {
      params: task,
      headers: ifMatch,
      payload: TaskChange,
      success: Task,
      error: [NotFound, Forbidden, Conflict, InvalidInput, PreconditionFailed]
    }),
    HttpApiEndpoint.post("complete", "/tasks/:taskId/complete", {
      params: task,
      success: TodoTask,
      error: [NotFound, Forbidden, Conflict]
    }),
    HttpApiEndpoint.delete("remove", "/tasks/:taskId", {
      params: task,
      headers: ifMatch,
      success: HttpApiSchema.NoContent,
      error: [NotFound, Forbidden, Conflict, PreconditionFailed]
    }),
    /** What a suggestion said before its agent refined it, newest first. */
    HttpApiEndpoint.get("revisions", "/tasks/:taskId/revisions", {
      params: task,
      query: PageQuery,
      success: Page(TaskRevision),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.post("approve", "/tasks/:taskId/approve", {
      params: task,
      payload: Approval,
      success: Task,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    /**
     * Has a task that waits made anew, as the graph is now: the agent looks again at what it suggested something about,
     * and the task names the run (409 while one is under way, 429 where the agent may begin none now); an undo is planned anew, with another digest.
     */
    HttpApiEndpoint.post("rerun", "/tasks/:taskId/rerun", {
      params: task,
      success: Task,
      error: [NotFound, Forbidden, Conflict, TooManyRequests]
    }),
    HttpApiEndpoint.post("decide", "/tasks/decisions", {
      params: project,
      payload: Decisions,
      success: Schema.Struct({ items: Schema.Array(Decided) }),
      error: [NotFound, Forbidden, InvalidInput]
    }),
    HttpApiEndpoint.post("reject", "/tasks/:taskId/reject", {
      params: task,
      payload: Rejection,
      success: Task,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    /** In one transaction; of an agent that was deleted as well. What expired or is decided already stays as it is. */
    HttpApiEndpoint.post("rejectAll", "/agents/:agentId/suggestions/reject", {
      params: { projectId: ProjectId, agentId: AgentId },
      payload: RejectionOfAll,
      success: Schema.Struct({ rejected: Schema.Int }),
      error: [NotFound, Forbidden, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
