/**
 * Faults in what came of the verdicts of guards.
 */
import type { Plant } from "./plant.ts"

const verdict = (fault: string, checker: string, isFlagged: boolean): Plant => ({
  checker,
  fault,
  sql: [
    `update kb.context_events set payload = jsonb_set(payload, '{isFlagged}', '${isFlagged}') where project_id = $1 and type = 'GuardVerdictEvent'`
  ]
})

export const guardPlants: ReadonlyArray<Plant> = [
  verdict("an answer was heard that a guard had not let pass", "guardHeardFirst", true),
  verdict("what a guard had flagged was answered", "guardObeyed", true)
]
