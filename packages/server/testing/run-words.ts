/**
 * The words in which stories look at what a run did, from its log and its calls.
 */
import { Effect } from "effect"
import type { Json, Story } from "./platform.ts"
import { callsOf } from "./story-words.ts"

/** The log of a run, oldest first. */
export const logOfRun = (story: Story, run: Json): Effect.Effect<ReadonlyArray<Json>> =>
  Effect.map(story.get(`/runs/${run.id}/events?limit=200`), (page) => page.items)

/** The events of a type. */
export const ofType = (log: ReadonlyArray<Json>, type: string): ReadonlyArray<Json> =>
  log.filter((event) => event.type === type)

/** What became of each call of a run, in order, by its status. */
export const outcomesOf = (story: Story, run: Json): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(callsOf(story, run), (calls) => calls.map((call) => call.status))

/** The steps of a run's flow, in order: the name, the iteration, and what was said. */
export const stepsOf = (log: ReadonlyArray<Json>): ReadonlyArray<readonly [string, number, string]> =>
  ofType(log, "FlowStepStartedEvent").map((event) => [event.step, event.iteration, event.content])
