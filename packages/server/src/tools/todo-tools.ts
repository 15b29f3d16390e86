/**
 * Definitions and effects of the `tasks` server's tools (P3-MCP-01…07).
 *
 * A `task_id` is the number of a todo among its owner's; no schema has a field for the owner.
 */
import type { UserId } from "@tropism/domain/ids"
import { isJsonObject, type JsonFault } from "@tropism/domain/json"
import { taintBounds } from "@tropism/domain/taint"
import {
  TodoDescription,
  TodoTitle,
  findNewTodoFault,
  findTodoEditFault,
  todoSentences
} from "@tropism/domain/todo"
import { Schema, Context, Effect, Layer } from "effect"
import { Contexts } from "../contexts/contexts.ts"
import type { ProjectTransaction } from "../database/database.ts"
import { type ChangeRefused, refused } from "../graph/change-refused.ts"
import { todoLimits } from "../review/limits.ts"
import { type Todo, Todos } from "../review/todos.ts"
import { readArguments } from "./arguments.ts"
import type { TodoKeeper } from "./principal.ts"
import { type ToolEffect, ToolFailed } from "./tool-calls.ts"

/** Accepts null as absent: many models send null for what they leave out. */
const opt = <S extends Schema.Top>(schema: S) => Schema.optional(Schema.NullOr(schema))

const TodoNumber = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
  description: "The task's id, a whole number from 1"
})

const AddTask = Schema.Struct({ title: TodoTitle, description: opt(TodoDescription) })
const ListTasks = Schema.Struct({
  status: opt(
    Schema.Literals(["all", "pending", "completed"]).annotate({
      description: "Which tasks to list; all of them where it is left out"
    })
  )
})
const NamedTask = Schema.Struct({ task_id: TodoNumber })
const UpdateTask = Schema.Struct({
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

// Applies the todo tools for the user a run works for, or who calls them directly.
//
// The principal determines the owner. Any number that is not the owner's todo gets the same answer (P3-MCP-06). Everything runs
// in the caller's transaction.

export class TodoEffects extends Context.Service<
  TodoEffects,
  {
    /** Makes a call of a todo tool; refused when the run works for no user. */
    readonly perform: (
      tool: TodoToolName,
      args: Schema.Json,
      keeper: TodoKeeper
    ) => Effect.Effect<ToolEffect, ChangeRefused | ToolFailed, ProjectTransaction>
  }
>()("@tropism/server/tool/TodoEffects") {
  static readonly layer = Layer.effect(
    TodoEffects,
    Effect.gen(function* () {
      const todos = yield* Todos
      const contexts = yield* Contexts

      /** The untrusted sources that the caller has read. */
      const taintOf = ({ contextName }: TodoKeeper) =>
        contextName === null
          ? Effect.succeed([])
          : Effect.map(contexts.get(contextName), (context) => context?.taintedBy ?? [])

      const add = Effect.fnUntraced(function* (owner: UserId, args: Schema.Json, keeper: TodoKeeper) {
        yield* failOn(findNewTodoFault(wordsOf(args)), args)
        const words = yield* readArguments(AddTask, args)
        const untrusted = yield* taintOf(keeper)
        const added = yield* Effect.mapError(todos.add(owner, { ...words, untrusted }), ({ detail }) =>
          failed(`Failed to create task: ${detail}`, args)
        )
        return answered("created", added)
      })

      const list = Effect.fnUntraced(function* (owner: UserId, args: Schema.Json) {
        const { status } = yield* readArguments(ListTasks, args)
        const state = status === "all" || status === null ? undefined : status
        const listed = yield* todos.list(owner, state, todoLimits.listMaxItems + 1)
        const newest = listed.slice(-todoLimits.listMaxItems)
        const items = newest.map(shown)
        if (items.length === listed.length) return told(items, newest)
        const note = `These are the newest ${items.length} of more: ask for the pending or the completed ones alone`
        return told({ isTruncated: true, note, result: items }, newest)
      })

      const complete = Effect.fnUntraced(function* (owner: UserId, args: Schema.Json) {
        const { task_id: number } = yield* readArguments(NamedTask, args)
        return answered("completed", yield* known(todos.complete(owner, { number }), args))
      })

      const remove = Effect.fnUntraced(function* (owner: UserId, args: Schema.Json) {
        const { task_id: number } = yield* readArguments(NamedTask, args)
        return answered("deleted", yield* known(todos.remove(owner, { number }), args))
      })

      const update = Effect.fnUntraced(function* (owner: UserId, args: Schema.Json, keeper: TodoKeeper) {
        yield* failOn(findTodoEditFault(wordsOf(args)), args)
        const { task_id: number, ...words } = yield* readArguments(UpdateTask, args)
        const untrusted = yield* taintOf(keeper)
        return answered("updated", yield* known(todos.edit(owner, { number }, { ...words, untrusted }), args))
      })

      const tools = {
        add_task: add,
        list_tasks: list,
        complete_task: complete,
        delete_task: remove,
        update_task: update
      }

      return TodoEffects.of({
        perform: Effect.fn("TodoEffects.perform")(function* (tool, args, keeper) {
          const { askedBy = [], userId } = keeper
          if (userId === null) return yield* refused("notPermitted", askedBy.length > 1 ? several : nobody)
          return yield* tools[tool](userId, args, keeper)
        })
      })
    })
  )
}

const nobody =
  "This run works for nobody in particular, so there are no tasks to see or change: only a run that a person began has that person's tasks"

const several =
  "Several people have spoken since you last answered, so it is not clear whose tasks are meant: ask the one who wants something to say it again alone"

const wordsOf = (args: Schema.Json) => (isJsonObject(args) ? args : {})

/** A failed call: the fault, and the task if one was named. */
const failed = (error: string, args: Schema.Json): ToolFailed => {
  const { task_id } = isJsonObject(args) ? args : {}
  return new ToolFailed({ result: { error, ...(task_id === undefined ? {} : { task_id }) } })
}

const failOn = (fault: JsonFault | undefined, args: Schema.Json): Effect.Effect<void, ToolFailed> =>
  fault === undefined ? Effect.void : Effect.fail(failed(fault.message, args))

const known = <A, E, R>(found: Effect.Effect<A | undefined, E, R>, args: Schema.Json) =>
  Effect.flatMap(found, (todo) =>
    todo === undefined ? Effect.fail(failed(todoSentences.notFound, args)) : Effect.succeed(todo)
  )

/** The answer of a tool, with the todos it shows. */
const told = (result: Schema.Json, todos: ReadonlyArray<Todo>): ToolEffect => ({
  result,
  decision: null,
  reads: [],
  taint: todos
    .filter(({ untrusted }) => untrusted.length > 0)
    .slice(0, taintBounds.sources)
    .map(({ id }) => ({ kind: "todo", id }))
})

const answered = (status: string, todo: Todo): ToolEffect =>
  told({ task_id: todo.number, status, title: todo.title }, [todo])

const shown = ({ description, number, status, title }: Todo) => ({
  id: number,
  title,
  description,
  completed: status === "completed"
})
