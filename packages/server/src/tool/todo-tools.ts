/**
 * The tools of the `tasks` server, as a model sees them (P3-MCP-01…07).
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 *
 * Schemas only. A `task_id` is the number of a todo among those of its owner;
 * no schema has a field for whose they are.
 */
import { TodoDescription, TodoTitle } from "@tropism/domain/todo"
import { Schema } from "effect"

/** Accepts null as absent: many models send null for what they leave out. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

const TodoNumber = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
  description: "The task's id, a whole number from 1"
})

export const AddTask = Schema.Struct({ title: TodoTitle, description: opt(TodoDescription) })
export const ListTasks = Schema.Struct({
  status: opt(
    Schema.Literals(["all", "pending", "completed"]).annotate({
      description: "Which tasks to list; all of them where it is left out"
    })
  )
})
export const NamedTask = Schema.Struct({ task_id: TodoNumber })
export const UpdateTask = Schema.Struct({
  task_id: TodoNumber,
  title: opt(TodoTitle),
  description: opt(TodoDescription)
})

/** Every tool of the server, by name. */
export const todoTools = {
  add_task: { description: "Creates a new task of the user.", arguments: AddTask },
  list_tasks: {
    description: "Lists the user's tasks: all, pending or completed ones.",
    arguments: ListTasks
  },
  complete_task: { description: "Marks a task of the user as done.", arguments: NamedTask },
  delete_task: { description: "Removes a task of the user.", arguments: NamedTask },
  update_task: { description: "Changes the title or the description of a task.", arguments: UpdateTask }
} as const

export type TodoToolName = keyof typeof todoTools

export const isTodoTool = (name: string): name is TodoToolName => Object.hasOwn(todoTools, name)
