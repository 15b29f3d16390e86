/**
 * Tasks: a person reads what waits and decides.
 *
 * Flow: **http** → task → graph
 */
import { Api } from "@tropism/api/api"
import { findFault } from "@tropism/domain/json"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CrashPoint } from "../crash-point.ts"
import { DecisionRefused, Tasks } from "../task/tasks.ts"
import { inProject, reading } from "./access.ts"
import { pageById } from "./paging.ts"
import { changeProblem, decisionProblem, invalid, orNotFound } from "./refusals.ts"

const known = orNotFound("task")

export const tasksHandlers = HttpApiBuilder.group(Api, "tasks", (handlers) =>
  handlers.handleAll({
    list: Effect.fn("http.tasks.list")(function* ({ params, query }) {
      const tasks = yield* Tasks
      const { status, type } = query
      return yield* reading(
        params.projectId,
        pageById(query, (before, limit) => tasks.list({ status, type }, before, limit))
      )
    }),
    get: Effect.fn("http.tasks.get")(function* ({ params }) {
      const tasks = yield* Tasks
      return yield* known(reading(params.projectId, tasks.get(params.taskId)))
    }),
    approve: Effect.fn("http.tasks.approve")(function* ({ params, payload }) {
      const fault = findFault(payload)
      if (fault) return yield* invalid(fault.pointer, fault.message)
      const tasks = yield* Tasks
      const edited = payload.suggestedChanges?.data ?? null
      const task = yield* known(
        inProject(params.projectId, "reviewer", ({ userId }) =>
          Effect.mapError(tasks.approve(params.taskId, userId, payload.digest ?? null, edited), (refusal) =>
            refusal instanceof DecisionRefused ? decisionProblem(refusal) : changeProblem(refusal)
          )
        )
      )
      yield* CrashPoint.hit("task.afterCommit")
      return task
    }),
    reject: Effect.fn("http.tasks.reject")(function* ({ params, payload }) {
      const fault = findFault(payload)
      if (fault) return yield* invalid(fault.pointer, fault.message)
      const tasks = yield* Tasks
      return yield* known(
        inProject(params.projectId, "reviewer", ({ userId }) =>
          Effect.mapError(tasks.reject(params.taskId, userId, payload.reason ?? null), decisionProblem)
        )
      )
    })
  })
)
