/**
 * The words in which stories speak of runs that take their time.
 */
import { Effect } from "effect"
import { eventually, type Json, promptWithObject, scripted, type Story } from "./platform.ts"
import { logOf } from "./context-words.ts"
import { ask } from "./owner-rows.ts"

/** How long the story's agents may work, in milliseconds. */
export const timeoutMs = 60_000

/** What an agent says that is told that its time is up. */
export const stopRule = (answer: Record<string, unknown>) => ({ when: "tools.size == 0", ...answer })

/** Words that take about a second each, for minutes. */
export const longText = Array.from({ length: 300 }, (_, index) => `w${String(index).padStart(2, "0")}`).join(
  " "
)

/** An agent that reads and reads; what it says when it is stopped is the story's. */
export const reader = (answer: Record<string, unknown>, overrides: Record<string, unknown> = {}) => ({
  name: "reader",
  prompt: promptWithObject,
  triggerType: "manual",
  executionMode: "execute",
  tools: ["graph.*"],
  defaultTimeoutMs: timeoutMs,
  model: scripted([stopRule(answer), { say: longText, tokensPerSecond: 1 }]),
  ...overrides
})

/** Triggers an agent and answers its run without waiting for its end. */
export const begin = (story: Story, agent: Json, input: Json = {}): Effect.Effect<Json> =>
  Effect.map(story.ask("POST", `/agents/${agent.id}/trigger?wait=false`, { input }), ({ body }) => body)

/** Triggers an agent and answers its run once the model is asked. */
export const beginAsking = (story: Story, agent: Json): Effect.Effect<Json> =>
  Effect.flatMap(begin(story, agent), (run) =>
    eventually(story.get(`/runs/${run.id}`), (found) => found.status === "running").pipe(
      Effect.andThen(
        eventually(logOf(story, run.contextName), (log) =>
          log.some(({ type }) => type === "AgentTurnStartedEvent")
        )
      ),
      Effect.as(run)
    )
  )

/** What the run's row keeps of an answer that is not complete. */
export const partialOf = (story: Story, run: Json): Effect.Effect<string | null> =>
  Effect.map(
    ask(story.access, "select partial_text from kb.agent_runs where id = $1", [run.id]),
    ([row]) => (row?.[0] ?? null) as string | null
  )

/** A run's log. */
export const runLog = (story: Story, run: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs/${run.id}/events?limit=200`), (page) => page.items)

/** Milliseconds of the server's clock between two events of a log, by their types. */
export const between = (log: ReadonlyArray<Json>, first: string, last: string): number =>
  Date.parse(log.findLast(({ type }) => type === last).timestamp) -
  Date.parse(log.find(({ type }) => type === first).timestamp)
