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
  }
]
