/**
 * Tasks: a person reads what waits and decides.
 *
 * Flow: **http** → task → graph
 */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal } from "@tropism/api/authorization"
import { Conflict } from "@tropism/api/problems"
import type { TaskId, UserId } from "@tropism/domain/ids"
import { isQuestion, isTodo, isUndo, type TaskRevision } from "@tropism/domain/task"
import { Effect } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { Reruns } from "../dispatch/reruns.ts"
import { Tasks } from "../task/tasks.ts"
import { Todos } from "../task/todos.ts"
import { inProject, reading, requireRole } from "./access.ts"
import { onTag, taggedByDigest } from "./conditions.ts"
import { approving, decidingEach, rejecting, rejectingAll } from "./decisions.ts"
import { pageById, pageByNumber } from "./paging.ts"
import { decisionProblem, keepable, orNotFound, triggerProblem, undoProblem } from "./refusals.ts"

const known = orNotFound("task")

const notNow = ({ detail }: { readonly detail: string }) => new Conflict({ reason: "state", detail })

/** A todo as its owner sees it. */
const todoOf = Effect.fnUntraced(function* (id: TaskId, owner: UserId) {
  const tasks = yield* Tasks
  const task = yield* tasks.get(id, owner)
  return task && isTodo(task) ? task : undefined
})

/** What a person does to a task that is none of his todos: nothing where there is none, else what to do instead. */
const notATodo = Effect.fnUntraced(function* (id: TaskId, reader: UserId, why: string) {
  const tasks = yield* Tasks
  const task = yield* tasks.get(id, reader)
  if (!task) return undefined
  const instead = isQuestion(task) ? "answer it" : "approve or reject it"
  return yield* notNow({ detail: `Task ${task.number} is no todo, and ${why}: ${instead}` })
})

export const tasksHandlers = HttpApiBuilder.group(Api, "tasks", (handlers) =>
  handlers.handleAll({
    list: Effect.fn("http.tasks.list")(function* ({ params, query }) {
      const tasks = yield* Tasks
      const { userId } = yield* CurrentPrincipal
      yield* keepable({ assignee: query.assignee })
      const { agentId, number, status, type } = query
      const assignee = query.assignee === "me" ? userId : query.assignee
      return yield* reading(
        params.projectId,
        pageById(query, (before, limit) =>
          tasks.list({ agentId, assignee, number, status, type }, userId, before, limit)
        )
      )
    }),
    get: Effect.fn("http.tasks.get")(function* ({ params }) {
      const tasks = yield* Tasks
      const { userId } = yield* CurrentPrincipal
      const task = known(reading(params.projectId, tasks.get(params.taskId, userId)))
      return yield* Effect.flatMap(task, taggedByDigest)
    }),
    add: Effect.fn("http.tasks.add")(function* ({ params, payload }) {
      yield* keepable(payload)
      const todos = yield* Todos
      return yield* known(
        inProject(params.projectId, "editor", ({ userId }) =>
          Effect.flatMap(Effect.mapError(todos.add(userId, payload), notNow), ({ id }) => todoOf(id, userId))
        )
      )
    }),
    change: Effect.fn("http.tasks.change")(function* ({ params: { projectId, taskId }, headers, payload }) {
      yield* keepable(payload)
      const tasks = yield* Tasks
      const todos = yield* Todos
      const { assignee, expiresAt } = payload
      const isOfWait = assignee !== undefined || expiresAt !== undefined
      const changed = inProject(projectId, "editor", ({ userId }) =>
        onTag(
          headers,
          known(tasks.hold(taskId, userId)),
          Effect.gen(function* () {
            if (isOfWait)
              return yield* Effect.mapError(
                tasks.wait(taskId, userId, {
                  ...(assignee === undefined ? {} : { assignee: assignee === "me" ? userId : assignee }),
                  ...(expiresAt === undefined ? {} : { expiresAt })
                }),
                decisionProblem
              )
            const edited = yield* todos.edit(userId, { id: taskId }, payload)
            return yield* edited
              ? todoOf(taskId, userId)
              : notATodo(taskId, userId, "only a todo has words of its own to change")
          })
        )
      )
      return yield* Effect.flatMap(known(changed), taggedByDigest)
    }),
    complete: Effect.fn("http.tasks.complete")(function* ({ params }) {
      const todos = yield* Todos
      return yield* known(
        inProject(params.projectId, "editor", ({ userId }) =>
          Effect.gen(function* () {
            const done = yield* todos.complete(userId, { id: params.taskId })
            if (!done) return yield* notATodo(params.taskId, userId, "only a todo is completed")
            if (!done.isNew) return yield* notNow({ detail: `Todo ${done.number} is done already` })
            return yield* todoOf(params.taskId, userId)
          })
        )
      )
    }),
    remove: Effect.fn("http.tasks.remove")(function* ({ params: { projectId, taskId }, headers }) {
      const tasks = yield* Tasks
      const todos = yield* Todos
      yield* known(
        inProject(projectId, "editor", ({ userId }) =>
          onTag(
            headers,
            known(tasks.hold(taskId, userId)),
            Effect.gen(function* () {
              const removed = yield* todos.remove(userId, { id: taskId })
              return removed ?? (yield* notATodo(taskId, userId, "only a todo is deleted"))
            })
          )
        )
      )
    }),
    revisions: Effect.fn("http.tasks.revisions")(function* ({ params, query }) {
      const tasks = yield* Tasks
      const { userId } = yield* CurrentPrincipal
      return yield* reading(
        params.projectId,
        Effect.andThen(
          known(tasks.get(params.taskId, userId)),
          pageByNumber(
            query,
            ({ revision }: TaskRevision) => revision,
            (before, limit) => tasks.revisions(params.taskId, before, limit)
          )
        )
      )
    }),
    approve: ({ params, payload }) => approving(params.projectId, params.taskId, payload),
    decide: ({ params, payload }) => decidingEach(params.projectId, payload),
    rerun: Effect.fn("http.tasks.rerun")(function* ({ params }) {
      const reruns = yield* Reruns
      return yield* known(
        inProject(params.projectId, "editor", (principal) =>
          Effect.catchTags(reruns.rerun(params.taskId, principal.userId), {
            TriggerRefused: triggerProblem,
            UndoRefused: (refusal) => Effect.fail(undoProblem(refusal)),
            RerunRefused: ({ detail, reason }) => Effect.fail(new Conflict({ reason, detail }))
          }).pipe(
            // What is planned anew for somebody who may not is undone with the refusal.
            Effect.tap((task) => (task && isUndo(task) ? requireRole(principal, "reviewer") : Effect.void))
          )
        )
      )
    }),
    reject: ({ params, payload }) => rejecting(params.projectId, params.taskId, payload),
    rejectAll: ({ params, payload }) => rejectingAll(params.projectId, params.agentId, payload)
  })
)
