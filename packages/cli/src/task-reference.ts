/**
 * How a task is named on the command line, and found again by that name.
 *
 * A todo counts among its owner's and everything else among the project's, so
 * both may be number 3: a todo is written `t3`, what is the project's `3`.
 */
import { TaskId } from "@tropism/domain/ids"
import { isTodo, type Task, type TodoTask } from "@tropism/domain/task"
import { Effect, Option, Schema } from "effect"
import { Argument } from "effect/cli"
import type { Access } from "./access.ts"
import { exitCodes } from "./exit-codes.ts"
import { failure } from "./failure.ts"
import { printable } from "./terminal/text.ts"

export const taskArgument = Argument.String("task").pipe(
  Argument.withDescription("A task's number (t3 is a todo) or id")
)

export const todoArgument = Argument.String("todo").pipe(
  Argument.withDescription("A todo's number, with or without its t, or its id")
)

/** The name of a task: `3`, or `t3` of a todo. */
export const taskName = (task: Task): string => `${isTodo(task) ? "t" : ""}${task.number}`

/** Finds a task by its id, or by its name. */
export const findTask = (access: Access, reference: string) =>
  Effect.gen(function* () {
    const { client, params } = access
    const id = Schema.decodeUnknownOption(TaskId)(reference)
    if (Option.isSome(id)) return yield* client.tasks.get({ params: { ...params, taskId: id.value } })
    if (!/^t?[1-9]\d{0,9}$/.test(reference))
      return yield* failure(
        `"${printable(reference)}" is neither a task number nor an id. "tropism tasks" lists them.`,
        exitCodes.usage
      )
    const number = Number(reference.replace("t", ""))
    const { items } = yield* client.tasks.list({ params, query: { number } })
    const found = items.find((task) => taskName(task) === reference)
    if (found) return found
    return yield* failure(`Task not found: ${reference}. "tropism tasks --status all" lists them.`)
  })

/** Finds a todo; where only todos are meant, their `t` may be left out. */
export const findTodo = (access: Access, reference: string) =>
  Effect.gen(function* () {
    const task = yield* findTask(access, /^\d+$/.test(reference) ? `t${reference}` : reference)
    if (isTodo(task)) return task as TodoTask
    return yield* failure(
      `Task ${taskName(task)} is not a todo: only todos can be completed, edited and deleted.`
    )
  })
