/**
 * Calls that only the inbox makes: many decisions at once, an edit, an undo, and looking again.
 *
 * Each decision is bound to what was shown by its digest.
 */
import type { Decided } from "@tropism/api/tasks-api"
import type { Properties } from "@tropism/domain/json"
import type { SuggestionTask, Task, UndoTask } from "@tropism/domain/task"
import { Effect } from "effect"
import { Problem, type ProblemDocument, Unreachable } from "../server/problem.ts"
import { call, type Failure, inProject, readTask } from "../server/request.ts"
import { visibleText } from "../words/visible-text.ts"
import type { Decision } from "./inbox-state.ts"
import { decidedSentence } from "./decided-words.ts"

const atTask = (projectId: string, taskId: string, rest: string): string =>
  inProject(projectId, `tasks/${encodeURIComponent(taskId)}/${rest}`)

/** Approves other properties than the suggested ones; what moved up to the version that is shown is no conflict. */
export const approveEdited = (
  projectId: string,
  task: SuggestionTask,
  data: Properties
): Effect.Effect<SuggestionTask, Failure> => {
  const baseVersion = task.target?.version ?? task.relationship?.version
  const isOfVersion = task.baseVersion !== null && baseVersion !== undefined
  return call(atTask(projectId, task.id, "approve"), {
    method: "POST",
    body: { digest: task.digest, suggestedChanges: { data, ...(isOfVersion && { baseVersion }) } }
  })
}

/** What came of one decision among many: the task, or the failure that its own door would answer. */
export interface Outcome {
  readonly task: SuggestionTask
  readonly failure: Failure | undefined
}

/** Decides many in one request, each in a transaction of its own. */
export const decideTogether = (
  projectId: string,
  decision: Decision,
  tasks: ReadonlyArray<SuggestionTask>,
  reason: string
): Effect.Effect<ReadonlyArray<Outcome>, Failure> =>
  call<{ readonly items: ReadonlyArray<typeof Decided.Type> }>(inProject(projectId, "tasks/decisions"), {
    method: "POST",
    body: {
      decision,
      ...(decision === "reject" && reason !== "" && { reason }),
      tasks: tasks.map(({ digest, id }) => ({ taskId: id, digest }))
    }
  }).pipe(
    Effect.map(({ items }) => {
      const answers = new Map(items.map((item) => [String(item.taskId), item]))
      return tasks.map((task): Outcome => {
        const { problem, task: decided } = answers.get(task.id) ?? {}
        // The problem is the document that the task's own door answers.
        const document = problem as (ProblemDocument & { readonly status: number }) | undefined
        return document === undefined
          ? { task: (decided as SuggestionTask | undefined) ?? task, failure: undefined }
          : { task, failure: new Problem({ status: document.status, document }) }
      })
    })
  )

/** Lets the agent look again at what has moved, or plans an undo anew. */
export const lookAgain = (projectId: string, task: Task): Effect.Effect<Task, Failure> =>
  call(atTask(projectId, task.id, "rerun"), { method: "POST" })

/** Plans to take back what a run did; nothing is done before somebody approves the plan. */
export const planUndo = (
  projectId: string,
  runId: string,
  idempotencyKey: string
): Effect.Effect<UndoTask, Failure> =>
  call(inProject(projectId, `runs/${encodeURIComponent(runId)}/undo`), { method: "POST", idempotencyKey })

/** Takes back what a plan says, but for the items left out. */
export const approveUndo = (
  projectId: string,
  task: UndoTask,
  leaveOut: ReadonlyArray<string>
): Effect.Effect<UndoTask, Failure> =>
  call(atTask(projectId, task.id, "approve"), {
    method: "POST",
    body: { digest: task.digest, leaveOut }
  })

/** What became of what was done about a task, where the answer was lost: the task says so, if the server can be asked again. */
export const foundDone =
  (projectId: string, taskId: string, isDone: (now: Task) => boolean) =>
  (failure: Failure): Effect.Effect<Task, Failure> =>
    failure instanceof Unreachable
      ? readTask(projectId, taskId).pipe(
          Effect.mapError(() => failure),
          Effect.filterOrFail(isDone, () => new Unreachable({ cause: failure.cause }))
        )
      : Effect.fail(failure)

/** Whether somebody else was first. */
export const isDecidedAlready = (failure: unknown): boolean =>
  failure instanceof Problem && failure.document.reason === "alreadyDecided"

/** Who decided a task and what, in a sentence; undefined while it waits. */
export const whoDecided = (projectId: string, taskId: string): Effect.Effect<string | undefined, Failure> =>
  readTask(projectId, taskId).pipe(Effect.map((task) => decidedSentence(task, visibleText)))
