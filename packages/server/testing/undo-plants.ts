/**
 * Faults in what people had taken back, for `check-undos.ts` to find.
 */
import type { Plant } from "../simulation/plant.ts"

export const undoPlants: ReadonlyArray<Plant> = [
  {
    checker: "undoneWhole",
    fault: "an agent's name stands under what a person had taken back",
    sql: [
      `update kb.graph_events event set actor_type = 'agent' from kb.tasks task
        where event.project_id = $1 and event.task_id = task.id and task.type = 'undo'`
    ]
  },
  {
    checker: "undoneWhole",
    fault: "an approved undo left a value as the run had set it",
    sql: [
      `update kb.graph_object_versions version set properties = version.properties || jsonb_build_object(one.property, 'planted')
        from kb.undo_items item, jsonb_to_recordset(item.properties) one(property text, status text)
        where version.object_id = item.entity_id and version.task_id = item.task_id and item.project_id = $1 and one.status = 'ready'`
    ]
  },
  {
    checker: "workKept",
    fault: "an undo deleted what somebody had worked on",
    sql: [
      `update kb.graph_events deletion set undoes = array(select id from kb.agents where project_id = $1 limit 1)
        where project_id = $1 and type = 'deleted' and entity_type = 'graphObject' and actor_type = 'user' and exists (
          select from kb.graph_events event where event.entity_id = deletion.entity_id and event.type = 'updated' and event.actor_type = 'user'
            and event.version < deletion.version and not exists (select from kb.graph_events made where made.entity_id = event.entity_id
              and made.type = 'created' and made.version between event.version and deletion.version))`
    ]
  }
]
