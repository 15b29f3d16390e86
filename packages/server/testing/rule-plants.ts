/**
 * Faults in how agents kept their rules about order, time and number: at least one for each checker of `check-rules.ts`.
 */
import type { Plant } from "../simulation/plant.ts"

/** Gives every agent that reacts another rule. */
const ruled = (name: string, value: string) =>
  `update kb.agent_versions set definition = jsonb_set(definition, '{reactionConfig,${name}}', '${value}')
    where project_id = $1 and jsonb_typeof(definition->'reactionConfig') = 'object'`
export const rulePlants: ReadonlyArray<Plant> = [
  {
    checker: "workedAlone",
    fault: "two runs were at work on one object",
    sql: [
      `update kb.agent_runs set started_at = '2100-01-01', completed_at = '2100-02-01' where project_id = $1`
    ]
  },
  {
    checker: "workedInOrder",
    fault: "an older version was handled after a newer one",
    sql: [`update kb.agent_processing_log set object_version = 1000 - object_version where project_id = $1`]
  },
  {
    checker: "waitedLongEnough",
    fault: "a run began before its object was quiet",
    sql: [`update kb.agent_runs set created_at = created_at - interval '1 hour' where project_id = $1`]
  },
  {
    checker: "batchesBounded",
    fault: "a run handled more events than a batch may have",
    sql: [
      ruled("batchSize", "2"),
      `update kb.agent_processing_log entry set run_id =
        (select min(other.run_id::text)::uuid from kb.agent_processing_log other where other.agent_id = entry.agent_id)
        where project_id = $1 and run_id is not null`
    ]
  },
  {
    checker: "ratesKept",
    fault: "more runs began at one instant than may begin",
    sql: [
      ruled("rateLimit", '{"maxRuns": 1, "perSeconds": 5}'),
      `update kb.agent_runs set created_at = '2100-01-01' where project_id = $1`
    ]
  },
  {
    checker: "concurrencyKept",
    fault: "all runs were at work at once",
    sql: [
      ruled("maxConcurrency", "1"),
      `update kb.agent_runs set created_at = '2100-01-01', started_at = '2100-01-01', completed_at = '2100-02-01' where project_id = $1 and completed_at is not null`
    ]
  }
]
