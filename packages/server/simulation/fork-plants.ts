/**
 * Faults of contexts that know of others: a fork that begins elsewhere, something that was never said, a variant that was left out.
 */
import type { Plant } from "./plant.ts"

export const forkPlants: ReadonlyArray<Plant> = [
  {
    checker: "forksBegin",
    fault: "a fork says another event than it begins at",
    sql: [
      `update kb.context_events set payload = jsonb_set(payload, '{at}', '10000') where project_id = $1 and type = 'ContextForkedEvent'`
    ]
  },
  {
    checker: "forksBegin",
    fault: "a fork that somebody was told of is lost",
    sql: [],
    testimony: ({ acknowledged }) => ({
      forked: [...acknowledged.forked, { context: "lost", from: "walk", at: 1 }]
    })
  },
  {
    checker: "comparisonsWhole",
    fault: "a variant was left out",
    sql: [
      `update kb.context_events set payload = payload #- '{variants,1}' where project_id = $1 and type = 'ComparisonStartedEvent'`
    ]
  },
  {
    checker: "comparisonsWhole",
    fault: "a variant's run works elsewhere",
    sql: [
      `update kb.context_events set payload = jsonb_set(payload, '{variants,0,runId}', payload #> '{variants,1,runId}') where project_id = $1 and type = 'ComparisonStartedEvent'`
    ]
  },
  {
    checker: "comparisonsWhole",
    fault: "a comparison that somebody was told of is lost",
    sql: [],
    testimony: ({ acknowledged }) => ({ compared: [...acknowledged.compared, "1-00000000"] })
  },
  {
    checker: "recallsKnown",
    fault: "an agent was reminded of what nobody said",
    sql: [
      `update kb.context_events set payload = jsonb_set(payload, '{passages,0,eventId}', '"nowhere:1"') where project_id = $1 and type = 'MemoryRecalledEvent'`
    ]
  }
]
