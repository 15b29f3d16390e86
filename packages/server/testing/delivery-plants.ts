/**
 * Faults of what a subscriber is told.
 */
import type { Plant } from "../simulation/plant.ts"

export const deliveryPlants: ReadonlyArray<Plant> = [
  {
    checker: "eventsPosted",
    fault: "a subscriber was never told of an event",
    sql: [],
    testimony: ({ acknowledged: { posted } }) => ({ posted: posted.filter((id) => id !== posted[0]) })
  },
  {
    checker: "eventsPosted",
    fault: "a subscriber was told of something that he had not asked for",
    sql: [
      `update kb.graph_events set type = 'updated' where id = (select id from kb.graph_events where project_id = $1 and entity_type = 'graphObject' and type = 'created' limit 1)`
    ]
  },
  {
    checker: "eventsPosted",
    fault: "a subscriber was told of a later event first",
    sql: [],
    testimony: ({ acknowledged: { posted } }) => ({ posted: posted.toReversed() })
  }
]
