/**
 * Faults of requests under keys: one that is done again, one that is lost, one that is told otherwise.
 */
import type { Plant } from "../simulation/plant.ts"

export const keyPlants: ReadonlyArray<Plant> = [
  {
    checker: "keyedOnce",
    fault: "a request that came again was done again",
    sql: [
      `update kb.graph_events set object_type = 'Receipt', snapshot = jsonb_set(snapshot, '{properties,key}', '"receipt-0"')
        where project_id = $1 and entity_type = 'graphObject' and type = 'created'`
    ]
  },
  {
    checker: "keyedOnce",
    fault: "a request that was answered was not done",
    sql: [
      `update kb.graph_events set object_type = 'Lost' where project_id = $1 and object_type = 'Receipt' and type = 'created'`
    ]
  },
  {
    checker: "keyedAlike",
    fault: "a repeat was told something else",
    sql: [],
    testimony: ({ acknowledged }) => ({
      keyed: [...acknowledged.keyed, ...acknowledged.keyed.map(({ key }) => ({ key, answer: "planted" }))]
    })
  }
]
