/**
 * Checks todos: each owner's are numbered without a gap, and nothing else is anybody's own.
 */
import { type Checker, countsUp, unless } from "./remains.ts"

/** The numbers of an owner are 1 to the last that was given, and every one that somebody was told is there. */
const todosNumbered: Checker = ({ acknowledged, todoCounters, todos }) => {
  const numbersOf = Map.groupBy(todos, ({ owner }) => owner)
  const owners = new Set([...numbersOf.keys(), ...todoCounters.map(({ owner }) => owner)])
  return [
    ...[...owners].flatMap((owner) => {
      const numbers = (numbersOf.get(owner) ?? []).map(({ ordinal }) => ordinal)
      const last = todoCounters.find((counter) => counter.owner === owner)?.last ?? 0
      return unless(
        countsUp(numbers) && last === numbers.length,
        `the todos of ${owner} are numbered ${numbers.join(", ")}, the last ${last}`
      )
    }),
    ...acknowledged.todos.flatMap(({ number, owner }) =>
      unless(
        todos.some((todo) => todo.owner === owner && todo.ordinal === number),
        `todo ${number} of ${owner} is lost`
      )
    ),
    ...unless(
      new Set(acknowledged.todos.map(({ number, owner }) => `${owner} ${number}`)).size ===
        acknowledged.todos.length,
      "a number was given to two todos"
    )
  ]
}

/** What has an owner is a todo and nothing else, done by its owner alone; what has none is no todo, and is never deleted. */
const todosApart: Checker = ({ tasks, todos }) => [
  ...todos.flatMap(({ ordinal, owner, resolvedBy, status, type }) =>
    unless(
      type === "todo" && (status === "pending" ? resolvedBy === null : resolvedBy === owner),
      `task ${ordinal} of ${owner} is a ${type} that is ${status} by ${resolvedBy ?? "nobody"}`
    )
  ),
  ...tasks.flatMap(({ isDeleted, ordinal, type }) =>
    unless(
      type !== "todo" && !isDeleted,
      `task ${ordinal} is the project's, and ${isDeleted ? "deleted" : "a todo"}`
    )
  )
]

export const checkTodos = { todosNumbered, todosApart }
