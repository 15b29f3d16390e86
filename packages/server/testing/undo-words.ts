/**
 * The words in which stories have an agent do something, and a person take it back.
 */
import { Effect } from "effect"
import type { Answer, Json, Story } from "./platform.ts"
import { calling, endedRuns, make, type ScriptedCall, watcher } from "./story-words.ts"

/** An agent that makes these calls when a Start is created, and its run, ended. */
export const acted = Effect.fnUntraced(function* (
  story: Story,
  calls: ReadonlyArray<ScriptedCall>,
  overrides: Record<string, unknown> = {}
) {
  const agent = yield* story.post(
    "/agents",
    watcher({
      name: "actor",
      reactionConfig: { objectTypes: ["Start"], events: ["created"] },
      model: calling(...calls),
      ...overrides
    })
  )
  return { agent, run: yield* actAgain(story, agent, 1) }
})

/** Wakes the agent once more, and answers its newest run, ended. */
export const actAgain = Effect.fnUntraced(function* (story: Story, agent: Json, runs: number) {
  yield* make(story, "Start")
  const ended = yield* endedRuns(story, agent, runs)
  return ended.at(-1)
})

/** Asks for the undo of a run, and answers whatever the door says. */
export const undoRun = (story: Story, run: Json): Effect.Effect<Answer> =>
  story.ask("POST", `/runs/${run.id}/undo`)

/** The items of a plan, by the ids of what they are about. */
export const itemsOf = (story: Story, task: Json): Effect.Effect<Record<string, Json>> =>
  Effect.map(story.get(`/tasks/${task.id}/items?limit=200`), (page) =>
    Object.fromEntries(page.items.map((item: Json) => [item.id, item]))
  )

/** An object as it is now; undefined when it is deleted. */
export const objectNow = (story: Story, object: Json): Effect.Effect<Json> =>
  Effect.map(story.ask("GET", `/objects/${object.id}`), (answer) =>
    answer.status === 200 ? answer.body : undefined
  )
