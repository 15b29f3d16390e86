/**
 * A todo list in memory that answers the calls of TodoAssistant's script as the five tools do.
 *
 * For rules that are tried with thousands of sentences; that the tools answer so is
 * what `stories/todo-tools.test.ts` shows.
 */
import type { Call, Outcome } from "../src/model/todo-steps.ts"
import { converse } from "../src/model/todo-dialogue.ts"
import { newDialogue } from "../src/model/todo-intents.ts"
import type { Kept, Paraphrase } from "./paraphrase-words.ts"

/** Says one message to the script where these todos are, and gives what became of them. */
export const saidInHand = (message: string, todos: Paraphrase["todos"]) => saidInTurn([message], todos)

/** Says messages one after another, each when the one before it has been answered. */
export const saidInTurn = (messages: ReadonlyArray<string>, todos: Paraphrase["todos"]) => {
  const kept = new Map(
    todos.map(({ completed, title }, index): [number, Kept] => [
      index + 1,
      { id: index + 1, title, description: null, completed: completed === true }
    ])
  )
  const calls: Array<Call> = []
  let dialogue = newDialogue
  let response = ""
  for (const message of messages) {
    const talk = converse([message], dialogue)
    let next = talk.next([])
    while (next.done !== true) {
      calls.push(...next.value)
      next = talk.next(next.value.map((call) => done(kept, call)))
    }
    dialogue = next.value.dialogue
    response = next.value.text
  }
  return { after: [...kept.values()], calls, response }
}

const done = (kept: Map<number, Kept>, { arguments: args, tool }: Call): Outcome => {
  const { description, status, task_id: id, title } = args
  if (tool === "list_tasks")
    return told(
      [...kept.values()].filter(({ completed }) => status === "all" || completed === (status === "completed"))
    )
  if (tool === "add_task") {
    const task = { id: kept.size + 1, title: String(title), description: null, completed: false }
    kept.set(task.id, task)
    return told({ task_id: task.id, status: "created", title: task.title })
  }
  const task = kept.get(Number(id))
  if (!task) return { result: { error: "Task not found", task_id: id }, isError: true }
  if (tool === "delete_task") kept.delete(task.id)
  else
    kept.set(task.id, {
      ...task,
      completed: task.completed || tool === "complete_task",
      title: title === undefined ? task.title : String(title),
      description: description === undefined ? task.description : String(description)
    })
  return told({ task_id: task.id, status: "done", title: task.title })
}

const told = (result: unknown): Outcome => ({ result, isError: false })
