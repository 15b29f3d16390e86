/**
 * The review module: suggestions, questions, todos, undos and earned autonomy. It requires the graph and the records of
 * tool calls.
 */
import { Layer } from "effect"
import { Autonomy } from "./autonomy.ts"
import { QuestionTasks } from "./questions.ts"
import { Tasks } from "./tasks.ts"
import { Todos } from "./todos.ts"
import { Undos } from "./undo.ts"
export const reviewLayer = Layer.mergeAll(
  Tasks.layer,
  Autonomy.layer,
  Undos.layer,
  QuestionTasks.layer,
  Todos.layer
)
