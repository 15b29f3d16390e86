/**
 * `tropism tasks approve`, `reject`, `answer`, `rerun` and `assign`: a person's decision or answer, or who is to give it.
 *
 * An approval is bound to what was read: the digest of the payload goes with
 * it, so a suggestion that changed in between is refused by the server. An
 * answer names the question that was read.
 */
import { AnswerInput } from "@tropism/api/runs-api"
import { AgentId, UserId } from "@tropism/domain/ids"
import {
  isPromotion,
  isQuestion,
  isSuggestion,
  isTodo,
  isUndo,
  type Task,
  type TodoTask,
  type UndoTask
} from "@tropism/domain/task"
import { Effect, Option, Result, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Access, inProject, readPages } from "../access.ts"
import { pickAgent, readAgents } from "../agents-by-name.ts"
import { taskSubject } from "../change-text.ts"
import { exitCodes } from "../exit-codes.ts"
import { type Failure, failTogether, failure, requestFailure, retold } from "../failure.ts"
import { limits } from "../limits.ts"
import { printOr } from "../print-records.ts"
import { JsonFlag } from "../settings.ts"
import { findTask, taskArgument, taskName } from "../task-reference.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { typed } from "../typed-input.ts"

const approve = Command.make("approve", { tasks: Argument.atLeast(taskArgument, 1) }, ({ tasks }) =>
  decideEach(tasks, (access, task) =>
    access.client.tasks.approve({
      params: { ...access.params, taskId: task.id },
      payload: { digest: task.digest }
    })
  )
).pipe(Command.withDescription("Approve suggestions; the changes are applied immediately"))

const reject = Command.make(
  "reject",
  {
    tasks: Argument.variadic(taskArgument),
    allOf: Flag.String("all-of").pipe(
      Flag.withMetavar("<agent>"),
      Flag.withDescription("All suggestions of this agent, by name or id, even if it was deleted"),
      Flag.optional
    ),
    reason: Flag.String("reason").pipe(
      Flag.withDescription("The reason, visible to the agent"),
      Flag.optional
    )
  },
  ({ allOf, reason: why, tasks }) => {
    const reason = Option.getOrNull(why)
    if (Option.isSome(allOf) === tasks.length > 0)
      return failure("Name either tasks or an agent with --all-of, not both.", exitCodes.usage)
    return Option.isSome(allOf)
      ? rejectAll(allOf.value, reason)
      : decideEach(tasks, (access, task) =>
          access.client.tasks.reject({ params: { ...access.params, taskId: task.id }, payload: { reason } })
        )
  }
).pipe(
  Command.withDescription("Reject suggestions; nothing is changed"),
  Command.withExamples([
    { command: "tropism tasks reject 4 5", description: "Reject two" },
    {
      command: 'tropism tasks reject --all-of tidy-up --reason "We do not need it"',
      description: "Reject all suggestions of an agent"
    }
  ])
)

const rejectAll = (agent: string, reason: string | null) =>
  inProject((access) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      const agentId = yield* findSuggester(access, agent)
      const answer = yield* access.client.tasks.rejectAll({
        params: { ...access.params, agentId },
        payload: { reason }
      })
      const count = `${answer.rejected} ${answer.rejected === 1 ? "suggestion" : "suggestions"}`
      yield* printOr(answer, screen.print(`Rejected ${count} of ${printable(agent)}.`))
    })
  )

/** The id of an agent that suggests something; one that is deleted is known by what waits of it. */
const findSuggester = Effect.fnUntraced(function* (access: Access, reference: string) {
  const id = Schema.decodeUnknownOption(AgentId)(reference)
  if (Option.isSome(id)) return id.value
  const agents = yield* readAgents(access)
  const live = agents.find(({ name }) => name === reference)
  if (live) return live.id
  const { items } = yield* readPages(
    (query) => access.client.tasks.list({ params: access.params, query: { ...query, status: "pending" } }),
    Infinity
  )
  const suggested = items.filter(isSuggestion).find(({ agentName }) => agentName === reference)
  return suggested ? suggested.agentId : (yield* pickAgent(agents, reference)).id
})

const answer = Command.make(
  "answer",
  {
    task: taskArgument,
    answer: Argument.String("answer").pipe(
      Argument.withDescription("The answer; one of the options if there are any")
    )
  },
  (input) =>
    inProject((access) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const task = yield* findTask(access, input.task)
        if (!isQuestion(task))
          return yield* failure(
            isTodo(task)
              ? `Task ${task.number} is a todo: complete it.`
              : `Task ${task.number} is not a question: approve or reject it.`
          )
        const payload = yield* typed(AnswerInput, { answer: input.answer, taskId: task.id })
        const run = yield* access.client.runs.answer({
          params: { ...access.params, runId: task.runId },
          payload
        })
        if (yield* JsonFlag) yield* screen.print(JSON.stringify(run, null, 2))
        else {
          const isWaiting = run.status === "paused" && run.pauseReason === "question"
          const sequel = isWaiting ? "it is waiting for another answer" : "its run continues"
          yield* screen.print(
            `Answered ${task.number}: ${printable(task.agentName)} has your answer; ${sequel}.`
          )
        }
      })
    )
).pipe(Command.withDescription("Answer an agent's question; its run continues"))

const rerun = Command.make("rerun", { task: taskArgument }, (input) =>
  inProject((access) =>
    Effect.gen(function* () {
      const { id } = yield* findTask(access, input.task)
      const task = yield* access.client.tasks.rerun({ params: { ...access.params, taskId: id } })
      const run = isSuggestion(task) ? task.rerun?.runId : undefined
      const sequel = run === undefined ? "the plan was refreshed" : `the agent re-evaluates it in run ${run}`
      yield* printOr(
        task,
        Effect.flatMap(Screen, (screen) => screen.print(`${taskName(task)}: ${sequel}.`))
      )
    })
  )
).pipe(
  Command.withDescription("Re-evaluate a suggestion, or refresh an undo plan"),
  Command.withShortDescription("Re-evaluate a suggestion or refresh an undo plan")
)

const assign = Command.make(
  "assign",
  {
    task: taskArgument,
    user: Argument.String("user").pipe(
      Argument.withDescription("The assignee; me is you"),
      Argument.withSchema(UserId),
      Argument.optional
    ),
    nobody: Flag.Boolean("nobody").pipe(Flag.withDescription("Remove the assignee"), Flag.withDefault(false))
  },
  (input) =>
    inProject((access) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        if (Option.isSome(input.user) === input.nobody)
          return yield* failure("Name a user, or use --nobody.", exitCodes.usage)
        const { id } = yield* findTask(access, input.task)
        const task = yield* access.client.tasks.change({
          params: { ...access.params, taskId: id },
          headers: {},
          payload: { assignee: Option.getOrNull(input.user) }
        })
        const assignee = "assignee" in task ? task.assignee : null
        yield* printOr(
          task,
          screen.print(`${taskName(task)}: ${printable(assignee ?? "no one")} is the assignee.`)
        )
      })
    )
).pipe(Command.withDescription("Assign a task; other reviewers can still decide"))

/** The commands by which a person decides or answers. */
export const decisionCommands = [approve, reject, answer, rerun, assign] as const

/** Decides one task after the other; one that cannot be decided does not keep the others from it. */
const decideEach = <E>(
  references: ReadonlyArray<string>,
  decide: (access: Access, task: Decidable) => Effect.Effect<Task, E>
) =>
  inProject((access) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      if (references.length > limits.tasksPerCommand) {
        return yield* failure(
          `At most ${limits.tasksPerCommand} tasks can be decided at once; got ${references.length}.`,
          exitCodes.usage
        )
      }
      const results = yield* Effect.forEach(references, (reference) =>
        findTask(access, reference).pipe(
          Effect.flatMap((task): Effect.Effect<Task, E | Failure> =>
            isTodo(task) ? Effect.fail(failure(isOnesOwn(task))) : decide(access, task)
          ),
          Effect.mapError((error) => {
            const told = requestFailure(error, access.connection.url)
            return references.length === 1
              ? told
              : retold(told, `Task ${printable(reference)}: ${told.message}`)
          }),
          Effect.result
        )
      )
      const decided = results.filter(Result.isSuccess).map((result) => result.success)
      if (yield* JsonFlag) yield* screen.print(JSON.stringify(decided, null, 2))
      else yield* screen.print(...decided.map((task) => decisionLine(task)))
      const failures = results.filter(Result.isFailure).map((result) => result.failure)
      yield* failTogether(failures, decided.length === 0)
    })
  )

/** A todo is nobody's to decide. */
type Decidable = Exclude<Task, TodoTask>

const isOnesOwn = (todo: TodoTask): string =>
  `${taskName(todo)} is your todo: complete it with "tropism tasks complete ${taskName(todo)}".`

const undoneText = ({ outcome }: UndoTask): string => {
  const { expiredSuggestions: dropped, leftOut, undone } = outcome ?? nothingDone
  return [
    `${undone} undone`,
    `${leftOut} left out`,
    ...(dropped === 0 ? [] : [`${dropped} ${dropped === 1 ? "suggestion" : "suggestions"} dropped`])
  ].join(", ")
}

const nothingDone = { undone: 0, leftOut: 0, expiredSuggestions: 0 }

const decisionLine = (task: Task): string => {
  const subject = printable(taskSubject(task))
  if (isPromotion(task))
    return task.status === "completed"
      ? `Acknowledged ${task.number}: ${printable(task.title)}.`
      : `Revoked ${task.number}: ${printable(task.agentName)} needs approval again.`
  if (isUndo(task) && task.status !== "completed")
    return `Rejected ${task.number}: ${printable(task.title)}: nothing was undone.`
  if (task.status !== "completed") return `Rejected ${task.number}: ${subject} is unchanged.`
  if (isUndo(task)) return `Approved ${task.number}: ${printable(task.title)}: ${undoneText(task)}.`
  const outcome = isSuggestion(task) ? task.outcome : null
  return `Approved ${task.number}: ${subject} ${outcome === null ? "was decided" : outcome.change === "unchanged" ? "was already so" : `is ${outcome.change} (version ${outcome.version})`}.`
}
