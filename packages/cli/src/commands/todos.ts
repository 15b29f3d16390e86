/**
 * `tropism tasks add`, `complete`, `edit` and `delete`: one's own todos.
 */
import { NewTodo, TaskChange } from "@tropism/api/tasks-api"
import type { TodoTask } from "@tropism/domain/task"
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type Access, inProject } from "../access.ts"
import { printOr } from "../print-records.ts"
import { findTodo, taskName, todoArgument } from "../task-reference.ts"
import { Screen } from "../terminal/screen.ts"
import { printable } from "../terminal/text.ts"
import { typed } from "../typed-input.ts"

const description = Flag.String("description").pipe(
  Flag.withDescription("The description, max 1000 characters"),
  Flag.optional
)

const addTodo = Command.make(
  "add",
  {
    title: Argument.String("title").pipe(Argument.withDescription("The title, max 200 characters")),
    description
  },
  (input) =>
    inProject((access) =>
      Effect.gen(function* () {
        const payload = yield* typed(NewTodo, {
          title: input.title,
          description: Option.getOrNull(input.description)
        })
        yield* tell("Added", yield* access.client.tasks.add({ params: access.params, payload }))
      })
    )
).pipe(Command.withDescription("Add a todo"))

const completeTodo = Command.make("complete", { todo: todoArgument }, (input) =>
  withTodo(input.todo, ({ client }, params) =>
    Effect.flatMap(client.tasks.complete({ params }), (todo) => tell("Done", todo))
  )
).pipe(Command.withDescription("Complete a todo"))

const editTodo = Command.make(
  "edit",
  {
    todo: todoArgument,
    title: Flag.String("title").pipe(Flag.withDescription("The title, max 200 characters"), Flag.optional),
    description
  },
  (input) =>
    Effect.gen(function* () {
      const payload = yield* typed(TaskChange, {
        title: Option.getOrNull(input.title),
        description: Option.getOrNull(input.description)
      })
      yield* withTodo(input.todo, ({ client }, params) =>
        Effect.flatMap(client.tasks.change({ params, headers: {}, payload }), (todo) =>
          tell("Changed", todo as TodoTask)
        )
      )
    })
).pipe(
  Command.withDescription('Edit a todo; --description "" removes the description'),
  Command.withShortDescription("Edit a todo")
)

const deleteTodo = Command.make("delete", { todo: todoArgument }, (input) =>
  withTodo(input.todo, ({ client }, params, todo) =>
    Effect.andThen(client.tasks.remove({ params, headers: {} }), tell("Deleted", todo))
  )
).pipe(Command.withDescription("Delete a todo; its number is not reused"))

/** The commands that are about todos alone. */
export const todoCommands = [addTodo, completeTodo, editTodo, deleteTodo] as const

/** Finds the todo that is meant and does something with it. */
const withTodo = <A, E, R>(
  reference: string,
  act: (
    access: Access,
    params: Access["params"] & { readonly taskId: TodoTask["id"] },
    todo: TodoTask
  ) => Effect.Effect<A, E, R>
) =>
  inProject((access) =>
    Effect.flatMap(findTodo(access, reference), (todo) =>
      act(access, { ...access.params, taskId: todo.id }, todo)
    )
  )

const tell = (what: string, todo: TodoTask) =>
  printOr(
    todo,
    Effect.flatMap(Screen, (screen) => screen.print(`${what} ${taskName(todo)}: ${printable(todo.title)}`))
  )
