/**
 * Faults in what waits for people, for the checkers of review to find.
 */
import type { Plant } from "../simulation/plant.ts"

/** At least one for each checker of what agents let wait. */
export const reviewPlants: ReadonlyArray<Plant> = [
  {
    checker: "openOnce",
    fault: "an agent has the same open twice",
    sql: [
      `insert into kb.tasks select (jsonb_populate_record(task, jsonb_build_object('id', gen_random_uuid(), 'number', -1))).* from kb.tasks task
        where project_id = $1 and status = 'pending' and subject like 'update:%' limit 1`
    ]
  },
  {
    checker: "editsKept",
    fault: "what somebody approved with a text of his own was done as it was suggested",
    sql: [
      `update kb.graph_events set snapshot = snapshot #- '{properties,checkedAs}' where project_id = $1 and task_id is not null`
    ]
  },
  {
    checker: "othersKept",
    fault: "an approval wrote over what somebody had set since",
    sql: [
      `update kb.graph_object_versions version set properties = version.properties || jsonb_build_object(name, 'planted')
        from kb.tasks task, jsonb_object_keys(task.payload #> '{suggestedChanges,data}') name
        where task.project_id = $1 and task.type = 'object_update_suggestion' and task.outcome ->> 'change' = 'updated'
          and version.object_id = (task.outcome ->> 'entityId')::uuid and version.version = (task.outcome ->> 'version')::int - 1 and version.version > 1`,
      `update kb.tasks set base_version = 1 where project_id = $1 and type = 'object_update_suggestion' and outcome ->> 'change' = 'updated'`
    ]
  },
  {
    checker: "waitsBounded",
    fault: "an agent has more open than it may",
    sql: [
      `update kb.tasks set expires_at = null where project_id = $1`,
      `update kb.agent_versions set definition = jsonb_set(definition, '{reviewPolicy}', '{"maxPending": 0}') where project_id = $1`
    ]
  },
  {
    checker: "revisionsKept",
    fault: "what a suggestion said before is gone",
    sql: [`delete from kb.task_revisions where project_id = $1`]
  }
]
