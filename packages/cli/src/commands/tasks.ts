/**
 * `tropism tasks`: what waits for a person, and one's own todos among it.
 */
import {
  isPromotion,
  isQuestion,
  isSuggestion,
  isTodo,
  isUndo,
  type Task,
  TaskStatus
} from "@tropism/domain/task"
import { UserId } from "@tropism/domain/ids"
import { Clock, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { inProject, readPages } from "../access.ts"
import { findAgent } from "../agents-by-name.ts"
import { taskLines, taskSubject } from "../change-text.ts"
import { printFacts, printOr, printRecords } from "../print-records.ts"
import { paintState } from "../terminal/paint.ts"
import { findTask, taskArgument, taskName } from "../task-reference.ts"
import { expiresSoon, standingFacts, standingNote } from "../task-standing.ts"
import { Screen } from "../terminal/screen.ts"
import { formatAge } from "../terminal/time.ts"
import { taintText } from "../taint-text.ts"
import { limitFlag } from "./limit-flag.ts"
import { decisionCommands } from "./task-decisions.ts"
import { todoCommands } from "./todos.ts"

const list = Command.make(
  "tasks",
  {
    status: Flag.Literals("status", [...TaskStatus.literals, "all"]).pipe(
      Flag.withDescription("Only tasks with this status"),
      Flag.withDefault("pending" as const)
    ),
    assignee: Flag.String("assignee").pipe(
      Flag.withMetavar("<user>"),
      Flag.withDescription("Only tasks assigned to this user; me is you"),
      Flag.withSchema(UserId),
      Flag.optional
    ),
    agent: Flag.String("agent").pipe(
      Flag.withDescription("Only tasks from this agent, by name or id"),
      Flag.optional
    ),
    limit: limitFlag
  },
  ({ agent, assignee, limit, status }) =>
    inProject((access) =>
      Effect.gen(function* () {
        const { paint } = yield* Screen
        const now = yield* Clock.currentTimeMillis
        const filter = {
          ...(status === "all" ? {} : { status }),
          ...(Option.isSome(assignee) ? { assignee: assignee.value } : {}),
          ...(Option.isSome(agent) ? { agentId: (yield* findAgent(access, agent.value)).id } : {})
        }
        const isAll = Option.isNone(assignee) && Option.isNone(agent)
        const { hasMore, items } = yield* readPages(
          (query) => access.client.tasks.list({ params: access.params, query: { ...query, ...filter } }),
          limit
        )
        yield* printRecords({
          records: items,
          hasMore,
          nothing: !isAll
            ? "No tasks found."
            : status === "pending"
              ? "No pending tasks."
              : "No tasks with this status.",
          columns: [
            { title: "NO", align: "right", cell: taskName },
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
              cell: (task) => taskLines(task).join(isSuggestion(task) ? ", " : " ")
            },
            ...(items.some((task) => standingNote(task, now) !== "")
              ? [
                  {
                    title: "NOTE",
                    shrinks: "end" as const,
                    cell: (task: Task) => standingNote(task, now),
                    paint: (task: Task) => (expiresSoon(task, now) ? paint.waiting : asItIs)
                  }
                ]
              : []),
            { title: "CONFIDENCE", align: "right", cell: confidence },
            { title: "AGENT", cell: agentOf },
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
  Command.withShortDescription("Review suggestions, answer questions, keep todos"),
  Command.withDescription(
    "List your pending tasks: suggestions to review, questions to answer, and your todos"
  ),
  Command.withExamples([
    { command: "tropism tasks", description: "List pending tasks" },
    { command: "tropism tasks --assignee me", description: "List tasks assigned to you" },
    { command: "tropism tasks approve 3", description: "Approve suggestion number 3" },
    {
      command: 'tropism tasks reject 4 --reason "The README says MIT"',
      description: "Reject a suggestion with a reason"
    },
    { command: "tropism tasks answer 5 MIT", description: "Answer question number 5" },
    { command: 'tropism tasks add "Call the licensor"', description: "Add a todo" },
    { command: "tropism tasks complete t1", description: "Complete todo t1" }
  ])
)

const show = Command.make("show", { task: taskArgument }, (input) =>
  inProject((access) =>
    Effect.gen(function* () {
      const { paint } = yield* Screen
      const now = yield* Clock.currentTimeMillis
      const task = yield* findTask(access, input.task)
      yield* printOr(
        task,
        printFacts([
          ["Task", `${taskName(task)}  ${task.title}`],
          ["Status", task.status, paintState(paint, task.status)],
          ...(isSuggestion(task) ? [["Object", taskSubject(task)] as const] : []),
          ...taskLines(task).map((line, index) => [index > 0 ? " " : lineTitle(task), line] as const),
          ["About", isTodo(task) ? (task.description ?? "") : ""],
          ["Answer", isQuestion(task) ? (task.payload.answer ?? "") : ""],
          ["Reason", isSuggestion(task) ? (task.payload.reasoning ?? "none given") : ""],
          ["Confidence", confidence(task)],
          ["Agent", agentOf(task)],
          ...(isSuggestion(task) && task.agentState !== "enabled"
            ? [["", `is ${task.agentState}; its suggestions can still be reviewed`] as const]
            : []),
          ["Run", isTodo(task) || isUndo(task) || isPromotion(task) ? "" : task.runId],
          [
            "Read",
            isSuggestion(task) ? task.evidence.map((read) => `${read.type} v${read.version}`).join(", ") : ""
          ],
          ["Untrusted", isSuggestion(task) ? taintText(task.untrusted) : "", paint.bad],
          ...standingFacts(task, now, paint),
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
).pipe(
  Command.withDescription("Show a task: the change, the reason and the evidence"),
  Command.withShortDescription("Show a task: change, reason and evidence")
)

export const tasksCommand = list.pipe(Command.withSubcommands([show, ...decisionCommands, ...todoCommands]))

const asItIs = (text: string): string => text

/** Whose the task is; of an undo, those whose work is taken back. */
const agentOf = (task: Task): string =>
  isTodo(task) ? "" : isUndo(task) ? task.payload.agents.map(({ name }) => name).join(", ") : task.agentName

const confidence = (task: Task): string =>
  isSuggestion(task) && task.payload.confidence !== undefined
    ? `${Math.round(task.payload.confidence * 100)} %`
    : ""

/** What the lines of a task are. */
const lineTitle = (task: Task): string =>
  isQuestion(task) ? "Question" : isTodo(task) ? "Todo" : isPromotion(task) ? "Promotion" : "Change"
