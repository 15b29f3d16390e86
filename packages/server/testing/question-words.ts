/**
 * The words in which stories let an agent ask, and a person answer.
 */
import { Effect } from "effect"
import { eventually, type Json, promptWithObject, scripted, type Story } from "./platform.ts"
import type { ScriptedCall } from "./story-words.ts"

/** A call that asks a person. */
export const asking = (question: string, options?: ReadonlyArray<string>): ScriptedCall => ({
  tool: "ask_user",
  arguments: { question, ...(options === undefined ? {} : { options }) }
})

/** A model that makes these calls at once and then says what their results were. */
export const askingModel = (...calls: ReadonlyArray<ScriptedCall>) =>
  scripted([
    { when: "step == 0", calls },
    { say: "{% for each in results %}{{ each.tool }}: {{ each.result | json }}; {% endfor %}" }
  ])

/** An agent that may ask people and change the graph, and does so when it is told to. */
export const asker = (story: Story, model: Json, overrides: Record<string, unknown> = {}) =>
  story.post("/agents", {
    name: "asker",
    prompt: promptWithObject,
    triggerType: "manual",
    executionMode: "execute",
    tools: ["run.ask_user", "graph.*"],
    model,
    ...overrides
  })

/** A run of such an agent, at rest because its questions wait, and those, oldest first. */
export const asked = Effect.fnUntraced(function* (story: Story, ...calls: ReadonlyArray<ScriptedCall>) {
  const agent = yield* asker(story, askingModel(...calls))
  // Whichever server takes it: one that waits hears of the other's work only as the clock goes on.
  const queued = yield* story.post(`/agents/${agent.id}/trigger?wait=false`)
  const run = yield* eventually(
    story.get(`/runs/${queued.id}`),
    ({ status }) => status !== "queued" && status !== "running"
  )
  const questions = yield* questionsOf(story)
  return { agent, run, questions, question: questions[0] }
})

/** The project's questions in a state, oldest first. */
export const questionsOf = (story: Story, status = "pending"): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/tasks?type=question&status=${status}`), (page) => page.items.toReversed())

/** Answers, and answers whatever the door says. */
export const answer = (story: Story, run: Json, text: unknown, task?: Json) =>
  story.ask("POST", `/runs/${run.id}/answer`, {
    answer: text,
    ...(task === undefined ? {} : { taskId: task.id })
  })

/** A run, once it has ended. */
export const ended = (story: Story, run: Json): Effect.Effect<Json> =>
  eventually(story.get(`/runs/${run.id}`), ({ completedAt }) => completedAt !== null)

/** The log of a run. */
export const logOfRun = (story: Story, run: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs/${run.id}/events?limit=200`), (page) => page.items)
