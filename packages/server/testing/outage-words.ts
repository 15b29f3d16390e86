/**
 * The words in which stories speak of a provider that is away.
 */
import { expect } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { failingProvider, type ProviderFault } from "./failing-provider.ts"
import { freshDatabase } from "./fresh-database.ts"
import { ask } from "./owner-rows.ts"
import { eventually, type Json, newProject, startServer, type Story } from "./platform.ts"
import { entriesOf, make } from "./story-words.ts"

/** A server with a project whose models answer at a provider that a story takes away, or at another, which stays: `openai`. */
export const outageStory = Effect.gen(function* () {
  const provider = yield* failingProvider
  const other = yield* failingProvider
  const access = yield* freshDatabase
  const env = {
    OPENAI_COMPATIBLE_BASE_URL: provider.url,
    OPENAI_API_KEY: "other-key-0001",
    OPENAI_BASE_URL: other.url
  }
  const environment = ConfigProvider.layer(ConfigProvider.fromEnv({ env }))
  const doors = yield* Effect.provide(startServer(access), environment)
  return { provider, story: yield* newProject(doors, access) }
})

export const unavailable: ProviderFault = { type: "status", status: 503 }

/** An agent that reacts to each new person with one model request. */
export const reader = (overrides: Record<string, unknown> = {}) => ({
  name: "reader",
  prompt: "Greet {{ object.properties.name }}.",
  triggerType: "reaction",
  reactionConfig: { events: ["created"], objectTypes: ["Person"] },
  tools: ["graph.*"],
  model: { provider: "openai-compatible", name: "m" },
  ...overrides
})

/** So many events of the type, and the ids of their objects. */
export const happen = (story: Story, count: number, type = "Person") =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => index),
    (index) => Effect.map(make(story, type, { name: `Person ${index}` }), ({ id }) => String(id)),
    { concurrency: 8 }
  )

/** All runs of an agent, newest first. */
export const runsOf = (story: Story, agent: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs?agentId=${agent.id}&limit=100`), ({ items }) => items)

/** Its runs once so many have ended. */
export const endedOf = (story: Story, agent: Json, count: number) =>
  eventually(
    runsOf(story, agent),
    (runs) => runs.filter(({ status }) => status === "completed" || status === "failed").length >= count,
    60_000
  )

/** Its runs once all of so many wait for the provider. */
export const waitingOf = (story: Story, agent: Json, count: number) =>
  eventually(
    runsOf(story, agent),
    (runs) => runs.filter(({ waitingFor }) => waitingFor !== null).length >= count,
    60_000
  )

/** Lets so many seconds pass for what waits for providers: in its rows, for the database's clock does not move. */
export const outageAges = (story: Story, seconds: number) => {
  const ago = `make_interval(secs => ${seconds})`
  return Effect.andThen(
    ask(
      story.access,
      `update kb.provider_outages set since = since - ${ago}, next_try_at = next_try_at - ${ago}, probe_until = probe_until - ${ago}`
    ),
    ask(
      story.access,
      `update kb.agent_runs set waits_since = waits_since - ${ago}, waits_until = waits_until - ${ago} where status = 'queued'`
    )
  )
}

/** Each event was handled by one run that completed, and nothing counts against the agent. */
export const allWereHandled = Effect.fnUntraced(function* (
  story: Story,
  agent: Json,
  objects: ReadonlyArray<string>
) {
  const runs = yield* endedOf(story, agent, objects.length)
  expect(runs.map(({ status }) => status)).toEqual(objects.map(() => "completed"))
  expect(runs.map((run) => run.trigger.events[0].objectId).toSorted()).toEqual(objects.toSorted())
  expect(runs.map(({ attempt }) => attempt)).toEqual(objects.map(() => 1))
  const answers = yield* ask(
    story.access,
    `select call.run_id from kb.model_calls call join kb.agent_runs run on run.id = call.run_id
      where call.project_id = $1 and run.agent_id = $2 and call.answer_event is not null`,
    [story.projectId, agent.id]
  )
  expect(answers.length).toBe(objects.length)
  const entries = yield* entriesOf(story, agent)
  expect(entries.map(({ attempt, status }: Json) => [attempt, status])).toEqual(
    objects.map(() => [1, "completed"])
  )
  expect(yield* story.get(`/agents/${agent.id}`)).toMatchObject({ enabled: true, disabledReason: null })
  const [row] = yield* ask(story.access, "select consecutive_failures from kb.agents where id = $1", [
    agent.id
  ])
  expect(row).toEqual([0])
})
