/**
 * A person's decisions about tasks, one at a time or many after one another.
 *
 * Flow: **http** → task → graph
 *
 * Each decision is a transaction of its own, also of many: who is refused one
 * has made the others, and is told of each.
 */
import { includesRole, type Principal } from "@tropism/api/authorization"
import {
  type Approval,
  Decided,
  type Decisions,
  type Rejection,
  type RejectionOfAll
} from "@tropism/api/tasks-api"
import { Conflict, Forbidden, InvalidInput, NotFound } from "@tropism/api/problems"
import type { AgentId, ProjectId, TaskId } from "@tropism/domain/ids"
import { Data, Effect, Schema } from "effect"
import { CrashPoint } from "../crash-point.ts"
import { heldByOthers, isContended } from "../database/database-away.ts"
import type { Decider } from "../task/deciding.ts"
import { Tasks } from "../task/tasks.ts"
import { inProject, keepingAnswer, looking } from "./access.ts"
import { recordingDenial } from "./denials-handlers.ts"
import { approvalProblem, decisionProblem, invalid, keepable, orNotFound } from "./refusals.ts"
import { inPart } from "./request-keys.ts"

const known = orNotFound("task")

/** What a person may decide: editors what they could change by hand, reviewers besides what takes back. */
export const deciderOf = ({ role, userId }: Pick<Principal, "role" | "userId">): Decider => ({
  userId,
  mayTakeBack: includesRole(role, "reviewer")
})

/** Approves a task, with a person's own properties where there are any. */
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

/** Rejects a task, with a reason where there is one. */
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

/** Rejects all that waits of an agent, and answers how many that were. */
export const rejectingAll = Effect.fn("http.rejectingAll")(function* (
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

/** Decides many tasks in their order, and says of each what came of it. */
export const decidingEach = Effect.fn("http.decidingEach")(function* (
  projectId: ProjectId,
  { decision, reason, tasks }: Decisions
) {
  yield* keepable({ reason })
  const second = tasks.findIndex(
    ({ taskId }, index) => tasks.findIndex((one) => one.taskId === taskId) < index
  )
  if (second !== -1)
    return yield* invalid(`/tasks/${second}/taskId`, "This task is in the list twice: name it once")
  // Who may not decide is told so at once; each approval that was tried is on record like a single one.
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
      // Those before it are decided, and those behind it are not held.
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

/** Decisions of which one is told to be tried again: they are told and not kept, so a repeat tries. */
class Unsettled extends Data.TaggedError("Unsettled")<{ readonly items: typeof Items.Type }> {}

/** Whether the same decision may come to something else in a moment. */
const mayChange = ({ problem }: typeof Decided.Type): boolean =>
  problem instanceof Conflict && (problem.reason === "keyBusy" || problem.detail === heldByOthers)

const Items = Schema.Array(Decided)
const encodeItems = Schema.encodeEffect(Items)
const decodeItems = Schema.decodeEffect(Items)

const isProblem = (error: unknown): error is Conflict | Forbidden | InvalidInput | NotFound =>
  [Conflict, Forbidden, InvalidInput, NotFound].some((problem) => error instanceof problem)
