/**
 * Undo: a run, an agent's version or a chain is taken back by a plan that a person approves.
 *
 * A plan is a task; it is approved and rejected like any other (S001-N04, F08).
 */
import { AgentId, GraphEventId, ProjectId, RunId, TaskId } from "@tropism/domain/ids"
import { UndoTask } from "@tropism/domain/task"
import { UndoItem } from "@tropism/domain/undo"
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, HttpApiSchema } from "effect/http-api"
import { Authorization, RequestJudgement } from "./authorization.ts"
import { Page, PageQuery } from "./page.ts"
import { Conflict, Forbidden, InvalidInput, NotFound } from "./problems.ts"

const project = { projectId: ProjectId }

/** 201 with a new plan, 200 with the one for this cause that waits already, planned anew where the graph has moved. */
const planned = {
  success: [
    UndoTask.annotate({ identifier: "UndoTask" }).pipe(HttpApiSchema.status(201)),
    UndoTask.annotate({ identifier: "WaitingUndoTask" })
  ],
  error: [NotFound, Forbidden, Conflict, InvalidInput]
} as const

export class UndosApi extends HttpApiGroup.make("undos")
  .add(
    /** Plans to take back what a run and the runs that it spawned changed in the graph. Nothing is done before somebody approves. */
    HttpApiEndpoint.post("undoRun", "/runs/:runId/undo", {
      params: { ...project, runId: RunId },
      ...planned
    }),
    /** Plans to take back what all runs of one version of an agent changed. */
    HttpApiEndpoint.post("undoAgent", "/agents/:agentId/undo", {
      params: { ...project, agentId: AgentId },
      payload: Schema.Struct({
        version: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2_147_483_647 }))
      }).annotate({ identifier: "AgentUndo" }),
      ...planned
    }),
    /** Plans to take back what agents changed in a chain; what began the chain stays. */
    HttpApiEndpoint.post("undoChain", "/chains/:rootEventId/undo", {
      params: { ...project, rootEventId: GraphEventId },
      ...planned
    }),
    /** The plan: what becomes of each object and relationship, what is ready first. */
    HttpApiEndpoint.get("items", "/tasks/:taskId/items", {
      params: { ...project, taskId: TaskId },
      query: PageQuery,
      success: Page(UndoItem),
      error: [NotFound, InvalidInput]
    })
  )
  .prefix("/api/projects/:projectId")
  .middleware(RequestJudgement)
  .middleware(Authorization) {}
