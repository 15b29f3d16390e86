/**
 * The words in which stories let an agent suggest, and a person decide.
 */
import { Effect } from "effect"
import { eventually, type Json, promptWithObject, scripted, type Story } from "./platform.ts"
import {
  callsOf,
  calling,
  endedRuns,
  make,
  type ScriptedCall,
  suggestionsOf,
  watcher
} from "./story-words.ts"

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

/** What each tool of the graph that changes it takes, beside the reasons. */
const takes: Readonly<Record<string, ReadonlyArray<string>>> = {
  create_object: ["type", "key", "properties"],
  update_object: ["objectId", "properties"],
  delete_object: ["objectId"],
  create_relationship: ["type", "fromId", "toId", "properties"],
  update_relationship: ["relationshipId", "properties"],
  delete_relationship: ["relationshipId"]
}

/** A model that makes the calls that its run's input names, one at each step. */
const obedient = scripted([
  ...Object.entries(takes).map(([tool, names]) => ({
    when: `input.input.calls[step].tool == "${tool}"`,
    calls: [
      {
        tool,
        arguments: Object.fromEntries([
          ...names.map((name) => [name, `{{ input.input.calls[step].arguments.${name} }}`]),
          ["reasoning", '{{ input.input.calls[step].reasoning | default: "The story wants it" }}'],
          ["confidence", "{{ input.input.calls[step].confidence }}"]
        ])
      }
    ]
  })),
  { say: "Done." }
])

/** An agent that suggests what the input of its run says, each time that somebody triggers it. */
export const suggesting = (story: Story, overrides: Record<string, unknown> = {}) =>
  story.post("/agents", {
    name: "suggester",
    prompt: promptWithObject,
    triggerType: "manual",
    executionMode: "suggest",
    tools: ["graph.*"],
    model: obedient,
    ...overrides
  })

/** A call with how sure the agent is, and why. */
export interface ReasonedCall extends ScriptedCall {
  readonly reasoning?: string
  readonly confidence?: number
}

/** Lets such an agent make one call, in a run of its own: the run, and what the tool answered. */
export const suggestingOnce = Effect.fnUntraced(function* (story: Story, agent: Json, call: ReasonedCall) {
  const begun = yield* story.post(`/agents/${agent.id}/trigger`, { input: { calls: [call] } })
  const run = yield* eventually(story.get(`/runs/${begun.id}`), (seen) => seen.completedAt !== null)
  const [made] = yield* callsOf(story, run)
  return { run, call: made, result: made.result }
})

/** What waits, by number. */
export const pendingOf = (story: Story): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get("/tasks?status=pending&limit=200"), (page) =>
    page.items.toSorted((one: Json, other: Json) => one.number - other.number)
  )

/** The same by an agent of another name, woken by a type of its own; only its own suggestions. */
export const suggestedBy = Effect.fnUntraced(function* (
  story: Story,
  name: string,
  ...calls: ReadonlyArray<ScriptedCall>
) {
  const start = `Start.${name}`
  const agent = yield* story.post(
    "/agents",
    watcher({
      name,
      executionMode: "suggest",
      reactionConfig: { objectTypes: [start], events: ["created"] },
      model: calling(...calls)
    })
  )
  yield* make(story, start)
  yield* endedRuns(story, agent, 1)
  const page = yield* story.get("/tasks?status=pending&limit=200")
  const tasks: ReadonlyArray<Json> = page.items
    .filter(({ agentId }: Json) => agentId === agent.id)
    .toReversed()
  return { agent, tasks, task: tasks[0] }
})

/** A call that asks for other properties of an object. */
export const updating = (object: Json, properties: Record<string, unknown>): ScriptedCall => ({
  tool: "update_object",
  arguments: { objectId: object.id, properties }
})

/** A call that asks for a note with a key. */
export const creating = (key: string, properties: Record<string, unknown> = {}): ScriptedCall => ({
  tool: "create_object",
  arguments: { type: "Note", key, properties }
})

/** Approves a task, and answers whatever the door says. */
export const approve = (story: Story, task: Json, body: unknown = {}) =>
  story.ask("POST", `/tasks/${task.id}/approve`, body)

/** Rejects a task, and answers whatever the door says. */
export const reject = (story: Story, task: Json, body: unknown = {}) =>
  story.ask("POST", `/tasks/${task.id}/reject`, body)
