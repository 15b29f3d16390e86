/**
 * `tropism tasks`: what waits for a person, and the person's decision or answer.
 *
 * An approval is bound to what was read: the digest of the payload goes with
 * it, so a suggestion that changed in between is refused by the server. An
 * answer names the question that was read.
 */
import { AnswerInput } from "@tropism/api/runs-api"
import { isQuestion, type Task, TaskStatus } from "@tropism/domain/task"
import { TaskId } from "@tropism/domain/ids"
import { Clock, Effect, Option, Result, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Access, inProject, readPages } from "../access.ts"
import { taskLines, taskSubject } from "../change-text.ts"
import { failure, requestFailure } from "../failure.ts"
import { limits } from "../limits.ts"
import { printFacts, printOr, printRecords } from "../print-records.ts"
import { JsonFlag } from "../settings.ts"
import { paintState } from "../terminal/paint.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { formatAge } from "../terminal/time.ts"
import { typed } from "../typed-input.ts"
import { limitFlag } from "./limit-flag.ts"

const reference = Argument.String("task").pipe(Argument.withDescription("A task's number or id"))

const list = Command.make(
  "tasks",
  {
    status: Flag.Literals("status", [...TaskStatus.literals, "all"]).pipe(
      Flag.withDescription("Which tasks to list"),
      Flag.withDefault("pending" as const)
    ),
    limit: limitFlag
  },
  ({ limit, status }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { paint } = yield* Screen
        const now = yield* Clock.currentTimeMillis
        const filter = status === "all" ? {} : { status }
        const { hasMore, items } = yield* readPages(
          (query) => access.client.tasks.list({ params: access.params, query: { ...query, ...filter } }),
          limit
        )
        yield* printRecords({
          records: items,
          hasMore,
          nothing: status === "pending" ? "Nothing waits for you." : "No task is in that state.",
          columns: [
            { title: "NO", align: "right", cell: (task) => String(task.number) },
            ...(status === "pending"
              ? []
              : [
                  {
                    title: "STATUS",
                    cell: (task: Task) => task.status,
                    paint: (task: Task) => paintState(paint, task.status)
                  }
                ]),
            { title: "OBJECT", shrinks: "start", cell: taskSubject },
            {
              title: "CHANGE OR QUESTION",
              shrinks: "end",
              cell: (task) => taskLines(task).join(isQuestion(task) ? " " : ", ")
            },
            { title: "SURE", align: "right", cell: confidence },
            { title: "AGENT", cell: (task) => task.agentName },
            {
              title: "AGE",
              align: "right",
              cell: (task) => formatAge(task.createdAt, now),
              paint: () => paint.dim
            }
          ]
        })
      })
    )
).pipe(
  Command.withDescription("List what waits for a person: decide suggestions, answer questions"),
  Command.withExamples([
    { command: "tropism tasks", description: "List what waits" },
    { command: "tropism tasks approve 3", description: "Approve suggestion number 3" },
    {
      command: 'tropism tasks reject 4 --reason "The README says MIT"',
      description: "Reject one and tell the agent why"
    },
    { command: "tropism tasks answer 5 MIT", description: "Answer question number 5" }
  ])
)

const show = Command.make("show", { task: reference }, (input) =>
  inProject((access) =>
    Effect.gen(function* () {
      const { paint } = yield* Screen
      const task = yield* findTask(access, input.task)
      yield* printOr(
        task,
        printFacts([
          ["Task", `${task.number}  ${task.title}`],
          ["Status", task.status, paintState(paint, task.status)],
          ...(isQuestion(task) ? [] : [["Object", taskSubject(task)] as const]),
          ...taskLines(task).map(
            (line, index) => [index > 0 ? " " : isQuestion(task) ? "Question" : "Change", line] as const
          ),
          ["Answer", isQuestion(task) ? (task.payload.answer ?? "") : ""],
          ["Reason", isQuestion(task) ? "" : (task.payload.reasoning ?? "")],
          ["Sure", confidence(task)],
          ["Agent", task.agentName],
          ["Run", task.runId],
          ["Read", task.evidence.map((read) => `${read.type} v${read.version}`).join(", ")],
          [
            "Decided",
            task.resolvedBy === null
              ? ""
              : `by ${task.resolvedBy}${task.resolutionNote ? `: ${task.resolutionNote}` : ""}`
          ],
          ["Id", task.id]
        ])
      )
    })
  )
).pipe(Command.withDescription("Show one task: the change, the reason and what the agent had read"))

const approve = Command.make("approve", { tasks: Argument.atLeast(reference, 1) }, ({ tasks }) =>
  decideEach(tasks, (access, task) =>
    access.client.tasks.approve({
      params: { ...access.params, taskId: task.id },
      payload: { digest: task.digest }
    })
  )
).pipe(Command.withDescription("Approve suggestions: each change is made at once"))

const reject = Command.make(
  "reject",
  {
    tasks: Argument.atLeast(reference, 1),
    reason: Flag.String("reason").pipe(
      Flag.withDescription("Why; the agent can learn from it"),
      Flag.optional
    )
  },
  ({ reason, tasks }) =>
    decideEach(tasks, (access, task) =>
      access.client.tasks.reject({
        params: { ...access.params, taskId: task.id },
        payload: { reason: Option.getOrNull(reason) }
      })
    )
).pipe(Command.withDescription("Reject suggestions: nothing is changed"))

const answer = Command.make(
  "answer",
  {
    task: reference,
    answer: Argument.String("answer").pipe(
      Argument.withDescription("What the agent is told; one of the options where there are any")
    )
  },
  (input) =>
    inProject((access) =>
      Effect.gen(function* () {
        const screen = yield* Screen
        const task = yield* findTask(access, input.task)
        if (!isQuestion(task))
          return yield* failure(`Task ${task.number} is a suggestion: approve or reject it.`)
        const payload = yield* typed(AnswerInput, { answer: input.answer, taskId: task.id })
        const run = yield* access.client.runs.answer({
          params: { ...access.params, runId: task.runId },
          payload
        })
        if (yield* JsonFlag) yield* screen.print(JSON.stringify(run, null, 2))
        else {
          const isWaiting = run.status === "paused" && run.pauseReason === "question"
          const sequel = isWaiting ? "it waits for another answer" : "its run goes on"
          yield* screen.print(`Answered ${task.number}: ${printable(task.agentName)} is told, and ${sequel}.`)
        }
      })
    )
).pipe(Command.withDescription("Answer a question that an agent asked: its run goes on"))

export const tasksCommand = list.pipe(Command.withSubcommands([show, approve, reject, answer]))

/** Decides one task after the other; one that cannot be decided does not keep the others from it. */
const decideEach = <E>(
  references: ReadonlyArray<string>,
  decide: (access: Access, task: Task) => Effect.Effect<Task, E>
) =>
  inProject((access) =>
    Effect.gen(function* () {
      const screen = yield* Screen
      if (references.length > limits.tasksPerCommand) {
        return yield* failure(
          `At most ${limits.tasksPerCommand} tasks can be decided by one command; these are ${references.length}.`
        )
      }
      const results = yield* Effect.forEach(references, (reference) =>
        findTask(access, reference).pipe(
          Effect.flatMap((task) => decide(access, task)),
          Effect.mapError((error) => {
            const { message } = requestFailure(error, access.connection.url)
            return failure(references.length === 1 ? message : `Task ${printable(reference)}: ${message}`)
          }),
          Effect.result
        )
      )
      const decided = results.filter(Result.isSuccess).map((result) => result.success)
      if (yield* JsonFlag) yield* screen.print(JSON.stringify(decided, null, 2))
      else yield* screen.print(...decided.map((task) => decisionLine(task)))
      const failures = results.filter(Result.isFailure).map((result) => result.failure.message)
      if (failures.length > 0) return yield* failure(failures.join("\n"))
    })
  )

const decisionLine = (task: Task): string => {
  const subject = printable(taskSubject(task))
  if (task.status !== "completed") return `Rejected ${task.number}: ${subject} stays as it is.`
  const outcome = task.outcome
  return `Approved ${task.number}: ${subject} ${outcome === null ? "was decided" : outcome.change === "unchanged" ? "was so already" : `is ${outcome.change} (version ${outcome.version})`}.`
}

/** Finds a task by its id, or by its number among the pending ones and then among all. */
export const findTask = (access: Access, reference: string) =>
  Effect.gen(function* () {
    const { client, params } = access
    const id = Schema.decodeUnknownOption(TaskId)(reference)
    if (Option.isSome(id)) return yield* client.tasks.get({ params: { ...params, taskId: id.value } })
    if (!/^[1-9]\d{0,9}$/.test(reference))
      return yield* failure(
        `"${printable(reference)}" is neither a task's number nor an id. "tropism tasks" lists them.`
      )
    for (const filter of [{ status: "pending" } as const, {}]) {
      const { items } = yield* readPages(
        (query) => client.tasks.list({ params, query: { ...query, ...filter } }),
        Infinity
      )
      const found = items.find((task) => String(task.number) === reference)
      if (found) return found
    }
    return yield* failure(`There is no task number ${reference}. "tropism tasks --status all" lists them.`)
  })

const confidence = (task: Task): string =>
  isQuestion(task) || task.payload.confidence === undefined
    ? ""
    : `${Math.round(task.payload.confidence * 100)} %`
