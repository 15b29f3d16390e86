/**
 * The words in which stories speak of what is spent on models.
 */
import { Effect } from "effect"
import { ask } from "./owner-rows.ts"
import { eventually, type Json, scripted, type Story } from "./platform.ts"
import { runsOf } from "./story-words.ts"

/** A call whose arguments differ from step to step, and then a last word. */
export const fourSteps = scripted([
  ...[0, 1, 2].map((step) => ({
    when: `step == ${step}`,
    say: `Step ${step}.`,
    calls: [{ tool: "create_object", arguments: { type: "Note", properties: { step } } }]
  })),
  { say: "Done." }
])

export const price = { inputPerMillion: 3, outputPerMillion: 15 }
export const priced = { ...fourSteps, price }

export const tokensOf = ({ usage }: Json): number => usage.inputTokens + usage.outputTokens

export const restingRun = (story: Story, agent: Json, count = 1): Effect.Effect<Json> =>
  Effect.map(
    eventually(
      runsOf(story, agent),
      (runs) => runs.length >= count && !["queued", "running"].includes(runs.at(-1)?.status)
    ),
    (runs) => runs.at(-1)
  )

/** A day so many days ago, by the database's clock. */
export const dayBefore = ({ access }: Story, days: number): Effect.Effect<unknown> =>
  Effect.map(
    ask(access, "select to_char((now() at time zone 'UTC')::date - $1::int, 'YYYY-MM-DD')", [days]),
    ([row]) => row?.[0]
  )
