/**
 * The words in which stories let agents hand tasks to each other.
 */
import { Effect } from "effect"
import { eventually, type Json, scripted, type Story } from "./platform.ts"
import { asTimePasses } from "./shared-server.ts"
import { callsOf, type ScriptedCall } from "./story-words.ts"

/** An agent that somebody tells to run, or another agent. */
export const worker = (name: string, model: Json, overrides: Record<string, unknown> = {}) => ({
  name,
  prompt: `You are ${name}.`,
  triggerType: "manual",
  executionMode: "execute",
  tools: ["graph.*", "run.*"],
  model,
  ...overrides
})

/** A call that hands a task to an agent. */
export const spawning = (agent: string, extra: Record<string, unknown> = {}): ScriptedCall => ({
  tool: "spawn_agent",
  arguments: { agent, task: `Do your part, ${agent}.`, ...extra }
})

/** A model that makes these calls at once and then says, as JSON, what came of them. */
export const handingOver = (...calls: ReadonlyArray<ScriptedCall>) =>
  scripted([{ when: "step == 0", calls }, { say: "{{ results | json }}" }])

/** A model that thinks so long and then says a text. */
export const saysAfter = (latencyMs: number, say = "Done.") => scripted([{ say, latencyMs }])

/** An agent that may hand tasks to others, and makes these calls at once. */
export const boss = (
  story: Story,
  calls: ReadonlyArray<ScriptedCall>,
  overrides: Record<string, unknown> = {}
) => story.post("/agents", worker("boss", handingOver(...calls), { subAgents: ["*"], ...overrides }))

/** Tells an agent to run and does not wait for it. */
export const begin = (story: Story, agent: Json, body: unknown = {}): Effect.Effect<Json> =>
  story.post(`/agents/${agent.id}/trigger?wait=false`, body)

export const runNow = (story: Story, run: Json): Effect.Effect<Json> => story.get(`/runs/${run.id}`)

/** A run, once it is what a story waits for. */
export const runWhen = (story: Story, run: Json, satisfies: (run: Json) => boolean): Effect.Effect<Json> =>
  eventually(runNow(story, run), satisfies)

export const isEnded = (run: Json): boolean => run.completedAt !== null

export const isRunning = (run: Json): boolean => run.status === "running"

export const isWaiting = (run: Json): boolean => run.status === "paused" && run.pauseReason === "subAgents"

/** A run at its end, which comes when the server's clock goes on. */
export const endedInTime = (story: Story, run: Json): Effect.Effect<Json> =>
  asTimePasses(1_000, runNow(story, run), isEnded)

/** Tells an agent to run and answers the run at its end. */
export const runThrough = (story: Story, agent: Json): Effect.Effect<Json> =>
  Effect.flatMap(begin(story, agent), (run) => runWhen(story, run, isEnded))

/** The runs that a run spawned, oldest first. */
export const childrenOf = (story: Story, run: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs?parentRunId=${run.id}&limit=200`), (page) => page.items.toReversed())

/** The children, once there are so many and all satisfy. */
export const childrenWhen = (
  story: Story,
  run: Json,
  count: number,
  satisfies: (run: Json) => boolean = () => true
): Effect.Effect<ReadonlyArray<Json>> =>
  eventually(
    childrenOf(story, run),
    (children) => children.length >= count && children.every((child) => satisfies(child))
  )

/** What a run that hands over has learned of its calls, in the model's order. */
export const reportsOf = (run: Json): ReadonlyArray<Json> => JSON.parse(run.summary)

/** The calls by which a run handed tasks over, oldest first. */
export const spawnsOf = (story: Story, run: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(callsOf(story, run), (calls) => calls.filter((call) => call.tool === "spawn_agent"))

/** Begins a run of a boss that makes these calls and answers it at its end. */
export const handOver = Effect.fnUntraced(function* (
  story: Story,
  calls: ReadonlyArray<ScriptedCall>,
  overrides: Record<string, unknown> = {}
) {
  const agent = yield* boss(story, calls, overrides)
  const run = yield* runThrough(story, agent)
  yield* story.delete(`/agents/${agent.id}`)
  return run
})

/** A run of a boss at rest, and its helpers at work, each of which has this model. */
export const waitingFor = Effect.fnUntraced(function* (
  story: Story,
  model: Json,
  calls: ReadonlyArray<ScriptedCall> = [spawning("helper")],
  overrides: Record<string, unknown> = {}
) {
  yield* story.post("/agents", worker("helper", model))
  const started = yield* begin(story, yield* boss(story, calls, overrides))
  const run = yield* runWhen(story, started, isWaiting)
  return { run, children: yield* childrenWhen(story, run, calls.length, isRunning) }
})
