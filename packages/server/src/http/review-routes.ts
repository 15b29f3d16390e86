/** Endpoints for tasks: read them and decide. */
import { Api } from "@tropism/api/api"
import { CurrentPrincipal, includesRole, type Principal } from "@tropism/api/authorization"
import { Conflict, Forbidden, InvalidInput, NotFound } from "@tropism/api/problems"
import {
  type Approval,
  Decided,
  type Decisions,
  type Rejection,
  type RejectionOfAll
} from "@tropism/api/tasks-api"
import type { TaskId, UserId, AgentId, ProjectId } from "@tropism/domain/ids"
import { isQuestion, isTodo, isUndo, type TaskRevision } from "@tropism/domain/task"
import { Effect, Data, Schema } from "effect"
import { HttpApiBuilder } from "effect/http-api"
import { CrashPoint } from "../crash-point.ts"
import { heldByOthers, isContended } from "../database/connection-errors.ts"
import { Reruns } from "../reactions/manual-retries.ts"
import type { Decider } from "../review/decisions.ts"
import { Tasks } from "../review/tasks.ts"
import { Todos } from "../review/todos.ts"
import { inProject, reading, requireRole, keepingAnswer, looking } from "./access.ts"
import { inPart } from "./idempotency.ts"
import { recordingDenial } from "./operations-routes.ts"
import { onTag, taggedByDigest, pageById, pageByNumber } from "./paging.ts"
import {
  decisionProblem,
  keepable,
  orNotFound,
  triggerProblem,
  undoProblem,
  approvalProblem,
  invalid
} from "./problems.ts"

const known = orNotFound("task")

const notNow = ({ detail }: { readonly detail: string }) => new Conflict({ reason: "state", detail })

/** A todo as its owner sees it. */
const todoOf = Effect.fnUntraced(function* (id: TaskId, owner: UserId) {
  const tasks = yield* Tasks
  const task = yield* tasks.get(id, owner)
  return task && isTodo(task) ? task : undefined
})

/** The problem for an action on a task that is not the caller's todo: 404 where there is none, otherwise advice. */
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
            // The 403 rolls back a new plan made for a caller who may not have it.
            Effect.tap((task) => (task && isUndo(task) ? requireRole(principal, "reviewer") : Effect.void))
          )
        )
      )
    }),
    reject: ({ params, payload }) => rejecting(params.projectId, params.taskId, payload),
    rejectAll: ({ params, payload }) => rejectingAll(params.projectId, params.agentId, payload)
  })
)

// Decides tasks, one or many.
//
// Each decision is its own transaction, also in a batch: a refused one does not affect the others, and each has its own result.

/** The decisions a role allows: editors decide what they could change by hand; reviewers also undo. */
export const deciderOf = ({ role, userId }: Pick<Principal, "role" | "userId">): Decider => ({
  userId,
  mayTakeBack: includesRole(role, "reviewer")
})

/** Approves a task, with a person's edited properties where there are any. */
export const approving = Effect.fn("http.approving")(function* (
  projectId: ProjectId,
  taskId: TaskId,
  payload: Approval
) {
  yield* keepable(payload)
  const tasks = yield* Tasks
  const edit = payload.suggestedChanges
    ? { ...payload.suggestedChanges, baseVersion: payload.suggestedChanges.baseVersion ?? null }
    : null
  const task = yield* known(
    inProject(projectId, "editor", (principal) =>
      Effect.mapError(
        tasks.approve(taskId, deciderOf(principal), payload.digest ?? null, edit, payload.leaveOut ?? []),
        approvalProblem
      )
    ).pipe(recordingDenial(projectId, taskId, edit?.data ?? null))
  )
  yield* CrashPoint.hit("task.afterCommit")
  return task
})

/** Rejects a task, with an optional reason. */
export const rejecting = Effect.fn("http.rejecting")(function* (
  projectId: ProjectId,
  taskId: TaskId,
  payload: Rejection
) {
  yield* keepable(payload)
  const tasks = yield* Tasks
  return yield* known(
    inProject(projectId, "editor", (principal) =>
      Effect.mapError(
        tasks.reject(taskId, deciderOf(principal), payload.reason ?? null, payload.digest ?? null),
        decisionProblem
      )
    )
  )
})

/** Rejects all pending tasks of an agent and returns their number. */
const rejectingAll = Effect.fn("http.rejectingAll")(function* (
  projectId: ProjectId,
  agentId: AgentId,
  { reason }: RejectionOfAll
) {
  yield* keepable({ reason })
  const tasks = yield* Tasks
  return yield* inProject(projectId, "editor", ({ userId }) =>
    Effect.map(orNotFound("agent")(tasks.rejectAll(agentId, userId, reason ?? null)), ({ length }) => ({
      rejected: length
    }))
  )
})

/** Decides several tasks in order and returns a result for each. */
const decidingEach = Effect.fn("http.decidingEach")(function* (
  projectId: ProjectId,
  { decision, reason, tasks }: Decisions
) {
  yield* keepable({ reason })
  const second = tasks.findIndex(
    ({ taskId }, index) => tasks.findIndex((one) => one.taskId === taskId) < index
  )
  if (second !== -1)
    return yield* invalid(`/tasks/${second}/taskId`, "This task is in the list twice: name it once")
  // A missing role fails at once; each approval attempt is recorded as a single one would be.
  yield* looking(projectId, "editor", () => Effect.void).pipe(
    Effect.tapError((problem) =>
      Effect.forEach(decision === "approve" ? tasks : [], ({ taskId }) =>
        Effect.flip(recordingDenial(projectId, taskId, null)(Effect.fail(problem)))
      )
    )
  )
  const items = Effect.forEach(tasks, ({ digest, taskId }) =>
    inPart(
      taskId,
      decision === "approve"
        ? approving(projectId, taskId, { digest })
        : rejecting(projectId, taskId, { digest, reason })
    ).pipe(
      Effect.map((task) => ({ taskId, task })),
      Effect.catchIf(isProblem, (problem) => Effect.succeed({ taskId, problem })),
      // Earlier decisions stay, and later ones go on.
      Effect.catchDefect((defect) =>
        isContended(defect)
          ? Effect.succeed({ taskId, problem: new Conflict({ reason: "state", detail: heldByOthers }) })
          : Effect.die(defect)
      )
    )
  )
  const encoded = Effect.flatMap(items, (made) =>
    made.some(mayChange) ? Effect.fail(new Unsettled({ items: made })) : Effect.orDie(encodeItems(made))
  )
  const kept = keepingAnswer(projectId, "editor", "all", encoded)
  return {
    items: yield* Effect.flatMap(kept, (all) => Effect.orDie(decodeItems(all))).pipe(
      Effect.catchTag("Unsettled", (unsettled) => Effect.succeed(unsettled.items))
    )
  }
})

/** Results with at least one that should be retried. They are returned and not stored, so a repeat tries again. */
class Unsettled extends Data.TaggedError("Unsettled")<{ readonly items: typeof Items.Type }> {}

/** Whether the same decision may have another result in a moment. */
const mayChange = ({ problem }: typeof Decided.Type): boolean =>
  problem instanceof Conflict && (problem.reason === "keyBusy" || problem.detail === heldByOthers)

const Items = Schema.Array(Decided)
const encodeItems = Schema.encodeEffect(Items)
const decodeItems = Schema.decodeEffect(Items)

const isProblem = (error: unknown): error is Conflict | Forbidden | InvalidInput | NotFound =>
  [Conflict, Forbidden, InvalidInput, NotFound].some((problem) => error instanceof problem)
