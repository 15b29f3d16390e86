/**
 * Tasks: what waits for a person, and the person's decision.
 */
import { ProjectId, TaskId } from "@tropism/domain/ids"
import { Properties } from "@tropism/domain/json"
import { Task, TaskStatus, TaskType } from "@tropism/domain/task"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound } from "./problems.ts"

/** `digest` binds the approval to the payload the person saw: another payload is 409. */
export const Approval = Schema.Struct({
  digest: Schema.optional(Schema.NullOr(Schema.String.check(Schema.isMaxLength(200)))),
  /** Properties to write instead of the suggested ones: edit, then approve. */
  suggestedChanges: Schema.optional(Schema.NullOr(Schema.Struct({ data: Properties })))
}).annotate({ identifier: "Approval" })
export type Approval = typeof Approval.Type

export const Rejection = Schema.Struct({
  reason: Schema.optional(Schema.NullOr(Schema.String.check(Schema.isMaxLength(2_000))))
}).annotate({ identifier: "Rejection" })
export type Rejection = typeof Rejection.Type

const project = { projectId: ProjectId }
const task = { projectId: ProjectId, taskId: TaskId }

export class TasksApi extends HttpApiGroup.make("tasks")
  .add(
    HttpApiEndpoint.get("list", "/tasks", {
      params: project,
      query: { ...PageQuery, status: Schema.optional(TaskStatus), type: Schema.optional(TaskType) },
      success: Page(Task),
      error: [NotFound, InvalidInput]
    }),
    HttpApiEndpoint.get("get", "/tasks/:taskId", { params: task, success: Task, error: NotFound }),
    HttpApiEndpoint.post("approve", "/tasks/:taskId/approve", {
      params: task,
      payload: Approval,
      success: Task,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    }),
    HttpApiEndpoint.post("reject", "/tasks/:taskId/reject", {
      params: task,
      payload: Rejection,
      success: Task,
      error: [NotFound, Forbidden, Conflict, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
