/**
 * Runs that call tools of foreign servers, as stories tell them.
 */
import { Effect } from "effect"
import type { Json, Story } from "./platform.ts"
import { calling, callsOf, type ScriptedCall } from "./story-words.ts"

/** An agent that makes calls, one in each step, when it is told to. */
export const newCaller = (
  story: Story,
  calls: ReadonlyArray<ScriptedCall>,
  overrides: Record<string, unknown> = {}
): Effect.Effect<Json> =>
  story.post("/agents", {
    name: "buyer",
    prompt: "Go.",
    triggerType: "manual",
    executionMode: "execute",
    tools: ["shop.*"],
    model: calling(...calls),
    ...overrides
  })

/** The run of such an agent, begun. */
export const beginRun = (story: Story, calls: ReadonlyArray<ScriptedCall>): Effect.Effect<Json> =>
  Effect.flatMap(newCaller(story, calls), (agent) => story.post(`/agents/${agent.id}/trigger?wait=false`, {}))

/** The run of such an agent, ended. */
export const runOf = (
  story: Story,
  calls: ReadonlyArray<ScriptedCall>,
  overrides: Record<string, unknown> = {}
): Effect.Effect<Json> =>
  Effect.flatMap(newCaller(story, calls, overrides), (agent) => story.post(`/agents/${agent.id}/trigger`, {}))

/** What a run's calls came to, in order. */
export const outcomesOf = (
  story: Story,
  calls: ReadonlyArray<ScriptedCall>,
  overrides: Record<string, unknown> = {}
): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.flatMap(runOf(story, calls, overrides), (run) => callsOf(story, run))

/** The types of what a run's log says of its calls. */
export const callEventsOf = (story: Story, run: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs/${run.id}/events?limit=200`), (page) =>
    page.items.filter((event: Json) => event.type.startsWith("ToolCall"))
  )

/** The tools that the model was shown in the first request of a run. */
export const shownTo = (story: Story, run: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs/${run.id}/model-calls/1`), ({ request }) => request.tools)
