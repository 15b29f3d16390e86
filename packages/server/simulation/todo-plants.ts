/**
 * Faults of todos: a number that is left out, a deed that nobody may do.
 */
import type { Plant } from "./plant.ts"

export const todoPlants: ReadonlyArray<Plant> = [
  {
    checker: "todosNumbered",
    fault: "a todo's number is left out",
    sql: [`update kb.tasks set number = 77 where project_id = $1 and owner <> '' and number = 1`]
  },
  {
    checker: "todosNumbered",
    fault: "a todo that somebody was told of is lost",
    sql: [],
    testimony: ({ acknowledged }) => ({ todos: [...acknowledged.todos, { owner: "tess", number: 78 }] })
  },
  {
    checker: "todosApart",
    fault: "somebody completed another's todo",
    sql: [
      `update kb.tasks set status = 'completed', resolved_by = 'mallory' where project_id = $1 and owner <> '' and number = 1`
    ]
  },
  {
    checker: "todosApart",
    fault: "a todo tool deleted a suggestion",
    sql: [`update kb.tasks set deleted_at = now() where project_id = $1 and owner = ''`]
  }
]
