/**
 * What agents ask of people, through MCP: look at what waits, decide, answer.
 *
 * Flow: **mcp** → graph → outbox → dispatch → run → tool → task
 *
 * An approval is bound to what the person was shown: without its digest there is
 * none. No agent has these tools, so none approves itself or another.
 */
import { CurrentPrincipal } from "@tropism/api/authorization"
import { AnswerInput } from "@tropism/api/runs-api"
import { RejectionReason } from "@tropism/api/tasks-api"
import { TaskId } from "@tropism/domain/ids"
import { mergePatch, Properties } from "@tropism/domain/json"
import { diffJson } from "@tropism/domain/json-diff"
import { isQuestion, isSuggestion, isTodo, type SuggestionTask, type Task } from "@tropism/domain/task"
import { Effect, Schema } from "effect"
import type { BroughtContexts } from "../chat/brought-contexts.ts"
import type { Conversations } from "../chat/conversations.ts"
import { Database } from "../database/database.ts"
import { deciderOf } from "../http/decisions.ts"
import { spokenRun } from "../http/owned.ts"
import { pageById } from "../http/paging.ts"
import { Answers } from "../run/questions.ts"
import type { Runs } from "../run/runs.ts"
import { Tasks } from "../task/tasks.ts"
import { Denials, whyDenied } from "../tool/denials.ts"
import { type PersonPrincipal, personTool, reads, sets } from "../tool/person-tool.ts"
import { asJson, failed, known, opt, pageArguments, pageOf, pageShape, principalOf } from "./told.ts"

const knownTask = known("task")

/** A task in a list: enough to choose by. */
const listedTask = (task: Task) => ({
  taskId: task.id,
  number: task.number,
  type: task.type,
  status: task.status,
  title: task.title,
  description: task.description,
  createdAt: task.createdAt,
  ...("agentName" in task ? { agentName: task.agentName } : {}),
  ...("assignee" in task ? { assignee: task.assignee } : {}),
  ...("digest" in task ? { digest: task.digest } : {}),
  ...(isSuggestion(task)
    ? { staleness: task.staleness?.state ?? null, agentState: task.agentState, denial: task.denial }
    : {})
})

/** What approval would change, place by place. */
const diffOf = ({ payload: { suggestedChanges: change }, relationship, target }: SuggestionTask) => {
  const before = (target ?? relationship)?.properties ?? {}
  if (change.type === "delete" || change.type === "deleteRelationship") return diffJson(before, {})
  return diffJson(
    before,
    change.type === "create" || change.type === "createRelationship"
      ? change.data
      : mergePatch(before, change.data)
  )
}

/** A task with all that a person needs to decide. */
export const shownTask = (task: Task) => asJson(isSuggestion(task) ? { ...task, diff: diffOf(task) } : task)

/** Reads what waits for people. */
export const makeReviewReading = Effect.gen(function* () {
  const tasks = yield* Tasks

  /** What waits for a decision or an answer, newest first; nobody's todos. */
  const waiting = ({ userId }: PersonPrincipal, isMine: boolean, page: Parameters<typeof pageOf>[1]) =>
    pageById(pageOf(isMine ? "mine" : "waiting", page), (before, limit) =>
      tasks.list(
        { status: "pending", isOfProject: true, ...(isMine ? { assignee: userId } : {}) },
        userId,
        before,
        limit
      )
    ).pipe(
      Effect.mapError(failed),
      Effect.map(({ items, nextCursor }) => ({ items: items.map(listedTask), nextCursor }))
    )

  /** One task that is no todo. */
  const get = (id: TaskId, { userId }: PersonPrincipal) =>
    knownTask(Effect.map(tasks.get(id, userId), (task) => (task && isTodo(task) ? undefined : task)))

  return { get, waiting }
})

const listReview = {
  name: "list_review",
  title: "List what waits for people",
  description:
    "Lists what agents ask people to decide or to answer, newest first: suggestions, undos, questions, promotions.",
  arguments: Schema.Struct({
    mine: opt(Schema.Boolean.annotate({ description: "True for what is assigned to you alone" })),
    ...pageArguments
  }),
  outputSchema: pageShape,
  annotations: reads,
  role: "viewer"
} as const

const getSuggestion = {
  name: "get_suggestion",
  title: "Read a suggestion",
  description:
    "Reads a suggestion, question or undo with all that a decision needs: the change, its difference to the present, the agent's reasoning, the evidence, whether anything moved since, and in denial why the agent's capabilities forbid it by now, if they do. Its digest binds an approval to what you saw.",
  arguments: Schema.Struct({ taskId: TaskId }),
  annotations: reads,
  role: "viewer"
} as const

const approveSuggestion = {
  name: "approve_suggestion",
  title: "Approve a suggestion",
  description:
    "Makes the suggested change, or, for a reviewer, carries out an undo. Read it first, and give the digest that you were shown.",
  arguments: Schema.Struct({
    taskId: TaskId,
    digest: Schema.String.check(Schema.isBetweenLength(1, 200)).annotate({
      description: "digest of get_suggestion: another state of the suggestion is not approved"
    }),
    properties: opt(
      Properties.annotate({ description: "Your own properties in place of the suggested ones" })
    ),
    leaveOut: opt(
      Schema.Array(Schema.String.check(Schema.isMaxLength(200)))
        .check(Schema.isMaxLength(1_000))
        .annotate({ description: "Of an undo: ids of items that stay as they are" })
    )
  }),
  annotations: sets,
  role: "editor"
} as const

const rejectSuggestion = {
  name: "reject_suggestion",
  title: "Reject a suggestion",
  description: "Ends a suggestion or an undo with no change. The agent learns the reason.",
  arguments: Schema.Struct({
    taskId: TaskId,
    digest: opt(Schema.String.check(Schema.isBetweenLength(1, 200))),
    reason: opt(RejectionReason.annotate({ description: "Why, for the agent" }))
  }),
  annotations: sets,
  role: "editor"
} as const

const answerQuestion = {
  name: "answer_question",
  title: "Answer an agent's question",
  description:
    "Gives an agent the answer that its run waits for; where it named answers to choose from, one of them.",
  arguments: Schema.Struct({
    taskId: TaskId,
    answer: AnswerInput.fields.answer
  }),
  annotations: sets,
  role: "editor"
} as const

export const makeReviewTools = Effect.gen(function* () {
  const database = yield* Database
  const tasks = yield* Tasks
  const services = yield* Effect.context<BroughtContexts | Conversations | Runs>()
  const answers = yield* Answers
  const denials = yield* Denials
  const { get, waiting } = yield* makeReviewReading

  return [
    personTool(listReview, ({ mine, ...page }, { principal }) =>
      Effect.map(waiting(principal, mine === true, page), (found) => ({ result: asJson(found) }))
    ),
    personTool(getSuggestion, ({ taskId }, { principal }) =>
      Effect.map(get(taskId, principal), (task) => ({ result: shownTask(task) }))
    ),
    personTool(approveSuggestion, ({ digest, leaveOut, properties, taskId }, { principal }) =>
      Effect.gen(function* () {
        yield* get(taskId, principal)
        const edit = properties ? { data: properties, baseVersion: null } : null
        const approval = tasks.approve(taskId, deciderOf(principal), digest, edit, leaveOut ?? [])
        return yield* Effect.matchEffect(database.attempt(approval), {
          onSuccess: (task) =>
            Effect.map(knownTask(Effect.succeed(task)), (done) => ({ result: shownTask(done) })),
          onFailure: (refusal) =>
            Effect.gen(function* () {
              // The approval is undone; that the agent may not do it any more is kept all the same.
              const why = refusal._tag === "ChangeRefused" ? whyDenied(refusal) : undefined
              if (why) yield* denials.ofApproval(taskId, principal.userId, properties ?? null, why)
              const { result } = failed(refusal)
              return { result, isError: true, ...(why ? { decision: "refuse" as const } : {}) }
            })
        })
      })
    ),
    personTool(rejectSuggestion, ({ digest, reason, taskId }, { principal }) =>
      Effect.gen(function* () {
        yield* get(taskId, principal)
        const rejection = tasks.reject(taskId, deciderOf(principal), reason ?? null, digest ?? null)
        return { result: shownTask(yield* knownTask(Effect.mapError(rejection, failed))) }
      })
    ),
    personTool(answerQuestion, ({ answer, taskId }, { principal }) =>
      Effect.gen(function* () {
        const task = yield* get(taskId, principal)
        if (!isQuestion(task))
          return yield* failed({
            _tag: "Conflict",
            reason: "state",
            detail: `Task ${task.number} is no question: approve or reject it`
          })
        yield* spokenRun(task.runId).pipe(
          Effect.flatMap((run) => answers.give(run, answer, taskId, principal.userId)),
          Effect.provideService(CurrentPrincipal, principalOf(principal)),
          Effect.provide(services),
          Effect.mapError(failed)
        )
        return { result: shownTask(yield* get(taskId, principal)) }
      })
    )
  ]
})
