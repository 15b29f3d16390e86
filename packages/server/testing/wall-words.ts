/**
 * The words in which stories try the database's own wall.
 */
import { expect } from "@effect/vitest"
import { Effect } from "effect"
import { ask } from "./owner-rows.ts"
import type { Json, Story } from "./platform.ts"
import { type Columns, refusalOfServer } from "./raw-writes.ts"
import { silentFor } from "./story-words.ts"
import { begin, isRunning, runWhen, worker } from "./sub-agent-words.ts"

/** The code with which the wall refuses. */
export const wall = "TR001"

/** The id of nothing. */
export const unknownId = "'01990000-0000-7000-8000-000000000001'::uuid"

/** Expects each write to be refused by the wall, with these words, and the graph to be as it was. */
export const expectRefused = Effect.fnUntraced(function* (
  story: Story,
  writes: Readonly<Record<string, string>>,
  words: string
) {
  const before = yield* graphOf(story)
  for (const [what, write] of Object.entries(writes)) {
    const refusal = yield* refusalOfServer(story.access, story.projectId, write)
    expect([what, refusal]).toEqual([what, { code: wall, sentence: expect.stringContaining(words) }])
  }
  expect(yield* graphOf(story)).toEqual(before)
})

/** All rows of the graph, as the owner sees them. */
export const graphOf = (story: Story) =>
  Effect.forEach(
    [
      "graph_objects",
      "graph_object_versions",
      "graph_relationships",
      "graph_relationship_versions",
      "graph_events"
    ],
    (table) =>
      ask(
        story.access,
        `select to_jsonb(one) - 'position' - 'dispatched_at' - 'refusals' from kb.${table} one where project_id = $1 order by 1`,
        [story.projectId]
      )
  )

/** An agent whose run is at work and stays so. */
export const atWork = Effect.fnUntraced(function* (story: Story, overrides: Record<string, unknown> = {}) {
  const agent = yield* story.post("/agents", worker("busy", silentFor(600_000), overrides))
  const run = yield* runWhen(story, yield* begin(story, agent), isRunning)
  return { agent, run, by: by(agent, run) }
})

/** What an update says that an agent makes in a run. */
export const by = (agent: Json, run: Json, more: Columns = {}) => ({
  entity: { actor_type: "'agent'", actor_id: `'${agent.id}'` },
  event: { run_id: `'${run.id}'::uuid`, ...more }
})
