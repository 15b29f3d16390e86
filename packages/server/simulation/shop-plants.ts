/**
 * Faults in what is on record of a foreign server's deeds.
 */
import type { Plant } from "./plant.ts"

const recorded = (fault: string, values: string): Plant => ({
  checker: "foreignDeedsCounted",
  fault,
  sql: [`update kb.tool_calls set ${values} where project_id = $1 and tool = 'shop__order'`]
})

export const shopPlants: ReadonlyArray<Plant> = [
  recorded("a foreign tool did what is on record as failed", `status = 'failed'`),
  recorded(
    "a foreign tool never did what is on record as done",
    `status = 'completed', arguments = '{"key": "planted"}'`
  )
]
