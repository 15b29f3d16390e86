/**
 * The words in which stories let an agent suggest, and a person decide.
 */
import { Effect } from "effect"
import type { Json, Story } from "./platform.ts"
import { calling, endedRuns, make, type ScriptedCall, suggestionsOf, watcher } from "./story-words.ts"

/** An agent that suggests these changes when a Start is created, and the suggestions, oldest first. */
export const suggested = Effect.fnUntraced(function* (story: Story, ...calls: ReadonlyArray<ScriptedCall>) {
  const agent = yield* story.post(
    "/agents",
    watcher({
      executionMode: "suggest",
      reactionConfig: { objectTypes: ["Start"], events: ["created"] },
      model: calling(...calls)
    })
  )
  yield* make(story, "Start")
  const [run] = yield* endedRuns(story, agent, 1)
  const tasks = yield* suggestionsOf(story, calls.length)
  return { agent, run, tasks, task: tasks[0] }
})

/** A call that asks for other properties of an object. */
export const updating = (object: Json, properties: Record<string, unknown>): ScriptedCall => ({
  tool: "update_object",
  arguments: { objectId: object.id, properties }
})

/** Approves a task, and answers whatever the door says. */
export const approve = (story: Story, task: Json, body: unknown = {}) =>
  story.ask("POST", `/tasks/${task.id}/approve`, body)

/** Rejects a task, and answers whatever the door says. */
export const reject = (story: Story, task: Json, body: unknown = {}) =>
  story.ask("POST", `/tasks/${task.id}/reject`, body)
