/**
 * Faults in what a simulation kept of a foreign server.
 */
import type { Plant } from "./plant.ts"

export const radioPlants: ReadonlyArray<Plant> = [
  {
    checker: "occurrencesKept",
    fault: "something that a foreign server told is lost",
    sql: [
      `update kb.mcp_occurrences set event_id = 'planted' where id = (select id from kb.mcp_occurrences where project_id = $1 limit 1)`
    ]
  },
  {
    checker: "occurrencesHeard",
    fault: "something that a foreign server told woke nobody",
    sql: [
      `delete from kb.agent_processing_log where occurrence_id = (select occurrence_id from kb.agent_processing_log
        where project_id = $1 and occurrence_id is not null limit 1)`
    ]
  },
  {
    checker: "occurrencesHeard",
    fault: "something that a foreign server told woke an agent that does not listen",
    sql: [`delete from kb.agent_mcp_events where project_id = $1`]
  }
]
