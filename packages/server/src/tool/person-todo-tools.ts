/**
 * The tools of the `tasks` server for a person: their own todos, and nobody else's.
 *
 * Flow: graph → outbox → dispatch → run → **tool** → task
 */
import { Effect } from "effect"
import { adds, type PersonTool, reads, sets, takesAway, type ToolHints } from "./person-tool.ts"
import { inputSchemaOf } from "./read-arguments.ts"
import { TodoEffects } from "./todo-effects.ts"
import { type TodoToolName, todoTools } from "./todo-tools.ts"

const tools: Readonly<Record<TodoToolName, readonly [title: string, hints: ToolHints]>> = {
  add_task: ["Add a task", adds],
  list_tasks: ["List your tasks", reads],
  complete_task: ["Complete a task", sets],
  delete_task: ["Delete a task", takesAway],
  update_task: ["Change a task", sets]
}

export const makeTodoPersonTools = Effect.gen(function* () {
  const todos = yield* TodoEffects
  const names = Object.keys(tools) as ReadonlyArray<TodoToolName>
  return names.map((name): PersonTool => {
    const [title, annotations] = tools[name]
    return {
      name,
      title,
      description: todoTools[name].description,
      inputSchema: inputSchemaOf(todoTools[name].arguments),
      ...(name === "list_tasks" ? {} : { outputSchema: todoShape }),
      annotations,
      role: name === "list_tasks" ? "viewer" : "editor",
      perform: (args, { principal: { userId } }) => todos.perform(name, args, { userId, contextName: null })
    }
  })
})

/** What every tool but the list answers. */
const todoShape = {
  type: "object",
  properties: {
    task_id: { type: "integer" },
    status: { type: "string", enum: ["created", "completed", "deleted", "updated"] },
    title: { type: "string" }
  },
  required: ["task_id", "status", "title"]
} as const
